//! A problem that a check found: the thing, what was found, what was expected, the remedy.

use std::fmt;

use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The job would fail or would not do what the job file states.
    Error,
    /// The job may fail. The check cannot decide it.
    Warning,
}

/// One problem, printed as one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How serious it is.
    pub severity: Severity,
    /// The key of the job file, the program or the service.
    pub thing: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

impl Finding {
    /// An error without a remedy other than the expected value.
    pub fn error(thing: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            thing: thing.into(),
            found: found.into(),
            expected: expected.into(),
            remedy: String::new(),
        }
    }

    /// A warning without a remedy other than the expected value.
    pub fn warning(thing: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(thing, found, expected) }
    }

    /// The finding with a remedy.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    /// Whether the job must not be started.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `cluster.region: "mars-1" is not a region, expected a name such as eu-central-1; check the spelling`
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.thing, self.found)?;
        if !self.expected.is_empty() {
            write!(out, ", expected {}", self.expected)?;
        }
        if !self.remedy.is_empty() {
            write!(out, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// What is wrong with an unknown key: `unknown key, expected one of name, run; the nearest key is run`.
pub fn unknown_key(name: &str, known: &[&str]) -> String {
    let remedy = match nearest(name, known.iter().copied()) {
        Some(near) => format!("the nearest key is {near}"),
        None => "see docs/emr.md for all keys".to_owned(),
    };
    format!("unknown key, expected one of {}; {remedy}", known.join(", "))
}

/// The name that is nearest to `name`, if one is near: at most a third of its characters differ, or one contains
/// the other.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count().div_ceil(3).max(1);
    let near = names.filter_map(|known| {
        let contains =
            name.len() >= 3 && (known.contains(name) || (known.len() >= 3 && name.contains(known)));
        let distance = strsim::osa_distance(name, known);
        (contains || distance <= limit).then_some((distance, known))
    });
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_remedy_last() {
        let finding = Finding::error("run", "a bucket", "a prefix");
        assert_eq!(finding.to_string(), "run: a bucket, expected a prefix");
        assert_eq!(finding.remedy("add one").to_string(), "run: a bucket, expected a prefix; add one");
    }

    #[test]
    fn the_nearest_name_is_found() {
        let names = || ["region", "subnets", "idle-timeout-s", "keep"].into_iter();
        assert_eq!(nearest("regoin", names()), Some("region"));
        assert_eq!(nearest("subnet", names()), Some("subnets"));
        assert_eq!(nearest("idle-timeout", names()), Some("idle-timeout-s"));
        assert_eq!(nearest("zzzzzz", names()), None);
    }
}

//! One rule: how a line of a log shows the cause of a failure, and the remedy.

use regex::{Captures, Regex};

use crate::logs::Place;

/// A rule. Its example log is `rules/<id>.log`.
#[derive(Debug)]
pub struct Rule {
    /// Name, unique and in lower case.
    pub id: &'static str,
    /// The places whose logs contain such lines.
    pub places: &'static [Place],
    /// Whether it names a cause.
    pub kind: Kind,
    /// A regular expression that matches in one line. Its named groups fill `{name}` in `cause` and `remedy`.
    pub pattern: &'static str,
    /// The probable cause.
    pub cause: &'static str,
    /// What removes the cause.
    pub remedy: &'static str,
}

/// What a match shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The cause of a failure.
    Cause,
    /// The failure itself, such as an exit code. It is reported only if no rule names a cause.
    Symptom,
    /// The end of a container. It is a symptom only if the job failed: YARN also ends containers of jobs that complete.
    ContainerEnd,
}

/// Maximum number of characters of a captured value in a message.
const VALUE_CHARACTERS_MAX: usize = 200;

impl Rule {
    /// Its compiled pattern.
    pub fn regex(&self) -> Regex {
        Regex::new(self.pattern).unwrap_or_else(|error| unreachable!("a test compiles each pattern: {error}"))
    }
}

/// In place of `{input}` in a cause: the files that the failed tasks read, known only when all logs were read.
pub const INPUT: &str = "{input}";

/// A template with the values of named groups. `{one}{other}` are alternatives, of which at most one matched; if none did,
/// `…` is shown. [`INPUT`] remains.
pub fn filled(template: &str, captures: &Captures<'_>) -> String {
    replaced(template, |names| {
        if *names == ["input"] {
            return INPUT.to_owned();
        }
        let values = names.iter().filter_map(|name| captures.name(name));
        let shown: String = values.map(|value| shortened(value.as_str())).collect();
        if shown.is_empty() { "…".to_owned() } else { shown }
    })
}

/// A template with `…` in place of each value.
pub fn without_values(template: &str) -> String {
    replaced(template, |_| "…".to_owned())
}

/// Replaces each run of adjacent names in braces.
fn replaced(template: &str, value: impl Fn(&[&str]) -> String) -> String {
    let mut replaced = String::with_capacity(template.len());
    let mut names = Vec::new();
    let mut rest = template;
    loop {
        if let Some((name, after)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            names.push(name);
            rest = after;
            continue;
        }
        if !names.is_empty() {
            replaced += &value(&std::mem::take(&mut names));
        }
        let end = rest.find('{').unwrap_or(rest.len());
        if end == 0 {
            return replaced;
        }
        replaced += &rest[..end];
        rest = &rest[end..];
    }
}

/// A captured value. A path in the folder of a container is shown without the folder.
fn shortened(value: &str) -> String {
    let value = match value.rsplit_once('/') {
        Some((folder, name)) if folder.contains("/container_") => name,
        _ => value,
    };
    value.chars().take(VALUE_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_in_by_name() {
        let pattern = Regex::new("(?P<bad>[0-9]+) of (?P<lines>[0-9]+)(?P<more> more)?").unwrap();
        let captures = pattern.captures("12 of 20 lines").unwrap();
        assert_eq!(filled("{bad}/{lines}{more}, {more}, 5 %", &captures), "12/20, …, 5 %");
        assert_eq!(without_values("{bad}/{lines}{more}, 5 %"), "…/…, 5 %");
    }

    #[test]
    fn the_folder_of_a_container_is_not_shown() {
        let pattern = Regex::new(r"(?P<program>\S+): not found").unwrap();
        let of = |line: &str| filled("{program}", &pattern.captures(line).unwrap());
        assert_eq!(
            of("/mnt/yarn/usercache/hadoop/appcache/application_1/container_1_000002/./mapper: not found"),
            "mapper"
        );
        assert_eq!(of("/opt/mapper: not found"), "/opt/mapper");
    }
}

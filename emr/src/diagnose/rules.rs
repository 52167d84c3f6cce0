//! The rules of `rules.toml`: how a line of a log shows the cause of a failure, and the remedy.
//!
//! To add a rule, write it into the file, and an example log into `rules/<id>.log`.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Deserialize;

use crate::logs::LogOrigin;

/// A rule. The head of `rules.toml` describes the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name, unique and in lower case.
    pub id: String,
    /// The places whose logs contain such lines.
    #[serde(default = "all_places")]
    pub places: Vec<LogOrigin>,
    /// Whether it names a cause.
    #[serde(default)]
    pub kind: Kind,
    /// The exit code of a Hadoop job that ended by this cause.
    pub exit: Option<u8>,
    /// A regular expression that matches in one line. Its named groups fill `{name}` in `cause` and `remedy`.
    pub pattern: String,
    /// The probable cause.
    pub cause: String,
    /// What removes the cause.
    pub remedy: String,
}

/// What a match shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The cause of a failure.
    #[default]
    Cause,
    /// The failure itself, such as an exit code. It is reported only if no rule names a cause.
    Symptom,
    /// The end of a container. It is a symptom only if the job failed: YARN also ends containers of jobs that complete.
    ContainerEnd,
}

/// Maximum number of characters of a captured value in a message.
const VALUE_CHARACTERS_MAX: usize = 200;

/// All rules, in order of priority.
pub fn rules() -> &'static [Rule] {
    #[derive(Deserialize)]
    struct File {
        rule: Vec<Rule>,
    }
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let file: Result<File, _> = toml::from_str(include_str!("rules.toml"));
        file.unwrap_or_else(|error| unreachable!("tests read the file: {error}")).rule
    });
    &RULES
}

fn all_places() -> Vec<LogOrigin> {
    vec![LogOrigin::Controller, LogOrigin::Step, LogOrigin::Bootstrap, LogOrigin::Container, LogOrigin::Node]
}

impl Rule {
    /// Its compiled pattern.
    pub fn regex(&self) -> Regex {
        Regex::new(&self.pattern)
            .unwrap_or_else(|error| unreachable!("a test compiles each pattern: {error}"))
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
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::super::{LogScope, diagnose};
    use super::*;
    use crate::logs::{Listing, Log};

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/diagnose/rules")
    }

    fn example(rule: &Rule) -> String {
        let path = folder().join(format!("{}.log", rule.id));
        fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()))
    }

    #[test]
    fn an_example_is_recognised_by_its_rule_and_by_none_of_higher_priority() {
        let mut wrong = Vec::new();
        for rule in rules() {
            for place in &rule.places {
                let log = Log::of_text("example", *place, &example(rule));
                let listing = Listing { logs: vec![log], n_omitted: 0 };
                let report = diagnose(&listing, &LogScope::default()).unwrap();
                let found = report.causes.first().map(|block| block.rule);
                if found != Some(rule.id.as_str()) {
                    wrong.push(format!("{} in {place}: {found:?}", rule.id));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn rules_name_values_that_their_patterns_capture() {
        let name = Regex::new(r"\{(\w*)\}").unwrap();
        for rule in rules() {
            let pattern = rule.regex();
            let groups: BTreeSet<&str> = pattern.capture_names().flatten().chain(["input"]).collect();
            for template in [&rule.cause, &rule.remedy] {
                assert!(template.len() > 5, "{}", rule.id);
                for used in name.captures_iter(template) {
                    assert!(groups.contains(&used[1]), "{}: {} is not in {groups:?}", rule.id, &used[1]);
                }
            }
        }
    }

    #[test]
    fn each_rule_has_one_name_and_each_example_a_rule() {
        let ids: BTreeSet<&str> = rules().iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), rules().len());
        assert!(ids.len() >= 35, "{}", ids.len());
        for entry in fs::read_dir(folder()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(id) = name.strip_suffix(".log") {
                assert!(ids.contains(id), "{name} has no rule");
            }
        }
    }

    #[test]
    fn a_value_that_is_missing_leaves_no_gap() {
        let mut wrong = Vec::new();
        for rule in rules() {
            let log = Log::of_text("example", rule.places[0], &example(rule));
            let report = diagnose(&Listing { logs: vec![log], n_omitted: 0 }, &LogScope::default()).unwrap();
            for block in &report.causes {
                let has_gap = |text: &&String| ["…", "{", "  "].iter().any(|gap| text.contains(gap));
                let texts = [&block.cause, &block.remedy].into_iter().filter(has_gap);
                wrong.extend(texts.map(|text| format!("{}: {text}", rule.id)));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn values_are_filled_in_by_name() {
        let pattern = Regex::new("(?P<bad>[0-9]+) of (?P<lines>[0-9]+)(?P<more> more)?").unwrap();
        let captures = pattern.captures("12 of 20 lines").unwrap();
        assert_eq!(filled("{bad}/{lines}{more}, {more}, 5 %", &captures), "12/20, …, 5 %");
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

//! The rules, in order of priority: if several match, the first one names the probable cause.
//!
//! To add a rule, write it into a list of this folder, and an example log `<id>.log` next to the list.

mod access;
mod cluster;
mod job;
mod launch;
mod program;
mod resources;
mod symptoms;

use super::rule::Rule;
use crate::logs::Place;

/// Places in which the output of a program of this project appears.
const PROGRAMS: &[Place] = &[Place::Step, Place::Container];
/// Places in which messages of Hadoop about a task appear.
const TASKS: &[Place] = &[Place::Step, Place::Container];
/// Places in which messages about nodes and containers appear.
const NODES: &[Place] = &[Place::Controller, Place::Step, Place::Container, Place::Node];
/// Places in which EMR's own messages appear.
const EMR: &[Place] = &[Place::Controller, Place::Step];
/// Every place.
const ANY: &[Place] = &[Place::Controller, Place::Step, Place::Bootstrap, Place::Container, Place::Node];

/// Lists of rules, in order of priority. A message of a program is more specific than one of Hadoop, and a symptom says
/// least.
const LISTS: [&[Rule]; 7] = [
    program::RULES,
    launch::RULES,
    access::RULES,
    resources::RULES,
    cluster::RULES,
    job::RULES,
    symptoms::RULES,
];

/// All rules, in order of priority.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    LISTS.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use regex::Regex;

    use super::super::{Scope, diagnose};
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
            for place in rule.places {
                let log = Log::of_text("example", *place, &example(rule));
                let listing = Listing { logs: vec![log], n_omitted: 0 };
                let report = diagnose(&listing, &Scope::default()).unwrap();
                let found = report.causes.first().map(|block| block.rule);
                if found != Some(rule.id) {
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
            for template in [rule.cause, rule.remedy] {
                assert!(template.len() > 5, "{}", rule.id);
                for used in name.captures_iter(template) {
                    assert!(groups.contains(&used[1]), "{}: {} is not in {groups:?}", rule.id, &used[1]);
                }
            }
        }
    }

    #[test]
    fn each_rule_has_one_name_and_each_example_a_rule() {
        let ids: BTreeSet<&str> = rules().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), rules().count());
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
            let report = diagnose(&Listing { logs: vec![log], n_omitted: 0 }, &Scope::default()).unwrap();
            for block in &report.causes {
                let has_gap = |text: &&String| ["…", "{", "  "].iter().any(|gap| text.contains(gap));
                let texts = [&block.cause, &block.remedy].into_iter().filter(has_gap);
                wrong.extend(texts.map(|text| format!("{}: {text}", rule.id)));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

//! Reads logs in the order in which they are likely to show a cause, and applies the rules to each line.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::attempts::{Attempts, is_of_master};
use super::masked::masked;
use super::report::{Block, Evidence, Outcome, Report};
use super::rule::{Kind, Rule, filled};
use super::rules::rules;
use super::telling::Telling;
use crate::logs::{Error, Listing, Log, Place, application_of, stem, step_of};

/// Maximum number of logs that are read.
pub const LOGS_MAX: usize = 300;
/// Maximum number of decompressed bytes that are read.
pub const BYTES_MAX: u64 = 512 << 20;
/// Number of lines of evidence per rule.
const EVIDENCE_MAX: usize = 3;

/// The patterns of all rules, by priority.
static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    let set = RegexSet::new(rules().map(|rule| rule.pattern));
    set.unwrap_or_else(|error| unreachable!("a test compiles each pattern: {error}"))
});

/// The logs of a listing that belong to a question.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Only these steps and the applications that they submitted; none for all.
    pub steps: Vec<String>,
    /// Steps that failed, as far as EMR reports them. Their logs are read first.
    pub failed: Vec<String>,
}

/// Finds the causes in these logs.
pub fn diagnose(listing: &Listing, scope: &Scope) -> Result<Report, Error> {
    let rules: Vec<&'static Rule> = rules().collect();
    let patterns = rules.iter().map(|_| None).collect();
    let mut search = Search {
        rules,
        patterns,
        found: BTreeMap::new(),
        telling: None,
        state: State::default(),
        applications: Vec::new(),
        attempts: Attempts::default(),
        report: Report::default(),
    };
    search.report.n_logs = listing.logs.len();

    let has_failed =
        |log: &Log| step_of(&log.name).is_some_and(|of| scope.failed.iter().any(|step| step == of));
    let logs = listing.logs.iter().filter(|log| scope.has(log));
    let (nodes, logs): (Vec<_>, Vec<_>) = logs.partition(|log| log.place == Some(Place::Node));
    let (mut containers, mut others): (Vec<_>, Vec<_>) =
        logs.into_iter().partition(|log| log.place == Some(Place::Container));
    // These sorts keep the order of the listing, newest first, among equals.
    others.sort_by_key(|log| !has_failed(log));
    // The messages of programs are in stderr logs, and Hadoop's in syslogs.
    containers.sort_by_key(|log| stem(&log.name) != "stderr");
    // A long-lived cluster has hundreds of steps.
    let others_max = if containers.is_empty() { LOGS_MAX } else { LOGS_MAX / 2 };
    search.read_all(&others[..others.len().min(others_max)])?;
    // A cluster has containers of many jobs. Those of the steps that were read are the ones in question.
    let applications = std::mem::take(&mut search.applications);
    let is_in_question = |log: &&Log| {
        applications.is_empty()
            || application_of(&log.name).is_none_or(|of| applications.iter().any(|one| one == of))
    };
    let containers = containers.into_iter().filter(is_in_question);
    let (masters, mut tasks): (Vec<_>, Vec<_>) = containers.partition(|log| is_of_master(&log.name));
    search.read_all(&masters)?;
    tasks.sort_by_key(|log| !search.attempts.has_failed(&log.name));
    search.read_all(&tasks)?;
    if !search.has_cause() {
        search.read_all(&nodes)?;
    }
    Ok(search.finish(listing))
}

impl Scope {
    fn has(&self, log: &Log) -> bool {
        self.steps.is_empty() || step_of(&log.name).is_none_or(|of| self.steps.iter().any(|step| step == of))
    }
}

struct Search {
    rules: Vec<&'static Rule>,
    /// Patterns with groups, compiled when they match first.
    patterns: Vec<Option<Regex>>,
    /// Matches by the priority of their rule.
    found: BTreeMap<usize, Block>,
    telling: Option<Telling>,
    state: State,
    /// Applications that the steps submitted.
    applications: Vec<String>,
    attempts: Attempts,
    report: Report,
}

/// What the logs say about the end of jobs.
#[derive(Default)]
struct State {
    has_completed: bool,
    has_failed: bool,
}

impl Search {
    fn read_all(&mut self, logs: &[&Log]) -> Result<(), Error> {
        for log in logs {
            if self.report.n_read >= LOGS_MAX || self.report.bytes_read >= BYTES_MAX {
                return Ok(());
            }
            match self.read(log) {
                // A node or EMR may delete or replace a log at any time.
                Err(Error::Store(store::Error::Missing { .. } | store::Error::Changed { .. })) => {}
                read => read?,
            }
        }
        Ok(())
    }

    fn read(&mut self, log: &Log) -> Result<(), Error> {
        let mut lines = log.lines()?;
        let mut telling = Telling::of(log);
        // Standard output of a task may contain anything that a program printed.
        let may_quote = stem(&log.name) != "stdout";
        for (number, line) in lines.by_ref() {
            self.state.read(&line);
            self.state.has_failed |= log.is_state() && is_failure(&line);
            if log.place == Some(Place::Container) {
                self.attempts.read(&line);
            } else {
                self.applications.extend(submitted(&line));
            }
            // A line is evidence of one rule, the most specific one. In a file that a user saved, a line may be from any place.
            let matches = PATTERNS.matches(&line);
            let first = matches
                .iter()
                .find(|&at| log.place.is_none_or(|place| self.rules[at].places.contains(&place)));
            if let Some(at) = first {
                self.add(at, log, number, &line);
            }
            if may_quote {
                telling.add(log, number, &line);
            }
        }
        self.report.n_read += 1;
        self.report.bytes_read += lines.bytes;
        if let Some(cut) = lines.cut {
            self.report.notes.push(format!("{}: {cut}", log.location));
        }
        self.telling = Some(match self.telling.take() {
            Some(best) => best.or(telling),
            None => telling,
        });
        Ok(())
    }

    fn add(&mut self, at: usize, log: &Log, number: u64, line: &str) {
        let rule = self.rules[at];
        let pattern = self.patterns[at].get_or_insert_with(|| rule.regex());
        let Some(captures) = pattern.captures(line) else { return };
        let block = self.found.entry(at).or_insert_with(|| Block {
            rule: rule.id,
            cause: masked(&filled(rule.cause, &captures)),
            remedy: masked(&filled(rule.remedy, &captures)),
            evidence: Vec::new(),
            n_lines: 0,
        });
        block.n_lines += 1;
        // One line per log, so that the evidence shows how many logs are affected.
        if block.evidence.len() < EVIDENCE_MAX
            && block.evidence.iter().all(|known| known.file != log.location)
        {
            block.evidence.push(Evidence { file: log.location.clone(), line: number, text: masked(line) });
        }
    }

    fn has_cause(&self) -> bool {
        self.found.keys().any(|&at| self.rules[at].kind == Kind::Cause)
    }

    fn finish(mut self, listing: &Listing) -> Report {
        let has_cause = self.has_cause();
        let rules = &self.rules;
        let has_completed = self.state.has_completed && !self.state.has_failed;
        self.found.retain(|&at, _| match rules[at].kind {
            Kind::Cause => true,
            Kind::Symptom => !has_cause,
            Kind::ContainerEnd => !has_cause && !has_completed,
        });
        if !has_cause {
            // All symptoms are of the same failure: the first one says most.
            while self.found.len() > 1 {
                self.found.pop_last();
            }
        }
        let mut report = self.report;
        report.causes = self.found.into_values().collect();
        let telling = self.telling;
        if let (false, Some(block), Some(message)) = (
            has_cause,
            report.causes.first_mut(),
            telling.as_ref().and_then(|telling| telling.message.clone()),
        ) {
            block.evidence.push(message);
        }
        report.has_completed = has_completed;
        report.outcome = if listing.logs.is_empty() {
            Outcome::NoLog
        } else if !report.causes.is_empty() {
            Outcome::Cause
        } else if !report.has_completed
            && (self.state.has_failed || telling.as_ref().is_some_and(|telling| !telling.is_empty()))
        {
            Outcome::Unknown
        } else {
            Outcome::NoFailure
        };
        if report.outcome == Outcome::Unknown {
            report.telling = telling.map(Telling::lines).unwrap_or_default();
        }
        report.n_omitted = listing.n_omitted + listing.logs.len() - report.n_read;
        report
    }
}

impl State {
    /// Reads the ends of jobs, in the words of the job client, of Hadoop Streaming and of EMR's controller.
    fn read(&mut self, line: &str) {
        let has = |words: &str| line.contains(words);
        self.has_completed |= has(" completed successfully") || has("Step succeeded with exitCode 0");
        self.has_failed |= has(" failed with state ")
            || has("Streaming Command Failed!")
            || has("Step failed with exitCode");
    }
}

/// Whether the reason of a state is that of a failure.
fn is_failure(reason: &str) -> bool {
    ["FAILED", "TERMINATED_WITH_ERRORS"].iter().any(|state| reason.starts_with(state))
}

/// The application that a line of the job client names when it submits it.
fn submitted(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Submitted application ")?;
    let id: String =
        rest.chars().take_while(|character| character.is_ascii_alphanumeric() || *character == '_').collect();
    id.starts_with("application_").then_some(id)
}

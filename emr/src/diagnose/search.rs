//! Reads logs in the order in which they are likely to show a cause, and applies the rules to each line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::report::{Block, Evidence, Outcome, Report};
use super::rules::{INPUT, Kind, filled, rules};
use super::tasks::{Attempts, Splits, is_of_master};
use super::telling::Telling;
use crate::Error;
use crate::logs::{Listing, Log, LogOrigin, Section, application_of, is_log, stem, step_of};
use crate::secrets::masked;

/// Maximum number of logs that are read.
pub const LOGS_MAX: usize = 300;
/// Maximum number of decompressed bytes that are read.
pub const BYTES_MAX: u64 = 512 << 20;
/// Number of lines of evidence per rule.
const EVIDENCE_MAX: usize = 3;
/// Number of inputs in a cause.
const INPUTS_SHOWN: usize = 3;
/// Maximum number of tasks per rule whose inputs are looked up.
const TASKS_MAX: usize = 1000;

/// The patterns of all rules, by priority.
static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    let set = RegexSet::new(rules().iter().map(|rule| &rule.pattern));
    set.unwrap_or_else(|error| unreachable!("a test compiles each pattern: {error}"))
});

/// Whether a line reports a failure: a rule recognises it, or a task ended with an exception.
pub fn is_sign(line: &str) -> bool {
    PATTERNS.is_match(line) || line.contains(" running child")
}

/// The logs of a listing that belong to a question.
#[derive(Clone, Debug, Default)]
pub struct LogScope {
    /// Only these steps and the applications that they submitted; none for all.
    pub steps: Vec<String>,
    /// Steps that failed, as far as EMR reports them. Their logs are read first.
    pub failed: Vec<String>,
}

/// Finds the causes in these logs.
pub fn diagnose(listing: &Listing, scope: &LogScope) -> Result<Report, Error> {
    let mut search = Search {
        patterns: rules().iter().map(|_| None).collect(),
        found: BTreeMap::new(),
        telling: None,
        state: JobEnds::default(),
        applications: Vec::new(),
        attempts: Attempts::default(),
        splits: Splits::default(),
        report: Report::default(),
    };
    search.report.n_logs = listing.logs.len();

    let has_failed =
        |log: &Log| step_of(&log.name).is_some_and(|of| scope.failed.iter().any(|step| step == of));
    let logs = listing.logs.iter().filter(|log| scope.has(log));
    let (nodes, logs): (Vec<_>, Vec<_>) = logs.partition(|log| log.place == Some(LogOrigin::Node));
    let (mut containers, mut others): (Vec<_>, Vec<_>) =
        logs.into_iter().partition(|log| log.place == Some(LogOrigin::Container));
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

impl LogScope {
    fn has(&self, log: &Log) -> bool {
        self.steps.is_empty() || step_of(&log.name).is_none_or(|of| self.steps.iter().any(|step| step == of))
    }
}

struct Search {
    /// Patterns with groups, compiled when they match first.
    patterns: Vec<Option<Regex>>,
    /// Matches by the priority of their rule.
    found: BTreeMap<usize, RuleMatches>,
    telling: Option<Telling>,
    state: JobEnds,
    /// Applications that the steps submitted.
    applications: Vec<String>,
    attempts: Attempts,
    splits: Splits,
    report: Report,
}

/// The matches of a rule.
struct RuleMatches {
    block: Block,
    /// The task of each line of evidence.
    shown: Vec<String>,
    /// The tasks of all lines.
    tasks: BTreeSet<String>,
}

/// What the logs say about the end of jobs.
#[derive(Default)]
struct JobEnds {
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
        let mut section = Section::of(&log.location);
        let whole = section.name.clone();
        for (number, line) in lines.by_ref() {
            section.read(&line);
            // Containers also have scripts and settings, which are no logs.
            if section.name != whole && !is_log(&section.name) {
                continue;
            }
            self.splits.read(&section.task, &line);
            self.state.read(&line);
            self.state.has_failed |= log.is_state() && is_failure(&line);
            if log.place == Some(LogOrigin::Container) {
                self.attempts.read(&line);
            } else {
                self.applications.extend(submitted(&line));
            }
            // A line is evidence of one rule, the most specific one. In a file that a user saved, a line may be from any place.
            let matches = PATTERNS.matches(&line);
            let first =
                matches.iter().find(|&at| log.place.is_none_or(|place| rules()[at].places.contains(&place)));
            if let Some(at) = first {
                self.add(at, log, &section.task, number, &line);
            }
            // Standard output of a task may contain anything that a program printed.
            if section.name != "stdout" {
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

    fn add(&mut self, at: usize, log: &Log, task: &str, number: u64, line: &str) {
        let rule = &rules()[at];
        let pattern = self.patterns[at].get_or_insert_with(|| rule.regex());
        let Some(captures) = pattern.captures(line) else { return };
        let found = self.found.entry(at).or_insert_with(|| RuleMatches {
            block: Block {
                rule: &rule.id,
                cause: masked(&filled(&rule.cause, &captures)),
                remedy: masked(&filled(&rule.remedy, &captures)),
                evidence: Vec::new(),
                n_lines: 0,
            },
            shown: Vec::new(),
            tasks: BTreeSet::new(),
        });
        let RuleMatches { block, shown, tasks } = found;
        block.n_lines += 1;
        if tasks.len() < TASKS_MAX {
            tasks.insert(task.to_owned());
        }
        // One line per log of a task, so that the evidence shows how many are affected.
        let is_known =
            block.evidence.iter().zip(&*shown).any(|(one, of)| one.file == log.location && of == task);
        if block.evidence.len() < EVIDENCE_MAX && !is_known {
            let (file, text) = (log.location.clone(), masked(line));
            block.evidence.push(Evidence { file, line: number, text, input: None });
            shown.push(task.to_owned());
        }
    }

    fn has_cause(&self) -> bool {
        self.found.keys().any(|&at| rules()[at].kind == Kind::Cause)
    }

    fn finish(mut self, listing: &Listing) -> Report {
        let has_cause = self.has_cause();
        let has_completed = self.state.has_completed && !self.state.has_failed;
        self.found.retain(|&at, _| match rules()[at].kind {
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
        let splits = &self.splits;
        report.causes = self.found.into_values().map(|found| found.with_inputs(splits)).collect();
        let telling = self.telling;
        if let (false, Some(message)) =
            (has_cause, telling.as_ref().and_then(|telling| telling.message.clone()))
        {
            match report.causes.first_mut() {
                Some(symptom) => symptom.explain(message),
                None => report.causes.extend(Block::of_evidence(message)),
            }
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

impl RuleMatches {
    /// The block, with the inputs of its tasks.
    fn with_inputs(self, splits: &Splits) -> Block {
        let Self { mut block, shown, tasks } = self;
        for (evidence, task) in block.evidence.iter_mut().zip(&shown) {
            evidence.input = splits.of(task).map(|split| masked(&split.to_string()));
        }
        if block.cause.contains(INPUT) {
            let files: BTreeSet<_> =
                tasks.iter().filter_map(|task| splits.of(task)).map(|split| &split.file).collect();
            let mut shown: Vec<String> = files.iter().take(INPUTS_SHOWN).map(|file| masked(file)).collect();
            if files.len() > INPUTS_SHOWN {
                shown.push(format!("{} more files", files.len() - INPUTS_SHOWN));
            }
            let shown = if shown.is_empty() { "an input file".to_owned() } else { shown.join(", ") };
            block.cause = block.cause.replace(INPUT, &shown);
        }
        block
    }
}

impl JobEnds {
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

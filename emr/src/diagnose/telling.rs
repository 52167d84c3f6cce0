//! Lines that report a failure, for logs in which no rule finds a cause.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

use super::report::Evidence;
use crate::logs::{Log, LogOrigin, stem};
use crate::secrets::masked;

/// Number of lines that are shown.
const LINES_MAX: usize = 5;

/// Reports of errors, as loggers, Java, shells and programs write them.
static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b(?:ERROR|FATAL|SEVERE)\b|Exception\b|^Caused by:|^Error\b|\bError:|: (?:command )?not found|: No such file|Permission denied|[Ff]ailed with|Status : FAILED|Command Failed";
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("tested: {error}"))
});
/// Messages of this project's programs.
static PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:mapper|combiner|reducer|merge|sentimill|ngrams|vectors|trainer|emr): .")
        .unwrap_or_else(|error| unreachable!("tested: {error}"))
});

/// The last lines of a log that report a failure.
#[derive(Debug)]
pub struct Telling {
    /// The less, the more probable it is that the log shows the cause.
    rank: u8,
    lines: VecDeque<Evidence>,
    /// The last message of a program of this project.
    pub message: Option<Evidence>,
}

impl Telling {
    /// Starts a log.
    pub fn of(log: &Log) -> Self {
        let rank = match (log.place, stem(&log.name)) {
            (Some(LogOrigin::Container), "stderr") => 0,
            (Some(LogOrigin::Step) | None, _) => 1,
            (Some(LogOrigin::Bootstrap), _) => 2,
            (Some(LogOrigin::Container), _) => 3,
            (Some(LogOrigin::Controller), _) => 4,
            (Some(LogOrigin::Node), _) => 5,
        };
        Self { rank, lines: VecDeque::new(), message: None }
    }

    /// Adds a line, if it reports a failure.
    pub fn add(&mut self, log: &Log, number: u64, line: &str) {
        let is_message = PROGRAM.is_match(line);
        if !is_message && !FAILURE.is_match(line) {
            return;
        }
        let evidence = Evidence { file: log.location.clone(), line: number, text: masked(line), input: None };
        if is_message {
            self.message = Some(evidence);
        } else {
            self.lines.push_back(evidence);
            if self.lines.len() > LINES_MAX {
                self.lines.pop_front();
            }
        }
    }

    /// The log that shows more.
    pub fn or(self, other: Self) -> Self {
        let is_better = !self.lines.is_empty() && (other.lines.is_empty() || self.rank <= other.rank);
        let (mut better, worse) = if is_better { (self, other) } else { (other, self) };
        better.message = better.message.or(worse.message);
        better
    }

    /// Its lines, oldest first.
    pub fn lines(self) -> Vec<Evidence> {
        self.lines.into_iter().collect()
    }

    /// Whether no line reports a failure.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

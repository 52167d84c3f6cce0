//! The result of a diagnosis, as text and as JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::runner::is_of_programs;

/// What the logs show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is no log.
    #[default]
    NoLog,
    /// A rule names the cause of a failure.
    Cause,
    /// A job failed, and no rule names the cause.
    Unknown,
    /// No log reports a failure.
    NoFailure,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Path or URL of the log.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// The line, with secrets masked.
    pub text: String,
    /// The part of the input that the task read: `hdfs://host/part.gz, bytes 0 to 1234`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

/// A cause that a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The rule.
    pub rule: &'static str,
    /// The cause.
    pub cause: String,
    /// What removes it.
    pub remedy: String,
    /// One line of each of the first logs that show it.
    pub evidence: Vec<Evidence>,
    /// Number of lines that show it, in all logs that were read.
    pub n_lines: u64,
}

/// A diagnosis. The first cause is the most probable one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What the logs show.
    pub outcome: Outcome,
    /// Whether all jobs completed: the causes are then of attempts that were repeated.
    pub has_completed: bool,
    /// The causes, most probable first.
    pub causes: Vec<Block>,
    /// The last lines that report a failure, if no rule names the cause.
    pub telling: Vec<Evidence>,
    /// Number of logs that were found.
    pub n_logs: usize,
    /// Number of logs that were read.
    pub n_read: usize,
    /// Number of logs that were not read.
    pub n_omitted: usize,
    /// Number of decompressed bytes that were read.
    pub bytes_read: u64,
    /// Logs that were not read to their end.
    pub notes: Vec<String>,
    /// When to try again, in UTC, if there is no log yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_at: Option<String>,
}

/// Number of causes in the text. JSON has all.
const CAUSES_SHOWN: usize = 3;

impl Report {
    /// Takes the message of a failed run as the cause, if no log reports a failure.
    pub fn or_message(&mut self, message: &str) {
        if matches!(self.outcome, Outcome::NoLog | Outcome::NoFailure)
            && let Some(block) = Block::of_message(message)
        {
            self.causes = vec![block];
            self.outcome = Outcome::Cause;
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in self.causes.iter().take(CAUSES_SHOWN) {
            block.write(&mut text);
            text.push('\n');
        }
        if self.causes.len() > CAUSES_SHOWN {
            let others: Vec<_> = self.causes[CAUSES_SHOWN..].iter().map(|block| block.rule).collect();
            field(&mut text, "also found", &format!("{}; --json shows them", others.join(", ")));
        }
        match self.outcome {
            Outcome::Unknown => {
                field(
                    &mut text,
                    "cause",
                    "unknown: no rule recognises a line; these are the last lines that report a failure",
                );
                for line in &self.telling {
                    line.write(&mut text);
                }
            }
            Outcome::NoFailure => field(&mut text, "result", "no log reports a failure"),
            Outcome::Cause if self.has_completed => {
                field(&mut text, "result", "the job completed; Hadoop repeated the attempts that failed");
            }
            Outcome::Cause | Outcome::NoLog => {}
        }
        if self.outcome != Outcome::NoLog {
            let omitted =
                if self.n_omitted == 0 { String::new() } else { format!(", {} not read", self.n_omitted) };
            field(&mut text, "logs", &format!("{} read{omitted}", self.n_read));
        }
        for note in &self.notes {
            field(&mut text, "note", note);
        }
        text
    }
}

impl Block {
    /// A message of a program as a cause, if it states a remedy. Lines about progress state none.
    fn of_message(message: &str) -> Option<Self> {
        let (cause, remedy) = message.rsplit_once("; ")?;
        let (cause, remedy) = (cause.to_owned(), remedy.to_owned());
        Some(Self { rule: "message", cause, remedy, evidence: Vec::new(), n_lines: 0 })
    }

    /// The same, with the message as evidence.
    pub(super) fn of_evidence(message: Evidence) -> Option<Self> {
        let block = Self::of_message(&message.text)?;
        Some(Self { n_lines: 1, evidence: vec![message], ..block })
    }

    /// Adds the last message of a program to a symptom. It is the cause, if the program ended with a code of its own.
    pub(super) fn explain(&mut self, message: Evidence) {
        let code = self.rule.strip_prefix("exit-").and_then(|code| code.parse().ok());
        if code.is_some_and(is_of_programs)
            && let Some(block) = Self::of_message(&message.text)
        {
            self.cause = block.cause;
            self.remedy = block.remedy;
        }
        self.evidence.push(message);
    }

    fn write(&self, text: &mut String) {
        field(text, "cause", &format!("{} [{}]", self.cause, self.rule));
        for line in &self.evidence {
            line.write(text);
        }
        if self.n_lines > self.evidence.len() as u64 {
            field(text, "", &format!("{} lines in all", self.n_lines));
        }
        field(text, "remedy", &self.remedy);
    }
}

impl Evidence {
    fn write(&self, text: &mut String) {
        field(text, "evidence", &format!("{}:{}", self.file, self.line));
        field(text, "", &self.text);
        if let Some(input) = &self.input {
            field(text, "", &format!("the task read {input}"));
        }
    }
}

fn field(text: &mut String, name: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name:<11}{value}");
}

//! `emr diagnose`: the probable cause of a failure, by rules.

use clap::Args;
use program::exit::Exit;
use serde::Serialize;

use super::logs::{Again, Choice};
use crate::Error;
use crate::diagnose::{LogScope, Outcome, Report, diagnose};
use crate::failures::{Record, RunFailure};

const EXAMPLES: &str = "\
Examples:
  emr diagnose JOB.toml
      Find out why a job failed, on EMR, on Hadoop or on this machine

  emr diagnose job.log
      Find the cause in the saved output of Hadoop's job client";

/// Find the cause of a failure in logs
///
/// Reads logs of steps, bootstrap actions, containers and nodes, plain or compressed, and compares each line with rules. Prints
/// the probable cause, its evidence and the remedy. Exit codes: 0 a cause was found, or no log reports a failure; 65 a job
/// failed and no rule knows why; 66 no log; 75 no log yet.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Which logs.
    #[command(flatten)]
    pub choice: Choice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The document of `emr diagnose --json`.
#[derive(Serialize)]
struct Document<'a> {
    /// The failure of a job that did not run on EMR.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a RunFailure>,
    #[serde(flatten)]
    report: &'a Report,
}

impl Document<'_> {
    fn text(&self) -> String {
        let run = self.run.map(|failure| format!("run        {}\n", failure.text()));
        run.unwrap_or_default() + &self.report.text()
    }
}

/// Prints the causes.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.choice.find()?;
    let again = Again::from_now();
    let mut report =
        diagnose(&found.listing, &LogScope { steps: found.steps.clone(), failed: found.failed.clone() })?;
    if let Some(Record { message, .. }) = found.failure.as_ref().and_then(|failure| failure.record.as_ref()) {
        report.or_message(message);
    }
    let is_missing = !found.has_log() && report.outcome != Outcome::Cause;
    if is_missing {
        report.outcome = Outcome::NoLog;
        report.again_at = found.is_remote.then(|| again.to_string());
    }
    let document = Document { run: found.failure.as_ref(), report: &report };
    super::print(arguments.json, &document, || document.text())?;
    match report.outcome {
        Outcome::NoLog => Err(again.missing(&found)),
        Outcome::Unknown => {
            let n_read = report.n_read;
            Err(Error::new(
                Exit::BadInput,
                format!(
                    "{n_read} logs were read and no rule names the cause; the lines above are the last that report a failure"
                ),
            ))
        }
        Outcome::Cause | Outcome::NoFailure => Ok(()),
    }
}

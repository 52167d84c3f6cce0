//! `emr diagnose`: the probable cause of a failure, by rules.

use clap::Args;

use super::logs::{Again, Choice};
use crate::Error;
use crate::diagnose::{Outcome, Scope, diagnose};

const EXAMPLES: &str = "\
Examples:
  emr diagnose JOB.toml
      Find out why a job on EMR failed

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

/// Prints the causes.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.choice.find()?;
    let again = Again::from_now();
    let mut report =
        diagnose(&found.listing, &Scope { steps: found.steps.clone(), failed: found.failed.clone() })?;
    let is_missing = !found.has_log() && report.outcome != Outcome::Cause;
    if is_missing {
        report.outcome = Outcome::NoLog;
        report.again_at = found.is_remote.then(|| again.to_string());
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
    } else {
        report.text()
    };
    program::exit::print(&text).map_err(Error::Output)?;
    match report.outcome {
        Outcome::NoLog => Err(again.missing(&found)),
        Outcome::Unknown => Err(Error::NoCause { n_read: report.n_read }),
        Outcome::Cause | Outcome::NoFailure => Ok(()),
    }
}

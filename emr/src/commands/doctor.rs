//! `emr doctor`: what this machine can do, and what is missing.

use clap::Args;
use program::exit::Exit;
use store::S3Options;

use crate::Error;
use crate::doctor::{CheckState, Question, examine, json, text};

const EXAMPLES: &str = "\
Examples:
  emr doctor
      Check this machine: glibc, memory, disk, clock, Hadoop, GPUs, network

  emr doctor --run s3://bucket/run1 --json
      Check also the store of a run, and print JSON";

/// Check what this machine can do
///
/// Prints one line per check, and the remedy below each check that is not met. Exit codes: 0 nothing is missing; 78 something
/// is missing, without which a program cannot run.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Check the store of this run
    ///
    /// A folder or an s3:// URL. Writes one small object, .conditional-put, to check conditional put requests.
    #[arg(long, value_name = "URL")]
    pub run: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Options for S3.
    #[arg(long, value_name = "LIST", help = store::S3_HELP, long_help = store::S3_LONG_HELP)]
    pub s3: Option<S3Options>,
}

/// Prints what this machine can do.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let question = Question { run: arguments.run.clone(), s3: arguments.s3.clone().unwrap_or_default() };
    let checks = examine(&question);
    let printed = if arguments.json { json(&checks).to_string() + "\n" } else { text(&checks) };
    program::exit::print(&printed).map_err(Error::output)?;
    let missing: Vec<_> =
        checks.iter().filter(|check| check.state == CheckState::Missing).map(|check| check.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    let message = format!("missing on this machine: {missing}; the lines above have the remedies");
    Err(Error::new(Exit::Settings, message))
}

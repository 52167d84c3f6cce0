//! `trainer launch`: runs a command of this program as several ranks.

use std::process::ExitCode;

use ::launch::Options;
use training::ranks::run_ranks;

use crate::arguments::Launch;

/// Runs the ranks until all have exited. Returns the exit code of the rank that failed first.
pub fn launch(arguments: &Launch) -> ExitCode {
    let options = Options {
        log_dir: arguments.log_dir.clone(),
        master_port: arguments.master_port,
        ..Options::of(arguments.nproc)
    };
    run_ranks(&options, &arguments.command, arguments.oversubscribe)
}

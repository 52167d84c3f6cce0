//! `trainer launch`: runs a command of this program as several ranks.

use std::env;
use std::process::ExitCode;

use crate::arguments::Launch;
use launch::{Options, run};

/// Runs the ranks until all have exited. Returns the exit code of the rank that failed first.
pub fn launch(arguments: &Launch) -> ExitCode {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            return program::exit::Exit::Io.end("trainer", &format!("cannot find this program: {error}"));
        }
    };
    let options = Options {
        log_dir: arguments.log_dir.clone(),
        master_port: arguments.master_port,
        ..Options::of(arguments.nproc)
    };
    match run(&program, &arguments.command, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.end("trainer"),
    }
}

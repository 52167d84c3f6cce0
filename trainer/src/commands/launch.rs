//! `trainer launch`: runs a command of this program as several ranks.

use std::env;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread::available_parallelism;

use program::exit::Exit;

use crate::arguments::Launch;
use launch::{Options, run};

/// Ranks per core without `--oversubscribe`: each rank needs memory of its own.
const RANKS_PER_CORE: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Runs the ranks until all have exited. Returns the exit code of the rank that failed first.
pub fn launch(arguments: &Launch) -> ExitCode {
    let n_ranks_max = RANKS_PER_CORE.saturating_mul(available_parallelism().unwrap_or(NonZeroUsize::MIN));
    if arguments.nproc > n_ranks_max && !arguments.oversubscribe {
        let found = format!(
            "--nproc {}: expected at most {n_ranks_max}, {RANKS_PER_CORE} ranks per core; pass --oversubscribe for more",
            arguments.nproc
        );
        return Exit::Usage.end("trainer", &found);
    }
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            return Exit::Io.end("trainer", &format!("cannot find this program: {error}"));
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

//! Starts a command of this program as several ranks, or refuses to run as one of them.

use std::env;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;

use launch::{Options, Survival, run, run_surviving};
use program::exit::{Exit, Failed};

use crate::error::Result;
use crate::tell::{program_name, tell};

/// Ranks per core without `--oversubscribe`: each rank needs memory of its own.
const RANKS_PER_CORE: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Runs the ranks until all have exited. Returns the exit code of the rank that failed first.
pub fn run_ranks(options: &Options, command: &[OsString], oversubscribe: bool) -> ExitCode {
    run_by(options, oversubscribe, |program| run(program, command, options))
}

/// Runs ranks that go on without a lost one, until all have exited. Returns the exit code of the rank that failed first, or
/// success if a rank succeeded.
pub fn run_surviving_ranks(
    options: &Options,
    command: &[OsString],
    oversubscribe: bool,
    survival: &Survival<'_>,
) -> ExitCode {
    run_by(options, oversubscribe, |program| {
        for (rank, end) in run_surviving(program, command, options, survival)? {
            tell(&format!("warning: the others went on without rank {rank}, which {end}"));
        }
        Ok(())
    })
}

fn run_by(
    options: &Options,
    oversubscribe: bool,
    ranks: impl FnOnce(&Path) -> launch::Result<()>,
) -> ExitCode {
    let n_ranks_max = RANKS_PER_CORE.saturating_mul(available_parallelism().unwrap_or(NonZeroUsize::MIN));
    if options.n_ranks > n_ranks_max && !oversubscribe {
        let found = format!(
            "--nproc {}: expected at most {n_ranks_max}, {RANKS_PER_CORE} ranks per core; pass --oversubscribe for more",
            options.n_ranks
        );
        return Exit::Usage.end(program_name(), &found);
    }
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return Exit::Io.end(program_name(), &format!("cannot find this program: {error}")),
    };
    match ranks(&program) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A rank that ends by itself has a message with a remedy.
            let remedy = if error.is_from_outside() { "; start again, a training with --resume" } else { "" };
            error.end(program_name(), remedy)
        }
    }
}

/// Refuses to run a command as one of several ranks: each would do all of its work. `why` ends "expected 1".
pub fn check_alone(exit: Exit, why: &str) -> Result<()> {
    match env::var("WORLD_SIZE") {
        Ok(found) if found != "1" => {
            let message =
                format!("WORLD_SIZE is {found}, expected 1{why}; run it without launch and torchrun");
            Err(Failed::new(exit, message).into())
        }
        _ => Ok(()),
    }
}

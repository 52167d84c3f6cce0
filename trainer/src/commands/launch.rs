//! `trainer launch`: runs a command of this program as several ranks.

use std::num::NonZeroU16;
use std::process::ExitCode;
use std::time::Duration;

use ::launch::{Options, Survival};
use c10d::{TcpStore, lost_ranks};
use training::ranks::{run_ranks, run_surviving_ranks};

use crate::arguments::Launch;
use crate::error::Result;

/// Commands whose ranks go on without a lost one.
const SURVIVING: [&str; 2] = ["fit", "pretrain"];
/// Limit of a call of the ranks' store, which this process serves.
const STORE_LIMIT: Duration = Duration::from_secs(10);

/// Runs the ranks until all have exited. Returns the exit code of the rank that failed first.
pub fn launch(arguments: &Launch) -> Result<ExitCode> {
    let Launch { nproc, oversubscribe, log_dir, master_port, command } = arguments;
    let options = Options { log_dir: log_dir.clone(), master_port: *master_port, ..Options::of(*nproc) };
    let survives = command.first().is_some_and(|name| SURVIVING.iter().any(|surviving| name == surviving));
    if !survives || nproc.get() == 1 {
        return Ok(run_ranks(&options, command, *oversubscribe));
    }
    // It outlives any rank.
    let store = TcpStore::serve("127.0.0.1", master_port.map_or(0, NonZeroU16::get), STORE_LIMIT)?;
    // A store that does not respond is of no use to the ranks.
    let lost = || lost_ranks(&store).ok().flatten();
    let survival = Survival { store_port: store.port(), lost: &lost };
    Ok(run_surviving_ranks(&options, command, *oversubscribe, &survival))
}

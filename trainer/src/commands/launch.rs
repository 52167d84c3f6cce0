//! `trainer launch`: runs a command of this program as several ranks.

use std::net::{ToSocketAddrs, UdpSocket};
use std::num::NonZeroU16;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use ::launch::{Options, Survival};
use c10d::{TcpStore, known_ranks, start_ranks};
use training::ranks::{run_ranks, run_surviving_ranks};
use training::tell::tell;

use crate::arguments::Launch;
use crate::error::Result;

/// Commands whose ranks go on without a lost one.
const SURVIVING: [&str; 2] = ["fit", "pretrain"];
/// Limit of a call of the ranks' store, which this process or that of another launch serves.
const STORE_LIMIT: Duration = Duration::from_secs(10);
/// Maximum wait for the launch that serves the store.
const STORE_WAIT: Duration = Duration::from_secs(600);

/// Ranks of other launches end at the same time as those of this one, and then still use the store.
const LINGER: Duration = Duration::from_secs(1);

/// Runs the ranks until all have exited. Returns the exit code of the rank that failed first.
pub fn launch(arguments: &Launch) -> Result<ExitCode> {
    let Launch { nproc, oversubscribe, log_dir, master_port, master_addr, restarts, command } = arguments;
    let options = Options { log_dir: log_dir.clone(), master_port: *master_port, ..Options::of(*nproc) };
    let survives = command.first().is_some_and(|name| SURVIVING.iter().any(|surviving| name == surviving));
    let changes = master_addr.is_some() || *restarts > 0;
    if !survives && changes {
        let flag = if master_addr.is_some() { "--master-addr" } else { "--restarts" };
        let found = command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Err(training::Error::setting(flag, format!("for {found}"), "fit or pretrain").into());
    }
    if !survives || (nproc.get() == 1 && !changes) {
        return Ok(run_ranks(&options, command, *oversubscribe));
    }
    let host = master_addr.as_deref().unwrap_or("127.0.0.1");
    let port = master_port.map_or(0, NonZeroU16::get);
    let served = if is_here(host, port) { Some(TcpStore::serve(host, port, STORE_LIMIT)) } else { None };
    let (store, is_served_here) = match served {
        Some(Err(error)) if master_addr.is_none() => return Err(error.into()),
        Some(Ok(store)) => (store, true),
        // Another launch serves it, perhaps on this machine.
        not_served => {
            let wait = if not_served.is_some() { STORE_LIMIT } else { STORE_WAIT };
            tell(&format!("joins the training of the launch at {host}, port {port}"));
            drop(TcpStore::connect(host, port, wait)?);
            (TcpStore::connect(host, port, STORE_LIMIT)?, false)
        }
    };
    let first = start_ranks(&store, nproc.get())?;
    if !is_served_here && first == 0 {
        let found = format!("{host}, whose store at port {port} belongs to another program");
        return Err(
            training::Error::setting("--master-addr", found, "the machine of a training to join").into()
        );
    }
    let survival = Survival {
        store: (host, store.port()),
        is_shared: master_addr.is_some(),
        joins_from: (!is_served_here).then_some(first),
        restarts: *restarts,
        // A store that does not respond is of no use to the ranks.
        start_rank: &|| start_ranks(&store, 1).ok(),
        known: &|| known_ranks(&store).ok().flatten(),
    };
    let code = run_surviving_ranks(&options, command, *oversubscribe, &survival);
    if is_served_here && master_addr.is_some() {
        sleep(LINGER);
    }
    Ok(code)
}

/// Whether an address is one of this machine.
fn is_here(host: &str, port: u16) -> bool {
    let mut addresses = (host, port).to_socket_addrs().into_iter().flatten();
    addresses.any(|address| UdpSocket::bind((address.ip(), 0)).is_ok())
}

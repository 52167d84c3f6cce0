//! `trainer launch`: runs a command of this program as several ranks.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU16;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ::launch::{Options, Survival};
use c10d::{TcpStore, has_started_ranks, known_ranks, start_ranks};
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
/// Time between two looks at a store.
const LOOK: Duration = Duration::from_millis(100);

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
    if *restarts > 0 && nproc.get() == 1 && master_addr.is_none() {
        let expected = "0 with --nproc 1, because no rank is left that another one could join";
        return Err(training::Error::setting("--restarts", restarts, expected).into());
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
        Some(Err(error)) => match store_to_join(host, port, STORE_LIMIT) {
            Ok(store) => (store, false),
            Err(_) => return Err(error.into()),
        },
        None => (store_to_join(host, port, STORE_WAIT)?, false),
    };
    if is_served_here && master_addr.is_some() && is_loopback(host, port) {
        tell(&format!("--master-addr {host} is a loopback address: ranks on other machines cannot join"));
    }
    let first = start_ranks(&store, nproc.get())?;
    let survival = Survival {
        store: (host, store.port()),
        is_shared: master_addr.is_some(),
        joins_from: (!is_served_here).then_some(first),
        restarts: *restarts,
        // A store that does not respond is of no use to the ranks.
        start_rank: &|| start_ranks(&store, 1).ok(),
        tell: &|line| tell(line),
        known: &|| known_ranks(&store).ok().flatten(),
    };
    let code = run_surviving_ranks(&options, command, *oversubscribe, &survival);
    if is_served_here && master_addr.is_some() {
        sleep(LINGER);
    }
    Ok(code)
}

/// Connects to the store of another launch.
fn store_to_join(host: &str, port: u16, wait: Duration) -> Result<TcpStore> {
    tell(&format!("joins the training of the launch at {host}, port {port}"));
    drop(TcpStore::connect(host, port, wait)?);
    let store = TcpStore::connect(host, port, STORE_LIMIT)?;
    let since = Instant::now();
    // It counts its ranks after it has begun to serve.
    while !has_started_ranks(&store)? {
        if since.elapsed() > STORE_LIMIT {
            let found = format!("{host}, whose store at port {port} belongs to another program");
            return Err(training::Error::setting(
                "--master-addr",
                found,
                "the machine of a training to join",
            )
            .into());
        }
        sleep(LOOK);
    }
    Ok(store)
}

fn addresses(host: &str, port: u16) -> impl Iterator<Item = IpAddr> {
    (host, port).to_socket_addrs().into_iter().flatten().map(|address| address.ip())
}

/// Whether an address is one of this machine.
fn is_here(host: &str, port: u16) -> bool {
    addresses(host, port).any(|address| UdpSocket::bind((address, 0)).is_ok())
}

fn is_loopback(host: &str, port: u16) -> bool {
    addresses(host, port).all(|address| address.is_loopback())
}

//! `vectors serve`: a parameter server. Nothing here needs tensors.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use launch::interrupt::{Interrupts, Requested};
use launch::key;
use parameters::{Client, ClientOptions, LogSync, Server, ServerOptions, Statistics, Token, Wire};
use program::exit::chain;
use report::whole;
use training::print::print_json;
use training::tell::tell;
use training::{Error, Result};

use crate::arguments::{Security, Serve};

/// Time between two looks at signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time limit of `--statistics`.
const STATISTICS_LIMIT: Duration = Duration::from_secs(10);
/// Longest time of a flag, in seconds.
const SECONDS_MAX: f64 = 1e9;

/// Serves until a signal, or prints the statistics of running servers.
pub(super) fn serve(arguments: &Serve) -> Result<()> {
    let Some(folder) = &arguments.folder else { return statistics(arguments) };
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.min(SECONDS_MAX));
    let server = Server::start(&ServerOptions {
        listen: arguments.listen,
        folder: Some(folder.clone()),
        shard: arguments.shard.number,
        n_shards: arguments.shard.of,
        n_workers: arguments.workers,
        staleness: arguments.staleness.0,
        memory_max: arguments.memory,
        log_sync: arguments.log_sync,
        snapshot_every: seconds(arguments.snapshot_every),
        remove_after: seconds(arguments.remove_after),
        token: token(&arguments.security)?,
        tls: arguments.security.tls(),
    })?;
    if server.torn_bytes() > 0 {
        let torn = whole(server.torn_bytes());
        let of_pushes = match arguments.log_sync {
            LogSync::Always => "they were not acknowledged",
            LogSync::Interval | LogSync::Off => {
                "they may have been acknowledged: repeat the commands of the workers"
            }
        };
        tell(&format!(
            "removed {torn} bytes at the end of the log, which a crash had left incomplete; {of_pushes}"
        ));
    }
    tell(&format!("listening on {}; the state is in {}", server.address(), folder.display()));
    loop {
        let ends = interrupts.requested() == Some(Requested::Stop)
            || server.has_failed()
            || (arguments.until_done && server.is_done());
        // After the look: the removal of the last worker is what ends a server.
        tell_troubles(&server, arguments);
        if ends {
            break;
        }
        thread::park_timeout(LOOK_EVERY);
    }
    let statistics = server.stop()?;
    let ledger = &statistics.ledger;
    tell(&format!(
        "{} pushes of {} rows; the state is in {}",
        whole(ledger.pushes),
        whole(ledger.rows),
        folder.display()
    ));
    if !statistics.balanced {
        return Err(Error::internal(&format!("the ledger does not balance: {ledger:?}")));
    }
    if arguments.json { print_json(&statistics) } else { Ok(()) }
}

/// Warns of what has happened since the last call.
fn tell_troubles(server: &Server, arguments: &Serve) {
    if let Some(error) = server.failed_snapshot() {
        tell(&format!("warning: {}; the log has everything, and it is tried again", chain(&error)));
    }
    for worker in server.removed() {
        let after = arguments.remove_after;
        tell(&format!(
            "warning: worker {worker} was removed, because it was silent for {after} s; the others continue without the \
             rest of its sentences"
        ));
    }
}

/// Prints the statistics of servers, one JSON object per server.
fn statistics(arguments: &Serve) -> Result<()> {
    let client = Client::new(&ClientOptions {
        servers: arguments.statistics.clone(),
        token: token(&arguments.security)?,
        tls: arguments.security.tls(),
        wire: Wire::F32,
        patience: STATISTICS_LIMIT,
        stop: Arc::default(),
    })?;
    let statistics: Vec<Statistics> = client.statistics()?;
    statistics.iter().try_for_each(print_json)
}

/// The token of `--token-file`, or of the key of this process.
pub(super) fn token(security: &Security) -> Result<Option<Token>> {
    let secret = match &security.token_file {
        Some(path) => Some(key::of_file(path)?),
        None => key::of_this_process()?,
    };
    Ok(secret.map(|secret| Token::of_key(secret.bytes())).transpose()?)
}

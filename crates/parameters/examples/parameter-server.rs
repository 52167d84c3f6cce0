//! Serves until standard input ends, for `pushes` and for tests that kill a server.
//!
//! `parameter-server ADDRESS FOLDER LOG_SYNC WORKERS STALENESS MEMORY SNAPSHOT_S` prints the address; STALENESS can be `none`.

use std::error::Error;
use std::io::{Write, copy, sink, stdin, stdout};
use std::time::Duration;

use parameters::{Server, ServerOptions, TlsFiles};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, folder, log_sync, workers, staleness, memory, snapshot_s] = &arguments[..] else {
        return Err(
            "usage: parameter-server ADDRESS FOLDER LOG_SYNC WORKERS STALENESS MEMORY SNAPSHOT_S".into()
        );
    };
    let server = Server::start(&ServerOptions {
        listen: listen.parse()?,
        folder: Some(folder.into()),
        shard: 0,
        n_shards: 1,
        n_workers: workers.parse()?,
        staleness: if staleness == "none" { None } else { Some(staleness.parse()?) },
        memory_max: memory.parse()?,
        log_sync: log_sync.parse()?,
        snapshot_every: Duration::from_secs_f64(snapshot_s.parse()?),
        remove_after: Duration::from_secs(3600),
        token: None,
        tls: TlsFiles::default(),
    })?;
    writeln!(stdout(), "{}", server.address())?;
    copy(&mut stdin(), &mut sink())?;
    server.stop()?;
    Ok(())
}

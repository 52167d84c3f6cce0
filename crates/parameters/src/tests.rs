//! Tests over connections of this machine.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

mod cuts;
mod floods;
mod folders;
mod hostile;
mod keys;
mod kills;
mod memory;
mod ranks;
mod silence;
mod steps;
mod unauthenticated;
mod workers;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{
    Client, ClientOptions, Initial, LogSync, Moment, Optimizer, Read, Server, ServerOptions, Spec, TlsFiles,
    Update, Wire,
};

const N_ROWS: u32 = 300;
const DIM: usize = 5;
const LIMIT: Duration = Duration::from_secs(60);

fn options(folder: &Path, n_workers: u32, staleness: Option<u64>) -> ServerOptions {
    ServerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        folder: Some(folder.to_owned()),
        shard: 0,
        n_shards: 1,
        n_workers,
        staleness,
        memory_max: 1 << 24,
        log_sync: LogSync::Always,
        snapshot_every: Duration::from_secs(3600),
        remove_after: Duration::from_secs(3600),
        token: None,
        tls: TlsFiles::default(),
    }
}

/// Starts a server in the folder of one that has ended. A process that another test starts has a copy of its lock for a
/// moment.
fn start_again(options: &ServerOptions) -> crate::Result<Server> {
    let began = Instant::now();
    loop {
        match Server::start(options) {
            Err(error) if error.to_string().contains("another server uses") && began.elapsed() < LIMIT => {}
            started => return started,
        }
    }
}

fn client_options(servers: &[String]) -> ClientOptions {
    ClientOptions {
        servers: servers.to_vec(),
        token: None,
        tls: TlsFiles::default(),
        wire: Wire::F32,
        patience: Duration::from_secs(120),
        stop: Arc::default(),
    }
}

fn client(servers: &[String]) -> Client {
    Client::new(&client_options(servers)).unwrap()
}

fn address(server: &Server) -> String {
    server.address().to_string()
}

fn spec() -> Spec {
    Spec {
        name: "rows".to_owned(),
        n_rows: u64::from(N_ROWS),
        dim: DIM as u32,
        initial: Initial::Zero,
        optimizer: Optimizer::Sum,
        content: "of a test".to_owned(),
        min_count: 0,
    }
}

/// Adds 1 to each value of the rows.
fn ones(rows: Vec<u32>) -> Update {
    let values = vec![1.0; rows.len() * DIM];
    Update { table: 0, rows, values }
}

fn all_rows(client: &Client) -> Vec<f32> {
    let reads = vec![Read { table: 0, rows: (0..N_ROWS).collect() }];
    let pulling = client.pull(Moment::Now, reads).unwrap();
    client.pulled(pulling).unwrap().values.remove(0)
}

//! A client of all servers of the tables: a worker, or a reader.

mod pull;
mod push;
mod ranks;
mod remote;
mod waiting;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use program::exit::{Exit, Failed};
use tokio::runtime::Runtime;
use tonic::transport::Endpoint;

pub use self::pull::{Moment, Pulled, Pulling, Read};
pub use self::push::{Commit, Pushing, Sent, Update};
use self::remote::{Remote, RpcClient, repeat};
use crate::error::{Error, Result};
use crate::ledger::Statistics;
use crate::log::bound_text;
use crate::messages::{
    Ending, JoinRequest, KeyCount, KeysReply, KeysRequest, LeaveRequest, StatisticsRequest,
};
use crate::security::{Pass, TlsFiles, Token};
use crate::service::parameters_client::ParametersClient;
use crate::spec::Spec;
use crate::state::LEFT;
use crate::values::Wire;
use crate::{MESSAGE_BYTES_MAX, REQUEST_LIMIT};

/// Time limit of a connection attempt.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A connection that does not answer for this long is closed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The servers as HOST:PORT, in the order of their shards.
    pub servers: Vec<String>,
    /// The token of the servers.
    pub token: Option<Token>,
    /// Certificates. With an authority, connections are encrypted.
    pub tls: TlsFiles,
    /// How updates are sent.
    pub wire: Wire,
    /// Time after which a server that does not answer, or a slowest worker that completes no step, is an error.
    pub patience: Duration,
    /// Ends all waits when it is set.
    pub stop: Arc<AtomicBool>,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    servers: Vec<Arc<Remote>>,
    wire: Wire,
    stop: Arc<AtomicBool>,
    /// Why all ranks end.
    ended: Arc<OnceLock<Ending>>,
    /// The worker that has joined, with the completed steps of it on each server.
    joined: Option<Joined>,
    /// Floats per row of each table.
    dims: Vec<usize>,
    /// Identifies this client in pushes with a place. A random number, not 0.
    process: u64,
}

/// The place at which a worker continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The worker.
    pub worker: u32,
    /// The next step: completed steps on the server that has the fewest; [`crate::LEFT`] if it has left all servers, or a
    /// server has removed it.
    pub step: u64,
    /// Whether a server has removed it because it was silent for too long.
    pub is_removed: bool,
    /// The bound of the servers; `None`: unbounded.
    pub staleness: Option<u64>,
    /// The place of its last push that had one ([`Commit`]).
    pub place: Vec<u8>,
}

/// Keys with a row, by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Keys with their counts, from the row that was asked for on.
    pub keys: Vec<(Bytes, u64)>,
    /// Number of all keys with a row.
    pub n_keys: u64,
    /// Sum of the counts of all keys, and those of keys that came when all rows were used.
    pub n_counted: u64,
    /// Counts of keys that came when all rows were used.
    pub n_left_out: u64,
    /// Number of workers that have not left.
    pub n_workers: u32,
    /// The most steps that one of them has completed.
    pub most_steps: u64,
}

impl Client {
    /// A client of these servers. They are contacted by the first request.
    ///
    /// # Errors
    /// If an address or a certificate is invalid.
    pub fn new(options: &ClientOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|source| Error::threads(&source))?;
        let n_shards = options.servers.len() as u32;
        // Connections are made by tasks of the runtime.
        let servers = runtime.block_on(async {
            let remote = |(shard, name): (u32, &String)| {
                let (calls, name, patience) = (connect(options, name)?, name.clone(), options.patience);
                Ok(Arc::new(Remote { name, calls, shard, n_shards, patience }))
            };
            (0..).zip(&options.servers).map(remote).collect::<Result<_>>()
        })?;
        let stop = Arc::clone(&options.stop);
        let (wire, ended) = (options.wire, Arc::default());
        let process = RandomState::new().build_hasher().finish().max(1);
        Ok(Self { runtime, servers, wire, stop, ended, joined: None, dims: Vec::new(), process })
    }

    /// Creates a table on all servers, or checks that an existing one is the same. Returns its number.
    ///
    /// # Errors
    /// If a server refuses it or does not answer.
    pub fn create(&mut self, spec: &Spec) -> Result<u32> {
        let mut number = None;
        for server in &self.servers {
            let request = spec.to_request(server.shard, server.n_shards);
            let reply = self.wait(repeat(server, |mut calls| {
                let request = request.clone();
                async move { calls.create(request).await }
            }))?;
            let expected = *number.get_or_insert(reply.table);
            if reply.table != expected {
                let found = format!("table {}", reply.table);
                return Err(server.unexpected(&found, &format!("table {expected}, as the first server")));
            }
        }
        let number = number.unwrap_or_default();
        let length = self.dims.len().max(number as usize + 1);
        self.dims.resize(length, 0);
        self.dims[number as usize] = spec.dim as usize;
        Ok(number)
    }

    /// Takes part as a worker, again if it had been started before. One that a server has removed leaves the others, and can
    /// only read.
    ///
    /// # Errors
    /// If a server has other workers or does not answer.
    pub fn join(&mut self, worker: u32, n_workers: u32) -> Result<Joined> {
        let mut joined: Option<Joined> = None;
        for server in &self.servers {
            let reply = self.wait(repeat(server, |mut calls| async move {
                calls.join(JoinRequest { worker, n_workers }).await
            }))?;
            let of_first = Joined {
                worker,
                step: LEFT,
                is_removed: false,
                staleness: reply.staleness,
                place: reply.place,
            };
            let so_far = joined.get_or_insert(of_first);
            if so_far.staleness != reply.staleness {
                let (found, expected) = (bound_text(reply.staleness), bound_text(so_far.staleness));
                let (server, first) = (&server.name, &self.servers[0].name);
                return Err(Error::failed(
                    Exit::Settings,
                    format!(
                        "{server}: its --staleness is {found}, expected {expected}, as that of {first}; start all servers \
                         with the same"
                    ),
                ));
            }
            so_far.step = so_far.step.min(reply.step);
            so_far.is_removed |= reply.is_removed;
        }
        let mut joined = joined.ok_or_else(|| Failed::defect("a client without servers"))?;
        self.joined = Some(joined.clone());
        if joined.is_removed {
            joined.step = LEFT;
            // The other servers have heard from it, and would wait for its steps.
            self.leave()?;
        }
        Ok(joined)
    }

    /// The keys from a row on, of the first server. With a number of steps, it waits up to 30 ms for a worker that has completed
    /// more.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn keys(&self, row: u64, mut steps: Option<u64>) -> Result<KeyRange> {
        let mut all = Vec::new();
        loop {
            let (from, steps) = (row + all.len() as u64, steps.take());
            let ask = |mut calls: RpcClient| async move { calls.keys(KeysRequest { from, steps }).await };
            let reply = self.wait(repeat(&self.servers[0], ask))?;
            let KeysReply { keys, n_keys, n_counted, n_left_out, n_workers, most_steps } = reply;
            let is_last = keys.is_empty();
            all.extend(keys.into_iter().map(|KeyCount { key, n }| (key, n)));
            // A reply has a part of many keys.
            if is_last || row + all.len() as u64 >= n_keys {
                return Ok(KeyRange { keys: all, n_keys, n_counted, n_left_out, n_workers, most_steps });
            }
        }
    }

    /// Ends the part of this worker. The others no longer wait for it.
    ///
    /// # Errors
    /// If a server does not answer.
    pub fn leave(&self) -> Result<()> {
        self.leave_with(0)
    }

    /// Ends the part of this worker with a number, for [`Server::sum`](crate::Server::sum).
    ///
    /// # Errors
    /// If a server does not answer.
    pub fn leave_with(&self, number: u64) -> Result<()> {
        let worker = self.worker()?;
        for server in &self.servers {
            let request = LeaveRequest { worker, number, ending: None };
            let left = |mut calls: RpcClient| {
                let request = request.clone();
                async move { calls.leave(request).await }
            };
            self.wait(repeat(server, left))?;
        }
        Ok(())
    }

    /// The statistics of each server.
    ///
    /// # Errors
    /// If a server does not answer.
    pub fn statistics(&self) -> Result<Vec<Statistics>> {
        let of_server = |server: &Arc<Remote>| {
            let ask = |mut calls: RpcClient| async move { calls.statistics(StatisticsRequest {}).await };
            let reply = self.wait(repeat(server, ask))?;
            serde_json::from_str(&reply.json)
                .map_err(|error| server.unexpected(&error.to_string(), "statistics"))
        };
        self.servers.iter().map(of_server).collect()
    }

    fn worker(&self) -> Result<u32> {
        let joined = self.joined.as_ref().map(|joined| joined.worker);
        joined.ok_or_else(|| Failed::defect("a step of a client that has not joined").into())
    }

    fn dim(&self, table: u32) -> Result<usize> {
        let dim = self.dims.get(table as usize).copied().filter(|&dim| dim > 0);
        dim.ok_or_else(|| Failed::defect("rows of a table that was not created").into())
    }
}

/// A connection that is made by the first request.
fn connect(options: &ClientOptions, name: &str) -> Result<RpcClient> {
    let invalid = || {
        let message = format!("{name}: is no address of a server, expected HOST:PORT");
        Error::failed(Exit::Usage, message)
    };
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port {
        return Err(invalid());
    }
    let tls = options.tls.client()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{name}"))
        .map_err(|_| invalid())?
        .connect_timeout(CONNECT_LIMIT)
        .timeout(REQUEST_LIMIT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).map_err(|error| options.tls.refused(&error))?;
    }
    let pass = Pass::of(options.token.as_ref())?;
    Ok(ParametersClient::with_interceptor(endpoint.connect_lazy(), pass)
        .max_decoding_message_size(2 * MESSAGE_BYTES_MAX))
}

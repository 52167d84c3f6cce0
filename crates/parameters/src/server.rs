//! A server: it listens, recovers its state, and serves requests until it is stopped.

pub(crate) mod budget;
mod calls;
mod connections;
pub mod fuzzing;
mod shared;
mod silence;
mod sync;
mod writer;

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use durable::sync_folder;
use program::exit::{Exit, Failed};
use program::temporary;
use program::threads::locked;
use rustix::fs::{FlockOperation, flock};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server as Transport;

use self::budget::{Accounted, Budget};
use self::calls::Calls;
use self::connections::{FIRST_REQUEST_LIMIT, accept};
pub use self::shared::Stage;
use self::shared::{QUEUE_MAX, Request, Shared};
pub use self::sync::LogSync;
use self::writer::{Writer, Writing, repeat};
use crate::error::{At, Error, Result};
use crate::keys::Keys;
use crate::ledger::Statistics;
use crate::log::{Log, ServerSettings};
use crate::messages::Ending;
use crate::security::{Guard, TlsFiles, Token, check_address};
use crate::service::parameters_server::ParametersServer;
use crate::spec::Spec;
use crate::state::State;
use crate::table::{Table, tables_bytes};
use crate::tables::{Tables, saved};
use crate::{MESSAGE_BYTES_MAX, SILENCE, log, snapshot};

/// Requests of one connection that are served at the same time.
const STREAMS_MAX: u32 = 64;
/// Requests beyond these, and other errors of streams, after which a connection is closed. Without a limit, as tonic has it,
/// each takes memory.
const STREAM_ERRORS_MAX: usize = 1024;
/// Bytes of a request that a connection sends before they are read.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// A connection that does not answer for this long is closed.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Threads that serve requests, besides the one that writes.
const THREADS: usize = 2;
/// Connections at the same time: of clients that print statistics and the like,
const CONNECTIONS_MAX: usize = 256;
/// and of each worker, which has one and makes another one after an error.
const CONNECTIONS_PER_WORKER: usize = 4;
const LOCK: &str = "lock";

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address.
    pub listen: SocketAddr,
    /// The folder of snapshots and the log; `None`: nothing is durable, and the workers are ranks.
    pub folder: Option<PathBuf>,
    /// The part of the rows on this server,
    pub shard: u32,
    /// of this number of servers.
    pub n_shards: u32,
    /// Number of workers.
    pub n_workers: u32,
    /// Maximum number of steps by which a worker is ahead of the slowest; `None`: any.
    pub staleness: Option<u64>,
    /// Maximum memory of the tables in bytes. What they leave is for messages, within limits.
    pub memory_max: usize,
    /// When pushes are made durable.
    pub log_sync: LogSync,
    /// Time between two snapshots.
    pub snapshot_every: Duration,
    /// A worker that is silent for this long is removed.
    pub remove_after: Duration,
    /// The token that clients must have.
    pub token: Option<Token>,
    /// Certificates.
    pub tls: TlsFiles,
}

impl ServerOptions {
    /// The server of ranks, in the process of rank 0. It has no tables before [`Server::open`], and a rank that is lost ends
    /// all. Without a token, any client that connects can change the rows.
    pub fn of_ranks(listen: SocketAddr, n_ranks: u32, token: Option<Token>) -> Self {
        Self {
            listen,
            folder: None,
            shard: 0,
            n_shards: 1,
            n_workers: n_ranks,
            staleness: Some(0),
            memory_max: usize::MAX,
            log_sync: LogSync::Off,
            snapshot_every: Duration::MAX,
            remove_after: SILENCE,
            token,
            tls: TlsFiles::default(),
        }
    }
}

/// A running server. If it is dropped without [`Server::stop`], the state is as after a kill.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    torn_bytes: u64,
    /// `None` after the end.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    writer: JoinHandle<Result<Statistics>>,
    /// Nobody else writes into the folder.
    _lock: Option<File>,
}

impl Server {
    /// Recovers the state and starts to listen. On return, clients can connect.
    ///
    /// # Errors
    /// If the address or the folder cannot be used.
    pub fn start(options: &ServerOptions) -> Result<Self> {
        let lock = options.folder.as_deref().map(|folder| occupied(folder, options)).transpose()?;
        let listener = TcpListener::bind(options.listen).map_err(|source| cannot_listen(options, &source))?;
        let Recovered { state, tables, keys, log, torn_bytes } = match &options.folder {
            Some(folder) => recover(folder, options)?,
            None => Recovered::empty(options),
        };
        let place = (options.shard, options.n_shards);
        let (queue, requests) = sync_channel(QUEUE_MAX);
        let (slowest, watched) = watch::channel(state.slowest());
        let tables_bytes = tables_bytes(&state.specs, options.shard, options.n_shards);
        let budget = Arc::new(Budget::new(options.memory_max, tables_bytes));
        let shared = Arc::new(Shared::new(place, options.n_workers, queue, watched, (tables, keys), budget));
        let writing = Writing {
            settings: settings(options),
            memory_max: options.memory_max,
            log_sync: options.log_sync,
            snapshot_every: options.snapshot_every,
            remove_after: options.remove_after,
        };
        let writer = Writer::new(writing, state, log, slowest);
        let of_writer = Arc::clone(&shared);
        let writer = thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || writer.run(&requests, &of_writer))
            .map_err(|source| Error::threads(&source))?;
        let (runtime, stop, address) = serve(options, listener, Arc::clone(&shared))?;
        let running = Some(Running { runtime, stop, writer, _lock: lock });
        Ok(Self { address, shared, torn_bytes, running })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes at the end of the log that a crash had left incomplete, and that were removed. With [`LogSync::Always`], they
    /// were not acknowledged.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Whether the thread that writes has failed. [`Server::stop`] returns its error.
    pub fn has_failed(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.writer.is_finished())
    }

    /// Whether all workers have left or were removed.
    pub fn is_done(&self) -> bool {
        self.shared.slowest.borrow().n_here == 0
    }

    /// Stops serving, writes a snapshot and returns the statistics.
    ///
    /// # Errors
    /// If the log or the snapshot cannot be written.
    pub fn stop(mut self) -> Result<Statistics> {
        let ended = self.end(Request::Stop);
        ended.unwrap_or_else(|| Err(Failed::defect("a server was stopped twice").into()))
    }

    /// The error of a snapshot that could not be written since the last call. The log has what the snapshot would have.
    pub fn failed_snapshot(&self) -> Option<Error> {
        locked(&self.shared.failed_snapshot).take()
    }

    /// The workers that were removed since the last call.
    pub fn removed(&self) -> Vec<u32> {
        std::mem::take(&mut *locked(&self.shared.removed))
    }

    /// Passes the tables of ranks, which then train, the step with this number first.
    ///
    /// # Errors
    /// If the server has ended.
    pub fn open(&self, tables: Tables, step: u64) -> Result<()> {
        let sent = self.shared.queue.send(Request::Open(tables, step));
        sent.map_err(|_| Failed::defect("a server that has ended").into())
    }

    /// The tables of this moment and bytes of the caller. No table changes until the caller pushes its updates of a step whose
    /// rows it has pulled, with a staleness of 0.
    ///
    /// # Errors
    /// If the caller has 4 GiB or more.
    pub fn save(&self, place: &[u8]) -> Result<Vec<u8>> {
        let tables = self.shared.tables.read().unwrap_or_else(PoisonError::into_inner).clone();
        saved(&tables, place)
    }

    /// The largest number for which a rank was asked ([`Client::begin`](crate::Client::begin)) since the last call.
    pub fn requested(&self) -> u32 {
        self.shared.asked.swap(0, Relaxed)
    }

    /// The first worker that has not done this so far.
    pub fn first_before(&self, stage: Stage) -> Option<usize> {
        locked(&self.shared.stages).iter().position(|so_far| *so_far < stage)
    }

    /// Why all ranks end, if they do.
    pub fn ending(&self) -> Option<Ending> {
        self.shared.ending.get().cloned()
    }

    /// The sum of the numbers with which workers have left.
    pub fn sum(&self) -> u64 {
        self.shared.sum.load(Relaxed)
    }

    /// Ends the threads, and then leaves the folder to others; `None` if that was done before.
    fn end(&mut self, last: Request) -> Option<Result<Statistics>> {
        let Running { runtime, stop, writer, _lock } = self.running.take()?;
        let _ = stop.send(());
        // An error means that the thread has ended with an error, which is returned.
        let _ = self.shared.queue.send(last);
        let statistics = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Clients that wait are cut off; they ask the next server.
        runtime.shutdown_background();
        Some(statistics)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end(Request::Abandon));
    }
}

fn settings(options: &ServerOptions) -> ServerSettings {
    ServerSettings {
        shard: options.shard,
        servers: options.n_shards,
        workers: options.n_workers,
        staleness: options.staleness,
    }
}

/// Takes the folder of a server, of which others know the address.
fn occupied(folder: &Path, options: &ServerOptions) -> Result<File> {
    check_address(options.listen, options.token.as_ref(), &options.tls)?;
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    check_occupant(folder)?;
    lock(folder)
}

/// Refuses a folder with files that no server wrote.
fn check_occupant(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).at(folder, "list it")? {
        let name = entry.at(folder, "list it")?.file_name().to_string_lossy().into_owned();
        let is_own =
            [log::PREFIX, snapshot::PREFIX, temporary::PREFIX].into_iter().any(|own| name.starts_with(own));
        if name != LOCK && name != log::SYNCED && !is_own {
            let remedy =
                "expected the files of a parameter server or an empty folder; choose another --folder";
            let message = format!("{}: found {name}, {remedy}", folder.display());
            return Err(Error::failed(Exit::Usage, message));
        }
    }
    Ok(())
}

/// Keeps other servers out of the folder until the file is closed.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path).at(&path, "open it")?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let message = "another server uses the folder; stop it, or choose another --folder";
            Err(Error::failed(Exit::Usage, format!("{}: {message}", folder.display())))
        }
        Err(error) => Err(error.into()).at(&path, "lock it"),
    }
}

struct Recovered {
    state: State,
    tables: Vec<Arc<Table>>,
    keys: Keys,
    log: Option<Log>,
    torn_bytes: u64,
}

impl Recovered {
    /// The state of a server without a folder.
    fn empty(options: &ServerOptions) -> Self {
        let state = State::new(options.n_workers, options.staleness);
        Self { state, tables: Vec::new(), keys: Keys::default(), log: None, torn_bytes: 0 }
    }
}

/// Reads the newest snapshot and repeats the log after it.
fn recover(folder: &Path, options: &ServerOptions) -> Result<Recovered> {
    let settings = settings(options);
    let check = |specs: &[Spec]| check_memory(folder, options, specs);
    let found = snapshot::recover(folder, &settings, check)?;
    let new = || snapshot::LoadedSnapshot {
        state: State::new(settings.workers, settings.staleness),
        tables: Vec::new(),
        keys: Keys::default(),
        number: 0,
    };
    let snapshot::LoadedSnapshot { mut state, mut tables, mut keys, number } = found.unwrap_or_else(new);
    let apply = |entry| repeat(&mut state, (&mut tables, &mut keys), entry, &settings, &check);
    let (log, torn_bytes) = Log::recover(folder, &settings, number, apply)?;
    // Files that a kill has left between the snapshot and their deletion. The name of the snapshot may not be durable yet.
    sync_folder(folder).at(folder, "sync the folder")?;
    Log::delete_before(folder, number)?;
    Ok(Recovered { state, tables, keys, log: Some(log), torn_bytes })
}

/// Refuses tables that need more than `--memory`.
fn check_memory(folder: &Path, options: &ServerOptions, specs: &[Spec]) -> Result<()> {
    let needs = tables_bytes(specs, options.shard, options.n_shards);
    if needs > options.memory_max {
        let (folder, most) = (folder.display(), options.memory_max);
        let found = format!("{folder}: its tables need {needs} bytes, but --memory is {most}");
        return Err(Error::failed(Exit::Settings, format!("{found}; raise it, or choose another --folder")));
    }
    Ok(())
}

fn cannot_listen(options: &ServerOptions, source: &io::Error) -> Error {
    let address = options.listen;
    let message = match options.folder {
        Some(_) => format!(
            "--listen {address}: cannot listen; check that the address is of this machine and the port is free"
        ),
        None => {
            format!("rank 0 cannot listen on {address}; set another MASTER_PORT, of launch by --master-port")
        }
    };
    Failed::caused(Exit::Io, message, source).into()
}

fn serve(
    options: &ServerOptions,
    listener: TcpListener,
    shared: Arc<Shared>,
) -> Result<(Runtime, oneshot::Sender<()>, SocketAddr)> {
    let refused = |source| cannot_listen(options, &source);
    let address = listener.local_addr().map_err(refused)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(|source| Error::threads(&source))?;
    let incoming = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    let n_max = CONNECTIONS_MAX + CONNECTIONS_PER_WORKER * options.n_workers as usize;
    let (incoming, accepting) = accept(incoming.map_err(refused)?, n_max);
    runtime.spawn(accepting);
    let mut transport = Transport::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_local_error_reset_streams(Some(STREAM_ERRORS_MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE));
    if let Some(tls) = options.tls.server()? {
        transport = transport
            .tls_config(tls.timeout(FIRST_REQUEST_LIMIT))
            .map_err(|error| options.tls.refused(&error))?;
    }
    let budget = Arc::clone(&shared.budget);
    runtime.spawn(Arc::clone(&budget).watch());
    let calls = Calls { shared, staleness: options.staleness };
    let service = ParametersServer::new(calls).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let service = Accounted { service, budget };
    let service = InterceptedService::new(service, Guard(options.token.clone()));
    let (stop, stopped) = oneshot::channel();
    runtime.spawn(async move {
        let stopped = async move {
            let _ = stopped.await;
        };
        transport.serve_with_incoming_shutdown(service, incoming, stopped).await
    });
    Ok((runtime, stop, address))
}

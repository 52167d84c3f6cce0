//! Starts the ranks of a training on this machine, and ends when they have ended: `trainer launch --nproc 4 -- fit …`.
//!
//! Each rank gets torchrun's environment. What it prints goes to the terminal, and with a log folder to a file as well
//! (`output`). One rank's failure ends all, and the error tells which rank failed by itself and what it said:
//!
//! | What happened | What `launch` does |
//! |---|---|
//! | a rank ended with exit code 0 | waits for the others |
//! | with exit code 75, as after the loss of a peer | waits [`ROOT_CAUSE_WITHIN`] for a rank that ends otherwise, the root cause; then as below |
//! | with another code, or by a signal | SIGTERM to the others, [`GRACE`] later SIGKILL |
//! | `launch` gets SIGTERM or SIGINT | passes SIGTERM on, once for each, and waits: ranks write a checkpoint, which takes its time |
//! | SIGUSR1 | passes it on |
//! | a second SIGINT | SIGKILL to all |
//! | `launch` dies | the kernel kills the ranks |
//!
//! SIGINT is passed on as SIGTERM because a terminal sends it to the ranks too, and a second one would end them.
//! Ranks listen on 127.0.0.1 alone, and know each other by a key that each inherits as an open descriptor
//! ([`crate::key`]). It knows nothing of what the ranks do.

mod output;
mod rank;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use program::exit::{Exit, chain};
use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::key;
use rank::{Rank, Setting};

pub use rank::End;

/// Between SIGTERM and SIGKILL, for ranks that outlive another's failure.
pub const GRACE: Duration = Duration::from_secs(10);

/// How long a failure that may be another's consequence is not yet called the root cause. A rank that fails by itself
/// leaves its group first and then ends, so peers can be a little faster.
pub const ROOT_CAUSE_WITHIN: Duration = Duration::from_secs(2);

/// How long output is awaited after the end of all ranks: a process that a rank started may hold it open for ever.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);

/// How ranks are started.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of ranks.
    pub n_ranks: NonZeroUsize,
    /// A folder for `rank-0.log` and so on, made where it is not there; logs that are there grow.
    pub log_dir: Option<PathBuf>,
    /// The port of rank 0's store. None: one that is free.
    pub master_port: Option<NonZeroU16>,
    /// [`GRACE`], but for tests.
    pub grace: Duration,
    /// [`ROOT_CAUSE_WITHIN`], but for tests.
    pub root_cause_within: Duration,
}

impl Options {
    /// This many ranks on a free port, and nothing logged.
    pub fn of(n_ranks: NonZeroUsize) -> Self {
        Self { n_ranks, log_dir: None, master_port: None, grace: GRACE, root_cause_within: ROOT_CAUSE_WITHIN }
    }
}

/// Why not all ranks ended well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rank failed: the first that did so by itself.
    #[error("rank {rank} of {n_ranks} {end}{}{}", after(": ", message), after("; its log is ", log))]
    Rank {
        /// Which.
        rank: usize,
        /// Of how many.
        n_ranks: usize,
        /// How it ended.
        end: End,
        /// What it said: the message of its error file, else its last line on standard error, where `launch` saw it.
        message: Option<String>,
        /// Where all that it said is to be found.
        log: Option<String>,
    },
    /// A second SIGINT came before the ranks had ended.
    #[error("all ranks were killed at the second interrupt; start again from the last checkpoint")]
    Killed,
    /// The program could not be started.
    #[error("{}: cannot be started as rank {rank}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// As which rank.
        rank: usize,
        /// Why.
        source: io::Error,
    },
    /// The folder of the logs or a log could not be made.
    #[error("{}", path.display())]
    Log {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refused something that any process may have.
    #[error("cannot {what}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// The exit code of a program that ends with this: the rank's, or for a signal what [`End::exit_code`] says.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Rank { end, .. } => end.exit_code(),
            Self::Killed => Exit::TryAgain as u8,
            Self::Start { .. } | Self::Log { .. } | Self::System { .. } => Exit::Io as u8,
        }
    }

    /// Says on standard error why the program ends, on one line, and gives its exit code.
    pub fn end(&self, program: &str) -> ExitCode {
        // What it says does not depend on the code, which need not be one of ours.
        let _ = Exit::Internal.end(program, &chain(self));
        self.exit_code().into()
    }
}

/// The result of starting ranks and waiting for their end.
pub type Result<T> = std::result::Result<T, Error>;

fn after(before: &str, text: &Option<String>) -> String {
    text.as_ref().map(|text| format!("{before}{text}")).unwrap_or_default()
}

/// Starts the program with these arguments as each of the ranks, and waits until all have ended. Takes over SIGTERM,
/// SIGINT, SIGUSR1 and SIGCHLD of this process.
pub fn run(program: &Path, arguments: &[OsString], options: &Options) -> Result<()> {
    // Before the first rank can end.
    let signals = Listening::start().map_err(system("listen to signals"))?;
    let error_files = tempfile::tempdir().map_err(system("make a temporary folder"))?;
    if let Some(folder) = &options.log_dir {
        std::fs::create_dir_all(folder).map_err(|source| Error::Log { path: folder.clone(), source })?;
    }
    let secret = key::random_secret().map_err(system("draw random bytes"))?;
    let setting = Setting {
        program,
        arguments,
        n_ranks: options.n_ranks,
        master_port: options.master_port.map_or_else(free_port, |port| Ok(port.get()))?,
        log_dir: options.log_dir.as_deref(),
        error_files: error_files.path(),
        secret: &secret,
    };
    let (forwarding, forwarded) = channel();
    let ranks = (0..options.n_ranks.get()).map(|rank| Rank::start(rank, &setting, &forwarding));
    let mut watch = Watch::new(ranks.collect::<Result<_>>()?, options);
    watch.until_all_ended(&signals.received)?;
    // The threads that forward output hold the other ends, and nothing is ever sent.
    drop(forwarding);
    let _ = forwarded.recv_timeout(OUTPUT_WITHIN);
    watch.result()
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// A port that was free a moment ago. Another process may take it before rank 0 does; then rank 0 says so, and
/// starting again helps.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(system("find a free port on 127.0.0.1"))
}

/// The signals of this process as a queue.
struct Listening {
    received: Receiver<i32>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    fn start() -> io::Result<Self> {
        let mut signals = Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGUSR1])?;
        let handle = signals.handle();
        let (sender, received) = channel();
        let forward = move || {
            // Who listens no more has closed the handle too.
            let _ = signals.forever().try_for_each(|signal| sender.send(signal));
        };
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(forward)?;
        Ok(Self { received, handle, thread: Some(thread) })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It cannot panic; if it did, there is nothing left to do for it.
            let _ = thread.join();
        }
    }
}

/// What is to be done with the ranks that still run.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Wait.
    Running,
    /// A rank ended as after the loss of a peer. At this moment it counts as the root cause.
    Suspecting(Instant),
    /// They got SIGTERM. At this moment they get SIGKILL.
    Ending(Instant),
    /// They got SIGKILL.
    Killed,
}

/// The ranks, and what their ends and signals lead to.
struct Watch<'a> {
    ranks: Vec<Rank>,
    options: &'a Options,
    stage: Stage,
    root_cause: Option<(usize, End)>,
    stop_asked: bool,
    interrupted: bool,
}

impl<'a> Watch<'a> {
    fn new(ranks: Vec<Rank>, options: &'a Options) -> Self {
        let (stage, root_cause) = (Stage::Running, None);
        Self { ranks, options, stage, root_cause, stop_asked: false, interrupted: false }
    }

    fn until_all_ended(&mut self, signals: &Receiver<i32>) -> Result<()> {
        loop {
            for rank in 0..self.ranks.len() {
                if let Some(end) = self.ranks[rank].new_end().map_err(system("wait for a rank"))? {
                    self.ended(rank, end);
                }
            }
            if self.ranks.iter().all(Rank::has_ended) {
                return Ok(());
            }
            let signal = match self.stage {
                Stage::Running | Stage::Killed => signals.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Stage::Suspecting(until) | Stage::Ending(until) => {
                    signals.recv_timeout(until.saturating_duration_since(Instant::now()))
                }
            };
            match signal {
                Ok(signal) => self.told(signal),
                Err(RecvTimeoutError::Timeout) => self.time_is_up(),
                Err(RecvTimeoutError::Disconnected) => {
                    let source = io::Error::other("the thread that listens to signals has ended");
                    return Err(system("wait for ranks")(source));
                }
            }
        }
    }

    fn ended(&mut self, rank: usize, end: End) {
        match self.stage {
            // Whatever it did, it was told to end.
            Stage::Ending(_) | Stage::Killed => {}
            Stage::Running | Stage::Suspecting(_) if end.is_success() => {}
            Stage::Running | Stage::Suspecting(_) if end.may_be_a_consequence() => {
                // Ranks that were asked to stop end one by one with this code, and the last may still write.
                if self.root_cause.is_none() && !self.stop_asked {
                    self.stage = Stage::Suspecting(Instant::now() + self.options.root_cause_within);
                }
                self.root_cause.get_or_insert((rank, end));
            }
            Stage::Running | Stage::Suspecting(_) => {
                self.root_cause = Some((rank, end));
                self.end_all();
            }
        }
    }

    fn told(&mut self, signal: i32) {
        match signal {
            SIGINT if self.interrupted => self.kill_all(),
            SIGINT | SIGTERM => {
                self.interrupted |= signal == SIGINT;
                self.stop_asked = true;
                self.pass_on(Signal::TERM);
            }
            SIGUSR1 => self.pass_on(Signal::USR1),
            // SIGCHLD, of which one may stand for several ranks: each round of the loop looks at all.
            _ => {}
        }
    }

    fn time_is_up(&mut self) {
        match self.stage {
            Stage::Suspecting(_) => self.end_all(),
            Stage::Running | Stage::Ending(_) | Stage::Killed => self.kill_all(),
        }
    }

    fn end_all(&mut self) {
        self.pass_on(Signal::TERM);
        // A stopped rank hears nothing else.
        self.pass_on(Signal::CONT);
        self.stage = Stage::Ending(Instant::now() + self.options.grace);
    }

    fn kill_all(&mut self) {
        self.pass_on(Signal::KILL);
        self.stage = Stage::Killed;
    }

    fn pass_on(&self, signal: Signal) {
        self.ranks.iter().for_each(|rank| rank.signal(signal));
    }

    fn result(&self) -> Result<()> {
        match (self.root_cause, self.stage) {
            (Some((rank, end)), _) => {
                let of = &self.ranks[rank];
                let log = of.log().map(|path| path.display().to_string());
                Err(Error::Rank { rank, n_ranks: self.ranks.len(), end, message: of.message(), log })
            }
            (None, Stage::Killed) => Err(Error::Killed),
            (None, _) => Ok(()),
        }
    }
}

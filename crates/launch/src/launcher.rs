//! Starts the ranks of a training on this machine and waits for their exit: `trainer launch --nproc 4 -- fit …`.
//!
//! Each rank gets torchrun's environment variables. Its output goes to the terminal and, with a log folder, also to a
//! file (`output`). If one rank fails, all ranks are ended. The error contains the rank that is the root cause, and
//! its message. The launcher reacts to events as follows:
//!
//! | Event | Action of `launch` |
//! |---|---|
//! | a rank exits with code 0 | waits for the others |
//! | a rank exits with code 75: it lost a peer | waits [`ROOT_CAUSE_WITHIN`] for another code, then as below |
//! | a rank exits with another code, or a signal kills it | sends SIGTERM to the others, after [`GRACE`] SIGKILL |
//! | `launch` gets SIGTERM or SIGINT | forwards each as SIGTERM and waits until the ranks have written a checkpoint |
//! | `launch` gets SIGUSR1 | forwards it |
//! | `launch` gets a second SIGINT | sends SIGKILL to all |
//! | `launch` dies | the kernel kills the ranks |
//!
//! With [`run_surviving`], ranks go on without a lost one, as soon as they can:
//!
//! | Event | Action of `launch` |
//! |---|---|
//! | a rank exits with code 75, or a signal kills it | starts another one in its place, as long as restarts are left, and waits for the others; if one of them exits with code 0, so does `launch` |
//! | a rank ends that has not joined the others yet | waits for the others |
//! | none of the ranks that had joined runs | sends SIGKILL to those that wait to join |
//! | the ranks have declared one of them lost | sends SIGKILL to it: it may be stopped, and hold the lock of a folder |
//! | a rank is stopped, and [`STOPPED_MAX`] have passed since a rank succeeded | sends SIGKILL to it: the others are done |
//! | all that run are stopped, and [`STOPPED_MAX`] have passed since another was lost | sends SIGKILL to them |
//!
//! SIGINT is forwarded as SIGTERM because a terminal also sends it to the ranks, and a second SIGINT would end them.
//! Ranks listen only on 127.0.0.1, and authenticate with a key that each inherits as an open descriptor ([`crate::key`]),
//! unless other launches have ranks of the same training. `launch` does not depend on what the ranks compute.

mod output;
mod rank;

use std::env;
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
use program::system::cause_and_remedy;
use program::temporary;
use rustix::io::Errno;
use rustix::process::{Resource, Signal, getrlimit};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::key;
use rank::{Rank, Setting};

pub use rank::End;

/// Time between SIGTERM and SIGKILL for the remaining ranks after a failure.
pub const GRACE: Duration = Duration::from_secs(10);

/// Maximum wait for the root cause after a failure that may be a consequence. A failing rank leaves its group before
/// it exits, so its peers may exit slightly earlier.
pub const ROOT_CAUSE_WITHIN: Duration = Duration::from_secs(2);

/// Maximum wait for output after all ranks have exited: a process started by a rank may keep the pipe open.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);

/// Maximum time that a stopped rank is waited for after others have ended.
const STOPPED_MAX: Duration = Duration::from_secs(5);

/// Time between two looks at the ranks that were declared lost.
const LOOK: Duration = Duration::from_millis(200);

/// Descriptors that a rank needs: some 30 by itself, and sockets and pipes for each other one.
const FILES: u64 = 64;
const FILES_PER_RANK: u64 = 8;

/// Options of a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of ranks.
    pub n_ranks: NonZeroUsize,
    /// Folder for `rank-0.log` and so on, created if missing. Existing logs are appended to.
    pub log_dir: Option<PathBuf>,
    /// Port of rank 0's store. None selects a free port. [`Survival`] has its own.
    pub master_port: Option<NonZeroU16>,
    /// [`GRACE`]; tests use other values.
    pub grace: Duration,
    /// [`ROOT_CAUSE_WITHIN`]; tests use other values.
    pub root_cause_within: Duration,
}

impl Options {
    /// `n_ranks` ranks on a free port, without logs.
    pub fn of(n_ranks: NonZeroUsize) -> Self {
        Self { n_ranks, log_dir: None, master_port: None, grace: GRACE, root_cause_within: ROOT_CAUSE_WITHIN }
    }
}

/// How ranks go on without a lost one, and others join them. Their store outlives any rank: this launch or another one serves
/// it.
pub struct Survival<'a> {
    /// Host and port of the store.
    pub store: (&'a str, u16),
    /// Whether other launches can have ranks of the same training. Their users provide the key.
    pub is_shared: bool,
    /// Number of the first rank, if the ranks join a training that has begun.
    pub joins_from: Option<usize>,
    /// Maximum number of ranks that are started in place of lost ones.
    pub restarts: usize,
    /// Returns the number of a further rank, or none if the store does not respond.
    pub start_rank: &'a dyn Fn() -> Option<usize>,
    /// Prints what happens to ranks.
    pub tell: &'a dyn Fn(&str),
    /// What the ranks have declared so far. None before they can go on without a lost one, for example while they join: a lost
    /// rank then ends all.
    pub known: &'a dyn Fn() -> Option<Known>,
}

/// What ranks have declared in their store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The ranks that are in no group any more.
    pub lost: Vec<usize>,
    /// Those of the newest group; none before the group has changed.
    pub members: Vec<usize>,
    /// Whether nobody can join any more.
    pub is_over: bool,
}

/// Why the launch failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rank failed; it is the root cause.
    #[error(
        "rank {rank}{} {end}{}{}",
        after(" of ", n_ranks),
        after(": ", message),
        after("; its log is ", log)
    )]
    Rank {
        /// The rank.
        rank: usize,
        /// Number of ranks, if it is fixed.
        n_ranks: Option<usize>,
        /// How it exited.
        end: End,
        /// The message of its error file, otherwise its last line on standard error, if `launch` forwarded it.
        message: Option<String>,
        /// Path of its log, if there is one.
        log: Option<String>,
    },
    /// All ranks were killed at a second SIGINT.
    #[error("all ranks were killed at the second interrupt; start again from the last checkpoint")]
    Killed,
    /// The program could not be started.
    #[error("{}: cannot be started as rank {rank}: {}", program.display(), cause_and_remedy(source))]
    Start {
        /// The program.
        program: PathBuf,
        /// The rank to start.
        rank: usize,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The log folder or a log could not be created.
    #[error("{}: {}", path.display(), cause_and_remedy(source))]
    Log {
        /// The folder or file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A call of the operating system failed.
    #[error("cannot {what}: {}", cause_and_remedy(source))]
    System {
        /// The failed action.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// The exit code of a program that fails with this error: that of the rank, or [`End::exit_code`] for a signal.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Rank { end, .. } => end.exit_code(),
            Self::Killed => Exit::TryAgain as u8,
            Self::Start { .. } | Self::Log { .. } | Self::System { .. } => Exit::Io as u8,
        }
    }

    /// Whether a signal that is no defect of the rank killed it, for example when memory ran out.
    pub fn is_from_outside(&self) -> bool {
        matches!(self, Self::Rank { end: end @ End::Signal(_), .. } if end.is_survivable())
    }

    /// Prints the error and a remedy as one line on standard error and returns the exit code.
    pub fn end(&self, program: &str, remedy: &str) -> ExitCode {
        // `Exit::Internal` is a placeholder: the printed text does not depend on it, and a rank's code may not be in
        // `Exit`.
        let _ = Exit::Internal.end(program, &(chain(self) + remedy));
        self.exit_code().into()
    }
}

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

fn after(before: &str, text: &Option<impl std::fmt::Display>) -> String {
    text.as_ref().map(|text| format!("{before}{text}")).unwrap_or_default()
}

/// Starts the program with these arguments once per rank, and waits until all have exited. Handles SIGTERM, SIGINT,
/// SIGUSR1 and SIGCHLD of this process.
pub fn run(program: &Path, arguments: &[OsString], options: &Options) -> Result<()> {
    start_and_wait(program, arguments, options, None).map(drop)
}

/// Does the same as [`run`] with ranks that go on without a lost one. Returns the lost ranks that were not replaced, and how they
/// exited.
pub fn run_surviving(
    program: &Path,
    arguments: &[OsString],
    options: &Options,
    survival: &Survival<'_>,
) -> Result<Vec<(usize, End)>> {
    start_and_wait(program, arguments, options, Some(survival))
}

fn start_and_wait(
    program: &Path,
    arguments: &[OsString],
    options: &Options,
    survival: Option<&Survival<'_>>,
) -> Result<Vec<(usize, End)>> {
    check_files(options.n_ranks).map_err(|source| Error::System { what: "start the ranks", source })?;
    // Signals must be registered before the first rank exits.
    let signals = Listening::start().map_err(system("handle signals"))?;
    let error_files = temporary::folder_in(&env::temp_dir()).map_err(system("make a temporary folder"))?;
    if let Some(folder) = &options.log_dir {
        std::fs::create_dir_all(folder).map_err(|source| Error::Log { path: folder.clone(), source })?;
    }
    let secret = key::random_secret().map_err(system("draw random bytes"))?;
    let setting = Setting {
        program,
        arguments,
        n_ranks: options.n_ranks,
        master_addr: survival.map_or("127.0.0.1", |survival| survival.store.0),
        master_port: match (survival, options.master_port) {
            (Some(survival), _) => survival.store.1,
            (None, Some(port)) => port.get(),
            (None, None) => free_port()?,
        },
        log_dir: options.log_dir.as_deref(),
        error_files: error_files.path(),
        secret: (!survival.is_some_and(|survival| survival.is_shared)).then_some(&secret),
        survives: survival.is_some(),
    };
    let (forwarding, forwarded) = channel();
    let joins_from = survival.and_then(|survival| survival.joins_from);
    let start = |rank, joins| Rank::start(rank, joins, &setting, &forwarding);
    let numbers = (0..options.n_ranks.get()).map(|rank| rank + joins_from.unwrap_or(0));
    let ranks = numbers.map(|rank| start(rank, joins_from.is_some())).collect::<Result<_>>()?;
    let mut watch = Watch::new(ranks, options, survival);
    watch.until_all_ended(&signals.received, &|rank| start(rank, true))?;
    // Forwarding threads hold the other senders, and nothing is ever sent.
    drop(forwarding);
    let _ = forwarded.recv_timeout(OUTPUT_WITHIN);
    watch.result()
}

/// Refuses to start ranks that would run out of descriptors: PyTorch reports this as a rank that does not join.
fn check_files(n_ranks: NonZeroUsize) -> io::Result<()> {
    let needed = FILES + FILES_PER_RANK.saturating_mul(n_ranks.get() as u64);
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => Err(Errno::MFILE.into()),
        _ => Ok(()),
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// Returns a port that is free now. Another process may take it before rank 0. Then rank 0 reports an error, and a
/// new launch can succeed.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(system("find a free port on 127.0.0.1"))
}

/// A queue of the signals of this process.
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
            // Dropping the receiver also closes the handle.
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
            // The thread does not panic; a panic would need no action here.
            let _ = thread.join();
        }
    }
}

/// What happens to the running ranks.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// All run.
    Running,
    /// A rank exited with the code for a lost peer. At this time, it counts as the root cause.
    Suspecting(Instant),
    /// SIGTERM was sent. At this time, SIGKILL is sent.
    Ending(Instant),
    /// SIGKILL was sent.
    Killed,
}

/// The ranks, and the reactions to their exits and to signals.
struct Watch<'a> {
    ranks: Vec<Rank>,
    options: &'a Options,
    survival: Option<&'a Survival<'a>>,
    known: Option<Known>,
    stage: Stage,
    root_cause: Option<(usize, End)>,
    /// Ranks without which the others went on.
    lost: Vec<(usize, End)>,
    /// Ranks that ended before they joined the others.
    apart: Vec<(usize, End)>,
    /// Lost ranks in whose place another one was started.
    replaced: Vec<usize>,
    /// Number of tries to replace a rank.
    n_restarts: usize,
    /// When a rank succeeded last.
    succeeded: Option<Instant>,
    /// When a rank was lost last.
    lost_at: Option<Instant>,
    stop_asked: bool,
    interrupted: bool,
}

impl<'a> Watch<'a> {
    fn new(ranks: Vec<Rank>, options: &'a Options, survival: Option<&'a Survival<'a>>) -> Self {
        let stage = Stage::Running;
        let (root_cause, lost, apart, replaced, n_restarts) = (None, Vec::new(), Vec::new(), Vec::new(), 0);
        let (succeeded, lost_at) = (None, None);
        let (stop_asked, interrupted) = (false, false);
        Self {
            ranks,
            options,
            survival,
            known: None,
            stage,
            root_cause,
            lost,
            apart,
            replaced,
            n_restarts,
            succeeded,
            lost_at,
            stop_asked,
            interrupted,
        }
    }

    /// `start` starts a rank in place of a lost one.
    fn until_all_ended(
        &mut self,
        signals: &Receiver<i32>,
        start: &dyn Fn(usize) -> Result<Rank>,
    ) -> Result<()> {
        loop {
            for rank in 0..self.ranks.len() {
                if let Some(end) = self.ranks[rank].new_end().map_err(system("wait for a rank"))?
                    && self.on_exit(rank, end)
                {
                    self.replace(rank, end, start);
                }
            }
            if self.ranks.iter().all(Rank::has_ended) {
                return Ok(());
            }
            let signal = match self.stage {
                Stage::Running if self.survival.is_some() => signals.recv_timeout(LOOK),
                Stage::Running | Stage::Killed => signals.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Stage::Suspecting(until) | Stage::Ending(until) => {
                    signals.recv_timeout(until.saturating_duration_since(Instant::now()))
                }
            };
            match signal {
                Ok(signal) => self.on_signal(signal),
                Err(RecvTimeoutError::Timeout) => self.time_is_up(),
                Err(RecvTimeoutError::Disconnected) => {
                    let source = io::Error::other("the thread that handles signals exited");
                    return Err(system("wait for ranks")(source));
                }
            }
        }
    }

    /// Returns whether another rank can take the place of this one.
    fn on_exit(&mut self, rank: usize, end: End) -> bool {
        let known = self.known();
        match self.stage {
            // The rank was ended by `launch`, so its exit code does not matter.
            Stage::Ending(_) | Stage::Killed => {}
            Stage::Running | Stage::Suspecting(_) if end.is_success() => {
                self.succeeded = Some(Instant::now());
            }
            Stage::Running if self.has_not_joined(rank, known.as_ref()) => {
                self.apart.push((rank, end));
                return matches!(end, End::Signal(_));
            }
            Stage::Running if end.is_survivable() && known.is_some() => {
                self.lost.push((rank, end));
                self.lost_at = Some(Instant::now());
                return true;
            }
            Stage::Running | Stage::Suspecting(_) if end.may_be_a_consequence() => {
                // Ranks that got a request to stop exit one after the other with this code, while the last one may
                // still be writing.
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
        false
    }

    /// Starts a rank in place of a lost one, if restarts are left.
    fn replace(&mut self, at: usize, end: End, start: &dyn Fn(usize) -> Result<Rank>) {
        let Some(survival) = self.survival else { return };
        let is_over = self.stop_asked || self.known.as_ref().is_none_or(|known| known.is_over);
        if is_over || self.n_restarts >= survival.restarts || self.ranks.iter().all(Rank::has_ended) {
            return;
        }
        self.n_restarts += 1;
        let lost = self.ranks[at].number;
        let Some(number) = (survival.start_rank)() else { return };
        match start(number) {
            Ok(rank) => {
                self.ranks.push(rank);
                self.replaced.push(at);
                (survival.tell)(&format!("rank {lost} {end}; started rank {number} in its place"));
            }
            Err(error) => (survival.tell)(&format!("warning: rank {lost} is not replaced: {error}")),
        }
    }

    fn on_signal(&mut self, signal: i32) {
        match signal {
            SIGINT if self.interrupted => self.kill_all(),
            SIGINT | SIGTERM => {
                self.interrupted |= signal == SIGINT;
                self.stop_asked = true;
                self.pass_on(Signal::TERM);
            }
            SIGUSR1 => self.pass_on(Signal::USR1),
            // SIGCHLD: one signal may report several ranks, so the loop checks all of them.
            _ => {}
        }
    }

    fn time_is_up(&mut self) {
        match self.stage {
            Stage::Running => self.kill_lost(),
            Stage::Suspecting(_) => self.end_all(),
            Stage::Ending(_) | Stage::Killed => self.kill_all(),
        }
    }

    /// What the ranks have declared. Once one has succeeded, the launch that serves the store may have ended.
    fn known(&mut self) -> Option<Known> {
        if self.succeeded.is_none()
            && let Some(known) = self.survival.and_then(|survival| (survival.known)())
        {
            self.known = Some(known);
        }
        self.known.clone()
    }

    /// Whether a rank waits to join the others, or did until it ended.
    fn has_not_joined(&self, rank: usize, known: Option<&Known>) -> bool {
        let Rank { number, joins, .. } = &self.ranks[rank];
        *joins
            && known
                .is_none_or(|Known { lost, members, .. }| !lost.contains(number) && !members.contains(number))
    }

    fn kill_lost(&mut self) {
        let known = self.known();
        let (waiting, joined): (Vec<usize>, Vec<usize>) =
            (0..self.ranks.len()).partition(|&rank| self.has_not_joined(rank, known.as_ref()));
        let of = |ranks: &[usize]| ranks.iter().map(|&rank| &self.ranks[rank]).collect::<Vec<_>>();
        let (waiting, joined) = (of(&waiting), of(&joined));
        let Known { lost, members, .. } = known.unwrap_or_default();
        let is_over = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() > STOPPED_MAX);
        let none_runs = || joined.iter().all(|rank| rank.has_ended() || rank.is_stopped());
        let is_done = is_over(self.succeeded) || (is_over(self.lost_at) && none_runs());
        // Ranks of other launches may go on, and those that wait join them.
        let is_here = |member: &usize| joined.iter().any(|rank| rank.number == *member);
        let is_end = self.succeeded.is_some() || members.iter().all(is_here);
        let in_vain = is_end && !joined.is_empty() && joined.iter().all(|rank| rank.has_ended());
        let to_kill = |rank: &&&Rank| lost.contains(&rank.number) || (is_done && rank.is_stopped());
        joined.iter().filter(to_kill).for_each(|rank| rank.signal(Signal::KILL));
        waiting.iter().filter(|_| in_vain).for_each(|rank| rank.signal(Signal::KILL));
    }

    fn end_all(&mut self) {
        self.pass_on(Signal::TERM);
        // A stopped rank receives no other signal.
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

    fn result(&self) -> Result<Vec<(usize, End)>> {
        let is_left = self.ranks.len() > self.lost.len() + self.apart.len();
        match (self.root_cause.or(if is_left { None } else { self.first_lost() }), self.stage) {
            (Some((rank, end)), _) => {
                let of = &self.ranks[rank];
                let log = of.log().map(|path| path.display().to_string());
                let n_ranks = (!self.ranks.iter().any(|rank| rank.joins)).then_some(self.ranks.len());
                Err(Error::Rank { rank: of.number, n_ranks, end, message: of.message(), log })
            }
            (None, Stage::Killed) => Err(Error::Killed),
            (None, _) => {
                let lost = self.lost.iter().filter(|(rank, _)| !self.replaced.contains(rank));
                Ok(lost.map(|&(rank, end)| (self.ranks[rank].number, end)).collect())
            }
        }
    }

    /// Why no rank is left: the first one that was killed, or else the first one that exited. Ranks that were asked to stop
    /// exit by themselves.
    fn first_lost(&self) -> Option<(usize, End)> {
        let is_cause = |&&(_, end): &&(usize, End)| end.may_be_a_consequence() == self.stop_asked;
        self.lost.iter().find(is_cause).or(self.lost.first()).or(self.apart.first()).copied()
    }
}

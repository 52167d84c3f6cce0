//! The process of one rank: start, signals and exit.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::available_parallelism;

use program::exit::Exit;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
use signal_hook::low_level::signal_name;

use super::output::{Forwarding, LastLine, Lines, Stream};
use super::{Error, Result};
use crate::environment::{JOINS, SURVIVES};
use crate::{failure, ffi, key};

/// Environment variable with the number of libtorch's threads per rank.
const THREADS: &str = "OMP_NUM_THREADS";

/// Settings that all ranks share.
pub(super) struct Setting<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [OsString],
    pub(super) n_ranks: NonZeroUsize,
    pub(super) master_addr: &'a str,
    pub(super) master_port: u16,
    pub(super) log_dir: Option<&'a Path>,
    pub(super) error_files: &'a Path,
    /// The secret with which the ranks of this launch authenticate each other, if no other launch has ranks of this training.
    pub(super) secret: Option<&'a str>,
    /// Whether the ranks go on without a lost one.
    pub(super) survives: bool,
}

/// A rank's process. Dropping it kills the process.
pub(super) struct Rank {
    /// The number by which it was started.
    pub(super) number: usize,
    /// Whether it joins a training that has begun.
    pub(super) joins: bool,
    child: Child,
    end: Option<End>,
    error_file: PathBuf,
    log: Option<PathBuf>,
    last_line: LastLine,
}

impl Rank {
    pub(super) fn start(
        rank: usize,
        joins: bool,
        setting: &Setting<'_>,
        forwarding: &Sender<Forwarding>,
    ) -> Result<Self> {
        let log = setting.log_dir.map(|folder| folder.join(format!("rank-{rank}.log")));
        let log_file = log.as_deref().map(open_log).transpose()?;
        let error_file = setting.error_files.join(format!("rank-{rank}.json"));
        let mut command = Command::new(setting.program);
        command.args(setting.arguments).stdin(Stdio::null());
        place(&mut command, rank, joins, setting);
        command.env(failure::ERROR_FILE, &error_file);
        // A progress bar requires the terminal itself.
        if rank > 0 || log.is_some() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        ffi::kill_with_parent(&mut command);
        let failed = |source| Error::Start { program: setting.program.to_owned(), rank, source };
        if let Some(secret) = setting.secret {
            key::hand_over(&mut command, secret).map_err(failed)?;
        }

        let child = command.spawn().map_err(failed)?;
        let last_line = LastLine::default();
        let mut started = Self { number: rank, joins, child, end: None, error_file, log, last_line };
        let log_of_stdout = log_file.as_ref().map(File::try_clone).transpose().map_err(failed)?;
        if let Some(pipe) = started.child.stdout.take() {
            // The first rank writes results, and any rank can become the first.
            let shown = if setting.survives { 0 } else { rank };
            Lines::of(shown, Stream::Out, log_of_stdout).forward(pipe, forwarding).map_err(failed)?;
        }
        if let Some(pipe) = started.child.stderr.take() {
            let lines = Lines::of(rank, Stream::Err(started.last_line.clone()), log_file);
            lines.forward(pipe, forwarding).map_err(failed)?;
        }
        Ok(started)
    }

    /// Returns how the rank exited, once.
    pub(super) fn new_end(&mut self) -> io::Result<Option<End>> {
        if self.has_ended() {
            return Ok(None);
        }
        self.end = self.child.try_wait()?.map(End::of);
        Ok(self.end)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether a signal has stopped the rank.
    pub(super) fn is_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !self.has_ended() && matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(Some(_)))
    }

    /// Sends a signal, unless the rank has exited.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.has_ended() {
            // Only this object waits for the child, so the process number cannot have been reused.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// The rank's error message.
    pub(super) fn message(&self) -> Option<String> {
        failure::message(&self.error_file).or_else(|| self.last_line.get())
    }

    pub(super) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if !self.has_ended() {
            // Fails only if the process has exited.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn open_log(path: &Path) -> Result<File> {
    // Appends: the log of a failure is kept, and lines of two threads do not overwrite each other.
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|source| Error::Log { path: path.to_owned(), source })
}

/// Sets torchrun's environment variables.
fn place(command: &mut Command, rank: usize, joins: bool, setting: &Setting<'_>) {
    let n_ranks = setting.n_ranks.get();
    // The number of ranks of a training that has begun is not known here.
    let world_size = if joins { rank + 1 } else { n_ranks };
    for (name, number) in
        [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", world_size), ("LOCAL_WORLD_SIZE", world_size)]
    {
        command.env(name, number.to_string());
    }
    command.env("MASTER_ADDR", setting.master_addr).env("MASTER_PORT", setting.master_port.to_string());
    // Rank 0 or this process serves the store, even if this process itself runs under a torchrun agent.
    command.env_remove("TORCHELASTIC_USE_AGENT_STORE").env_remove("TORCHELASTIC_RESTART_COUNT");
    for (variable, is_set) in [(SURVIVES, setting.survives), (JOINS, joins)] {
        command.env_remove(variable);
        if is_set {
            command.env(variable, "1");
        }
    }
    if setting.secret.is_some() {
        // The ranks communicate only within this machine, whatever interface is configured for several machines.
        command.env_remove("GLOO_SOCKET_IFNAME").env("NCCL_SOCKET_IFNAME", "lo");
    }
    if env::var_os(THREADS).is_none() {
        let n_cores = available_parallelism().map_or(1, NonZeroUsize::get);
        command.env(THREADS, (n_cores / n_ranks).max(1).to_string());
    }
}

/// How a rank exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Code(u8),
    /// By a signal.
    Signal(i32),
}

impl End {
    fn of(status: ExitStatus) -> Self {
        // A process that has exited has either an exit code, which is at most 255, or a signal.
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        code.map_or_else(|| Self::Signal(status.signal().unwrap_or_default()), Self::Code)
    }

    pub(super) fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Whether another rank's exit may be the cause.
    pub(super) fn may_be_a_consequence(self) -> bool {
        self == Self::Code(Exit::TryAgain as u8)
    }

    /// Whether the other ranks can go on: the rank was killed from outside, or was lost to its group.
    pub(super) fn is_survivable(self) -> bool {
        self.exit_code() == Exit::TryAgain as u8
    }

    /// The exit code to return for this exit. A signal that a process raises by a defect is an internal error. Any
    /// other came from outside, for example when memory ran out, and a new start can succeed.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP) => {
                Exit::Internal as u8
            }
            Self::Signal(_) => Exit::TryAgain as u8,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was killed by {name}"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_distinguishes_defects_from_outside_signals() {
        assert_eq!(End::of(ExitStatus::from_raw(74 << 8)), End::Code(74));
        assert_eq!(End::of(ExitStatus::from_raw(9)).exit_code(), 75);
        assert_eq!(End::of(ExitStatus::from_raw(11 | 0x80)).exit_code(), 70);
        assert_eq!(End::Signal(9).to_string(), "was killed by SIGKILL");
        assert_eq!(End::Signal(40).to_string(), "was killed by signal 40");
    }
}

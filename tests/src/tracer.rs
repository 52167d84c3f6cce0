//! Runs a program under ptrace. Reports each system call that reads or changes a file. At such a call, it can
//! kill the program, or make the call fail or wait.
//!
//! The program is not modified and uses real files. The thread that makes a call is stopped before the call;
//! other threads continue.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

pub use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::programs::without_hadoop;
use crate::skipped;

/// A system call before its execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Kind of the call.
    pub kind: Kind,
    /// The file of the call; `/dev/stdout` and `/dev/stderr` for these two, whatever they are connected to.
    pub path: PathBuf,
}

/// What a system call does to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens a file, and creates it if it does not exist.
    Create,
    /// Opens an existing file.
    Open,
    /// Reads from it.
    Read,
    /// Writes to it, by any call.
    Write,
    /// Sets its length.
    Resize,
    /// Syncs it to disk.
    Sync,
    /// Gives it this name, in place of or in addition to an existing name.
    Name {
        /// The existing name.
        from: PathBuf,
    },
    /// Removes the name.
    Remove,
    /// Creates a folder.
    MakeFolder,
    /// Ends the program.
    End,
}

impl Call {
    /// Whether the call has an effect that others can see. Output on standard error does not count.
    pub fn changes(&self) -> bool {
        !matches!(self.kind, Kind::Open | Kind::Read) && self.path != Path::new(STDERR)
    }

    /// Whether a full disk can fail the call. A new name may need a block of its folder, and written data may
    /// get its block when it is synced.
    pub fn needs_room(&self) -> bool {
        self.changes() && !matches!(self.kind, Kind::Remove | Kind::End)
    }
}

/// What happens to a call and its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The call is executed.
    GoOn,
    /// The call is not executed; the program is killed.
    Kill,
    /// The call is not executed and returns this error.
    Fail(Errno),
}

/// The exit code and the output of a traced program.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if the program was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Path of a program's standard output, whatever it is connected to.
pub const STDOUT: &str = "/dev/stdout";
const STDERR: &str = "/dev/stderr";

/// Time limit, much longer than any traced program runs. A program that exceeds it is killed.
const LIMIT: Duration = Duration::from_secs(120);

/// Whether programs can be traced on this machine. If not, prints a notice once. In CI, tracing must be
/// possible.
pub fn permitted() -> bool {
    static PERMITTED: LazyLock<bool> = LazyLock::new(|| {
        let Err(error) = try_trace(&without_hadoop(Path::new("true")), b"", &mut |_| Then::GoOn) else {
            return true;
        };
        skipped(&format!("programs killed at their system calls: tracing is forbidden here: {error}"));
        false
    });
    *PERMITTED
}

/// Runs a command to its end with these bytes on standard input. Calls `each` before each of its calls to
/// decide what happens.
#[track_caller]
pub fn trace(command: &Command, input: &[u8], each: &mut dyn FnMut(&Call) -> Then) -> Ended {
    try_trace(command, input, each).unwrap_or_else(|error| panic!("cannot trace {command:?}: {error}"))
}

fn try_trace(command: &Command, input: &[u8], each: &mut dyn FnMut(&Call) -> Then) -> io::Result<Ended> {
    // Input and output are files instead of pipes, so that no threads are required to write and read them.
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input)?;
    stdin.rewind()?;
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    // A process can be attached safely only while it is stopped, so it stops itself before exec.
    let mut stopped = without_hadoop(Path::new("sh"));
    stopped.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]);
    stopped.arg(command.get_program()).args(command.get_args()).process_group(0);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => stopped.env(name, value),
            None => stopped.env_remove(name),
        };
    }
    stopped.stdin(stdin).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = stopped.spawn()?;
    let leader = Pid::from_raw(i32::try_from(child.id()).expect("a process id is an i32"));
    waitpid(leader, Some(WaitPidFlag::WUNTRACED))?;
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
    if let Err(error) = ptrace::seize(leader, options) {
        child.kill()?;
        child.wait()?;
        return Err(error.into());
    }
    kill(leader, Signal::SIGCONT)?;
    let (ended, hears) = mpsc::channel::<()>();
    // A program that retries forever would block the test forever.
    let watchdog = thread::spawn(move || {
        if hears.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = kill(leader, Signal::SIGKILL);
        }
    });
    let code = follow(leader, each)?;
    drop(ended);
    watchdog.join().expect("a watchdog does not panic");
    let text = |file: &mut File| -> io::Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Ended { code, stdout: text(&mut stdout)?, stderr: text(&mut stderr)? })
}

/// Follows all threads of a program until it has exited. Returns its exit code.
fn follow(leader: Pid, each: &mut dyn FnMut(&Call) -> Then) -> nix::Result<Option<i32>> {
    // The program has its own process group, so that only its threads are waited for.
    let group = Pid::from_raw(-leader.as_raw());
    let mut failing = HashMap::new();
    loop {
        let (thread, signal) = match waitpid(group, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Exited(pid, code) if pid == leader => return Ok(Some(code)),
            WaitStatus::Signaled(pid, ..) if pid == leader => return Ok(None),
            WaitStatus::PtraceSyscall(thread) => {
                // The thread may have exited, because all threads exit when the program is killed.
                let _ = stopped(thread, leader, &mut failing, each);
                (thread, None)
            }
            WaitStatus::PtraceEvent(thread, ..) => (thread, None),
            WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
            _ => continue,
        };
        match ptrace::syscall(thread, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Handles a thread that stopped before or after a call.
fn stopped(
    thread: Pid,
    leader: Pid,
    failing: &mut HashMap<Pid, Errno>,
    each: &mut dyn FnMut(&Call) -> Then,
) -> nix::Result<()> {
    let mut registers = ptrace::getregs(thread)?;
    if ptrace::syscall_info(thread)?.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        if let Some(errno) = failing.remove(&thread) {
            registers.rax = i64::from(-(errno as i32)).cast_unsigned();
            ptrace::setregs(thread, registers)?;
        }
        return Ok(());
    }
    let Some(call) = call(thread, &registers) else { return Ok(()) };
    match each(&call) {
        Then::GoOn => {}
        Then::Kill => kill(leader, Signal::SIGKILL)?,
        Then::Fail(errno) => {
            // No system call has this number, so the kernel executes nothing.
            registers.orig_rax = u64::MAX;
            ptrace::setregs(thread, registers)?;
            failing.insert(thread, errno);
        }
    }
    Ok(())
}

/// The call that a thread is about to make, if it concerns a file.
fn call(thread: Pid, registers: &libc::user_regs_struct) -> Option<Call> {
    let [first, second, third, fourth] = [registers.rdi, registers.rsi, registers.rdx, registers.r10];
    let of = |descriptor: u64| descriptor_path(thread, descriptor);
    let here = libc::AT_FDCWD as u64;
    let named = |folder: u64, name: u64| named_path(thread, folder, name);
    let opened = |flags: u64| {
        let making = (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64;
        if flags & making == 0 { Kind::Open } else { Kind::Create }
    };
    let number = i64::try_from(registers.orig_rax).ok()?;
    let (kind, path) = match number {
        libc::SYS_open => (opened(second), named(here, first)),
        libc::SYS_openat => (opened(third), named(first, second)),
        libc::SYS_creat => (Kind::Create, named(here, first)),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => {
            (Kind::Read, of(first))
        }
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            (Kind::Write, of(first))
        }
        libc::SYS_sendfile => (Kind::Write, of(first)),
        libc::SYS_copy_file_range | libc::SYS_splice => (Kind::Write, of(third)),
        libc::SYS_truncate => (Kind::Resize, named(here, first)),
        libc::SYS_ftruncate | libc::SYS_fallocate => (Kind::Resize, of(first)),
        libc::SYS_fsync | libc::SYS_fdatasync => (Kind::Sync, of(first)),
        libc::SYS_rename | libc::SYS_link => (Kind::Name { from: named(here, first)? }, named(here, second)),
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => {
            (Kind::Name { from: named(first, second)? }, named(third, fourth))
        }
        libc::SYS_unlink | libc::SYS_rmdir => (Kind::Remove, named(here, first)),
        libc::SYS_unlinkat => (Kind::Remove, named(first, second)),
        libc::SYS_mkdir => (Kind::MakeFolder, named(here, first)),
        libc::SYS_mkdirat => (Kind::MakeFolder, named(first, second)),
        libc::SYS_exit_group => (Kind::End, Some(PathBuf::new())),
        _ => return None,
    };
    Some(Call { kind, path: path? })
}

/// The path of an open descriptor of the program.
fn descriptor_path(thread: Pid, descriptor: u64) -> Option<PathBuf> {
    // The kernel uses the lower half of the register.
    match descriptor as i32 {
        1 => Some(STDOUT.into()),
        2 => Some(STDERR.into()),
        descriptor => fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok(),
    }
}

/// The path of a name in the program's memory, relative to an open folder.
fn named_path(thread: Pid, folder: u64, name: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    let n_read = memory.read_at(&mut bytes, name).ok()?;
    bytes.truncate(bytes[..n_read].iter().position(|&byte| byte == 0)?);
    let name = PathBuf::from(OsString::from_vec(bytes));
    let folder = match folder as i32 {
        _ if name.is_absolute() => return Some(name),
        libc::AT_FDCWD => fs::read_link(format!("/proc/{thread}/cwd")).ok()?,
        descriptor => fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()?,
    };
    Some(folder.join(name))
}

//! Runs a test's body in the ranks of a process group. The test starts its own program once per rank.
#![allow(clippy::unwrap_used, reason = "only tests use this crate, and a panic is a test failure")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use c10d::{Backend, Launch, Options, ProcessGroup, TcpStore};
pub use fixtures::free_port;
use rustix::process::{Pid, Signal, kill_process};

/// Environment variable with the test's name; set only in a rank's process.
const TEST: &str = "C10D_TEST";
/// Time limit of a run. It is longer than any run on a slow machine, where Python takes a minute to load
/// PyTorch.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `body` in each of `world_size` ranks. All of them must succeed.
pub fn on_ranks(test: &str, world_size: usize, body: impl FnOnce(&ProcessGroup)) {
    on_ranks_with(test, world_size, &options(), body);
}

/// Runs `body` as [`on_ranks`] does, with these options of the group.
pub fn on_ranks_with(test: &str, world_size: usize, options: &Options, body: impl FnOnce(&ProcessGroup)) {
    if is_rank_of(test) {
        body(&ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, options).unwrap());
        return;
    }
    let mut failed = false;
    let mut report = String::new();
    for mut rank in start(test, world_size) {
        let (code, output) = rank.end();
        failed |= code != Some(0);
        report += &format!(
            "rank {} of {world_size} exited with code {code:?}:\n{}\n",
            rank.rank,
            output.join("\n")
        );
    }
    // The report has the output of all ranks, because the rank that failed first is seldom the first in rank
    // order.
    assert!(!failed, "{report}");
}

/// Whether this process is a rank of `test`.
pub fn is_rank_of(test: &str) -> bool {
    env::var(TEST).is_ok_and(|name| name == test)
}

/// Returns the Gloo group of this process.
pub fn group() -> ProcessGroup {
    ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, &options()).unwrap()
}

/// Options of a group, with limits long enough for a slow machine, on which a process may be stopped for seconds.
pub fn options() -> Options {
    Options { timeout: Duration::from_secs(300), silence: Duration::from_secs(60), ..Options::default() }
}

/// Runs `body` once per rank, each in a thread with its own connection to the store.
pub fn as_threads(
    store: &TcpStore,
    world_size: usize,
    options: impl Fn(usize) -> Options + Sync,
    body: impl Fn(ProcessGroup) + Sync,
) {
    thread::scope(|scope| {
        for rank in 0..world_size {
            let (options, body) = (&options, &body);
            scope.spawn(move || {
                let store = TcpStore::connect("127.0.0.1", store.port(), LIMIT).unwrap();
                body(ProcessGroup::new(&store, rank, world_size, Backend::Gloo, &options(rank)).unwrap());
            });
        }
    });
}

/// A rank's process.
#[derive(Debug)]
pub struct Rank {
    /// Its number.
    pub rank: usize,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// Starts the ranks of a test.
pub fn start(test: &str, world_size: usize) -> Vec<Rank> {
    let port = free_port();
    (0..world_size).map(|rank| Rank::start(rank, placed(program_of(test), rank, world_size, port))).collect()
}

/// Adds torchrun's environment variables to a command.
pub fn placed(mut command: Command, rank: usize, world_size: usize, port: u16) -> Command {
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.env("WORLD_SIZE", world_size.to_string()).env("RANK", rank.to_string());
    command
}

/// Returns the command that runs this program's test as a rank.
pub fn program_of(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--include-ignored"]);
    // The ranks share the machine's cores, and libtorch would start a thread per core in each rank.
    command.env(TEST, test).env("OMP_NUM_THREADS", "1");
    // Backtraces of three ranks would hide their messages.
    command.env("RUST_BACKTRACE", "0");
    command
}

impl Rank {
    /// Starts `command` as this rank.
    pub fn start(rank: usize, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let of_stderr = sender.clone();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| of_stderr.send(line)));
        Self { rank, child, lines, seen: Vec::new() }
    }

    /// Waits for a line that contains `text` and returns the line.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!(
                    "rank {} exited or timed out before it printed {text:?}:\n{}",
                    self.rank,
                    self.seen.join("\n")
                ),
            }
        }
    }

    /// Waits for `n_lines` lines that contain `text`. Returns false if the rank exits first.
    pub fn wait_for_lines(&mut self, text: &str, n_lines: usize) -> bool {
        let deadline = Instant::now() + LIMIT;
        while self.seen.iter().filter(|line| line.contains(text)).count() < n_lines {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(_) => return false,
            }
        }
        true
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the exit. Returns the exit code, or None if a signal ended the process, and its output.
    pub fn end(&mut self) -> (Option<i32>, Vec<String>) {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            // The pipe closes when the process exits.
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break self.child.wait().unwrap(),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("rank {} did not exit:\n{}", self.rank, self.seen.join("\n"));
                }
            }
        };
        (status.code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // A rank may still run, or be stopped, after a failed test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reports on standard error that a test was skipped, and why. The test harness does not capture this.
pub fn skipped(why: &str) {
    let line = format!("SKIPPED {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Returns the path of a Python with PyTorch. Without one, prints a line and returns None; in CI, panics.
pub fn python(tested: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.deps/torch/bin/python"));
    if path.exists() {
        return Some(path);
    }
    let missing = format!("{}: {} is missing; bootstrap/laptop.sh test installs it", tested, path.display());
    assert!(env::var_os("CI").is_none(), "{missing}");
    skipped(&missing);
    None
}

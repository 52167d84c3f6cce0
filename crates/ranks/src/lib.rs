//! Runs a test's body as the ranks of a group: the test starts its own program again, once for each rank.
#![allow(clippy::unwrap_used, reason = "tests alone use it, and a panic is their failure")]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use c10d::{Backend, Launch, Options, ProcessGroup, TcpStore};
use rustix::process::{Pid, Signal, kill_process};

/// What a process is told that is a rank of the named test.
const TEST: &str = "C10D_TEST";
/// More than any of these runs takes on a slow machine: Python takes a minute there until it has loaded PyTorch.
const LIMIT: Duration = Duration::from_secs(600);
/// Ports below those that the system gives to connections, and to who asks for any.
const PORTS: Range<u16> = 10_000..20_000;

/// Runs `body` on each of `world_size` ranks, which must all end well.
pub fn on_ranks(test: &str, world_size: usize, body: impl FnOnce(&ProcessGroup)) {
    on_ranks_with(test, world_size, &options(), body);
}

/// The same, by these options.
pub fn on_ranks_with(test: &str, world_size: usize, options: &Options, body: impl FnOnce(&ProcessGroup)) {
    if is_rank_of(test) {
        body(&ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, options).unwrap());
        return;
    }
    let mut failed = false;
    let mut told = String::new();
    for mut rank in start(test, world_size) {
        let (code, output) = rank.end();
        failed |= code != Some(0);
        told += &format!("rank {} of {world_size} ended with {code:?}:\n{}\n", rank.rank, output.join("\n"));
    }
    // All of them: the first that fails is seldom the first that is asked.
    assert!(!failed, "{told}");
}

/// Whether this process is a rank of the test.
pub fn is_rank_of(test: &str) -> bool {
    env::var(TEST).is_ok_and(|name| name == test)
}

/// The Gloo group of this process's launch.
pub fn group() -> ProcessGroup {
    ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, &options()).unwrap()
}

/// The options of a group, with a time limit that is long for a slow machine.
pub fn options() -> Options {
    Options { timeout: Duration::from_secs(300), ..Options::default() }
}

/// Runs `body` as each of the ranks, each in a thread with a connection of its own to the store.
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

/// A process that is a rank.
#[derive(Debug)]
pub struct Rank {
    /// Its place among the ranks.
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

/// The command with torchrun's variables.
pub fn placed(mut command: Command, rank: usize, world_size: usize, port: u16) -> Command {
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.env("WORLD_SIZE", world_size.to_string()).env("RANK", rank.to_string());
    command
}

/// The command that runs this program's test as a rank.
pub fn program_of(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--include-ignored"]);
    // Ranks share the machine's cores; libtorch would give each all of them.
    command.env(TEST, test).env("OMP_NUM_THREADS", "1");
    // The traces of three ranks hide what they say.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// A free port, which rank 0 finds free when it has started: nobody is given it meanwhile who does not ask for it.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin elsewhere.
    let next = || (61 * process::id() + TAKEN.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    (0..PORTS.len()).map(|_| PORTS.start + next() as u16).find(is_free).unwrap()
}

impl Rank {
    /// Starts a command as this rank.
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

    /// Waits until it has printed a line that contains `text`, and returns that.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!("rank {} did not print {text:?}:\n{}", self.rank, self.seen.join("\n")),
            }
        }
    }

    /// Waits until it has printed so many lines that contain `text`, or has ended; which of the two.
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

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end: its exit code, None where a signal ended it, and what it printed.
    pub fn end(&mut self) -> (Option<i32>, Vec<String>) {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            // Its output ends when it does.
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break self.child.wait().unwrap(),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("rank {} did not end:\n{}", self.rank, self.seen.join("\n"));
                }
            }
        };
        (status.code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // A rank that a failed test left behind, or that was stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says, past the harness, which keeps what a passing test prints, that a part was not tested, and why.
pub fn skipped(why: &str) {
    let line = format!("SKIPPED {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// The Python that has PyTorch. None, with a line that says so, where bootstrap has not installed it; an error in CI.
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

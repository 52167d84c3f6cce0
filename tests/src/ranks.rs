//! Processes that are ranks: their environment, their output and their end.
#![allow(clippy::unwrap_used, reason = "only tests use this, and a panic is a test failure")]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit of a run. It is longer than any run on a slow machine, where Python takes a minute to load
/// PyTorch.
pub const LIMIT: Duration = Duration::from_secs(600);

/// A rank's process.
#[derive(Debug)]
pub struct Rank {
    /// Its number.
    pub rank: usize,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// Adds torchrun's environment variables to a command.
pub fn placed(mut command: Command, rank: usize, world_size: usize, port: u16) -> Command {
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.env("WORLD_SIZE", world_size.to_string()).env("RANK", rank.to_string());
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

    /// Number of lines so far that contain `text`.
    pub fn n_lines(&self, text: &str) -> usize {
        self.seen.iter().filter(|line| line.contains(text)).count()
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
                Err(RecvTimeoutError::Disconnected) => break self.child.wait().unwrap(),
                Err(RecvTimeoutError::Timeout) => {
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
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.deps/torch/bin/python"));
    if path.exists() {
        return Some(path);
    }
    let missing = format!("{}: {} is missing; bootstrap/laptop.sh test installs it", tested, path.display());
    assert!(env::var_os("CI").is_none(), "{missing}");
    skipped(&missing);
    None
}

//! Limits of the system (`ulimit`) end each command with exit code 74 and one line, not with a panic, a signal or frames of C++.
//! With PROVE=1, all commands run under limits of memory.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tests::demo::DEMO;
use tests::limits::{Limit, succeeds};
use tests::programs::{program, run};
use tests::prove;

/// Texts, and models of them.
struct Made {
    folder: TempDir,
    raw: PathBuf,
    dataset: PathBuf,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [raw, dataset] = ["raw.json", "reviews.h5"].map(|name| folder.path().join(name));
        fs::write(&raw, &DEMO.raw).unwrap();
        fs::write(&dataset, &DEMO.dataset).unwrap();
        let made = Self { folder, raw, dataset };
        for (command, out) in [(COMMANDS[0], "vectors"), (COMMANDS[2], "ngrams")] {
            run(&mut made.command(command, out), b"").succeeded();
        }
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program and its arguments. RAW, DATASET, NGRAMS, VECTORS, OUT and OUT.bin stand for paths.
    fn command(&self, arguments: &[&str], out: &str) -> Command {
        let mut command = program(arguments[0]);
        for argument in &arguments[1..] {
            match *argument {
                "RAW" => command.arg(&self.raw),
                "DATASET" => command.arg(&self.dataset),
                "NGRAMS" => command.arg(self.path("ngrams")),
                "VECTORS" => command.arg(self.path("vectors")),
                "OUT" => command.arg(self.path(out)),
                "OUT.bin" => command.arg(self.path(out).with_extension("bin")),
                other => command.arg(other),
            };
        }
        command.env("TMPDIR", self.folder.path());
        command
    }

    /// Runs a command with growing limits until it succeeds.
    fn each(&self, arguments: &[&str], limits: impl Iterator<Item = Limit>) {
        for (n_failed, limit) in limits.enumerate() {
            if succeeds(&self.command(arguments, &format!("out-{n_failed}")), b"", limit) {
                assert!(n_failed > 0, "{arguments:?}: {limit:?} is no limit");
                (0..=n_failed).for_each(|n| remove(&self.path(&format!("out-{n}"))));
                return;
            }
        }
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path.with_extension("bin"));
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Commands that use threads.
const COMMANDS: [&[&str]; 8] = [
    &[
        "vectors",
        "train",
        "--format",
        "json",
        "--input",
        "RAW",
        "--threads",
        "3",
        "--epochs",
        "1",
        "--out",
        "OUT",
    ],
    &["ngrams", "train", "--input", "RAW", "--threads", "3", "--out", "OUT"],
    &[
        "ngrams",
        "train",
        "--model",
        "fasttext",
        "--words",
        "spaces",
        "--epochs",
        "1",
        "--input",
        "RAW",
        "--threads",
        "3",
        "--out",
        "OUT",
    ],
    &["ngrams", "predict", "NGRAMS", "RAW"],
    &["ngrams", "evaluate", "NGRAMS", "RAW"],
    &["ngrams", "explain", "NGRAMS"],
    &["ngrams", "export", "NGRAMS", "--out", "OUT.bin"],
    &["vectors", "neighbours", "VECTORS", "good"],
];

/// A training by PyTorch.
const FIT: &[&str] = &[
    "trainer",
    "fit",
    "DATASET",
    "--out",
    "OUT",
    "--epochs",
    "1",
    "--sample",
    "0.1",
    "--hidden",
    "16",
    "--device",
    "cpu",
    "--compute",
    "pytorch",
];

#[test]
fn a_limit_of_threads_is_reported_on_one_line() {
    let made = Made::new();
    for arguments in COMMANDS.into_iter().chain([FIT]) {
        made.each(arguments, (1..).map(Limit::Threads));
    }
}

#[test]
fn a_limit_of_memory_is_reported_on_one_line() {
    let made = Made::new();
    // Below the first limit, an executable that is linked to libtorch does not start.
    let attempt = |arguments: &[&str], mib| {
        let is_done = succeeds(&made.command(arguments, "out"), b"", Limit::Memory(mib));
        remove(&made.path("out"));
        is_done
    };
    let n_commands = if prove() { COMMANDS.len() } else { 3 };
    let commands = COMMANDS.into_iter().take(n_commands);
    commands.for_each(|arguments| assert!((640..).step_by(64).any(|mib| attempt(arguments, mib))));
    let n_failed = (640..).step_by(128).take_while(|&mib| !attempt(FIT, mib)).count();
    assert!(n_failed >= 3, "{n_failed}");
}

#[test]
fn a_limit_of_file_sizes_is_reported_on_one_line() {
    let made = Made::new();
    for arguments in [COMMANDS[0], COMMANDS[1], COMMANDS[6], FIT] {
        made.each(arguments, (0..).map(|step| Limit::FileSize(1 << step)));
    }
}

#[test]
fn more_than_four_ranks_per_core_require_a_flag() {
    let mut launch = program("trainer");
    launch.args(["launch", "--nproc", "100000", "--", "fit", "reviews.h5"]);
    let refused = run(&mut launch, b"").with_code(64);
    let cores = std::thread::available_parallelism().unwrap();
    let expected = format!(
        "trainer: --nproc 100000: expected at most {}, 4 ranks per core; pass --oversubscribe for more\n",
        4 * cores.get()
    );
    assert_eq!(refused.stderr, expected);
}

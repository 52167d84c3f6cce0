//! Limits of the system (`ulimit`) end each program with exit code 74 and one line, not with a panic or a signal, and leave no
//! files.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tests::demo::DEMO;
use tests::files::snapshot;
use tests::limits::{Limit, succeeds};
use tests::pipe::{Pipe, merge, reducer};
use tests::programs::{program, run};

/// Inputs of all stages.
struct Stages {
    folder: TempDir,
    raw: PathBuf,
    records: Vec<u8>,
    run_folder: PathBuf,
}

impl Stages {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("raw.json");
        fs::write(&raw, &DEMO.raw).unwrap();
        let records = Pipe::default().sorted(&DEMO.records);
        let run_folder = folder.path().join("run");
        run(&mut reducer(&run_folder, 0, 1), &records).succeeded();
        Self { folder, raw, records, run_folder }
    }

    fn new_folder(&self) -> PathBuf {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        folder
    }

    /// A program with its input. Its output and its temporary files are below the folder.
    fn command(&self, name: &str, out: &Path) -> (Command, &[u8]) {
        let mut command = match name {
            "reducer" => reducer(&out.join("run"), 0, 1),
            "merge" => merge(&self.run_folder, &out.join("reviews.h5")),
            _ => program(name),
        };
        command.env("TMPDIR", out);
        if name == "reducer" {
            command.arg("--texts");
        }
        if name == "sentimill" {
            command.arg("--input").arg(&self.raw).arg("--out").arg(out.join("reviews.h5"));
            command.args(["--threads", "3", "--memory", "64MiB", "--texts", "texts.parquet"]);
        }
        (command, if name == "reducer" { &self.records } else { b"" })
    }

    /// Runs a program with growing limits until it succeeds. Nothing is left of those that failed.
    fn each(&self, name: &str, limits: impl Iterator<Item = Limit>) {
        for (n_failed, limit) in limits.enumerate() {
            let out = self.new_folder();
            let (command, input) = self.command(name, &out);
            if succeeds(&command, input, limit) {
                assert!(n_failed > 0, "{name}: {limit:?} is no limit");
                return;
            }
            // Without memory, a program ends at once, and the next one removes what is left.
            let left = snapshot(&out);
            assert!(matches!(limit, Limit::Memory(_)) || left.is_empty(), "{name} under {limit:?}: {left:?}");
        }
    }
}

#[test]
fn a_limit_of_memory_is_reported_on_one_line() {
    Stages::new().each("sentimill", (0..).map(|step| Limit::Memory(40 << step)));
}

#[test]
fn a_limit_of_threads_is_reported_on_one_line() {
    let stages = Stages::new();
    for name in ["reducer", "merge", "sentimill"] {
        stages.each(name, (1..).map(Limit::Threads));
    }
}

#[test]
fn a_limit_of_file_sizes_is_reported_on_one_line_and_leaves_no_files() {
    let stages = Stages::new();
    for name in ["reducer", "merge", "sentimill"] {
        stages.each(name, (0..).map(|step| Limit::FileSize(4 << step)));
    }
}

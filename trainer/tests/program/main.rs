//! The program as users start it: with one or several ranks, interrupted and resumed, and with unusable
//! inputs.
#![allow(clippy::unwrap_used)]

mod arrivals;
#[path = "../command/mod.rs"]
mod command;
mod deaths;
mod interruptions;
mod lines;
mod ranks_agree;
mod refusals;
mod trainings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use command::{events, losses, plain, trainer};
use dataset::Row;
use fixtures::free_port;
use fixtures::reviews;
use rustix::process::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tests::ranks::{Rank, placed};

/// Maximum time until ranks exit after one of them was lost.
const LIMIT: Duration = Duration::from_secs(10);

/// A training of 600 reviews, small enough that a hundred steps take a second.
struct Job {
    folder: TempDir,
    dataset: PathBuf,
    _data: TempDir,
}

impl Job {
    fn new() -> Self {
        Self::of(reviews(600))
    }

    fn of((data, dataset): (TempDir, PathBuf)) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), dataset, _data: data }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command of each rank.
    fn fit(&self, name: &str, more: &[&str]) -> Command {
        let mut command = trainer();
        command.arg("fit").arg(&self.dataset).arg("--out").arg(self.out(name));
        command.args(["--device", "cpu", "--log-steps", "1", "--tokens", "20"]);
        let mut asked = more.to_vec();
        for unless in ["--embedding=8", "--hidden=6", "--linear=5", "--epochs=4", "--batch=32"] {
            if !unless.split('=').next().is_some_and(|option| more.contains(&option)) {
                asked.push(unless);
            }
        }
        command.args(plain(&asked));
        command
    }

    /// Trains on this number of ranks, to the end.
    fn train(&self, name: &str, world_size: usize, more: &[&str]) {
        for mut rank in start(world_size, || self.fit(name, more)) {
            let (code, output) = rank.end();
            assert_eq!(code, Some(0), "rank {} of {world_size}: {}", rank.rank, output.join("\n"));
        }
    }

    /// The lines of metrics of one kind.
    fn metrics(&self, name: &str, event: &str) -> Vec<Value> {
        events(&self.out(name), event)
    }

    /// The loss of each step.
    fn losses(&self, name: &str) -> Vec<f64> {
        losses(&self.out(name), "steps")
    }

    fn weights(&self, name: &str) -> Vec<u8> {
        fs::read(self.out(name).join("model/model.safetensors")).unwrap()
    }
}

/// The row with ids distributed over a vocabulary that is forty times as large.
fn spread(mut row: Row) -> Row {
    row.tokens.iter_mut().for_each(|token| *token = 2 + (*token - 2) * 40 + row.hash as u32 % 40);
    row
}

fn start(world_size: usize, command: impl Fn() -> Command) -> Vec<Rank> {
    if world_size == 1 {
        return vec![Rank::start(0, command())];
    }
    let port = free_port();
    let placed = |rank: usize| {
        let mut placed = placed(command(), rank, world_size, port);
        placed.env("SENTIMILL_KEY_FILE", key_file());
        placed
    };
    (0..world_size).map(|rank| Rank::start(rank, placed(rank))).collect()
}

/// The process ids of the ranks of a job: the processes of the trainer with this output folder.
fn ranks_of_job(out: &Path) -> Vec<Pid> {
    let out = out.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id = entry.unwrap().file_name().to_string_lossy().parse().ok()?;
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        let mut words = command.split('\0');
        let is_rank =
            words.next()?.ends_with("/trainer") && words.next()? == "fit" && words.any(|word| word == out);
        is_rank.then_some(Pid::from_raw(id)?)
    });
    processes.collect()
}

/// The key with which the ranks of these tests authenticate.
fn key_file() -> &'static Path {
    static KEY: OnceLock<tempfile::NamedTempFile> = OnceLock::new();
    // A temporary file has mode 600.
    KEY.get_or_init(|| {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "the secret of these tests\n").unwrap();
        file
    })
    .path()
}

//! N-gram models on several ranks: processes over Gloo that exchange the rows that they updated.
#![allow(clippy::unwrap_used)]

mod command;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{ended, run, trainer};
use ranks::{Rank, free_port, placed};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// Lines of fastText's format: a label has some of its own words, and words that all labels have.
fn lines(n: usize, n_labels: u64, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut lines = String::new();
    for _ in 0..n {
        let label = draw(n_labels);
        let _ = write!(lines, "__label__{label}");
        for _ in 0..12 {
            let _ = match draw(3) {
                0 => write!(lines, " own{label}x{}", draw(9)),
                _ => write!(lines, " other{}", draw(50)),
            };
        }
        lines.push('\n');
    }
    lines
}

struct World {
    folder: TempDir,
    train: PathBuf,
    test: PathBuf,
}

impl World {
    fn of_labels(n_labels: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (train, test) = (folder.path().join("train.txt"), folder.path().join("test.txt"));
        fs::write(&train, lines(1501, n_labels, 1)).unwrap();
        fs::write(&test, lines(400, n_labels, 2)).unwrap();
        Self { folder, train, test }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The arguments of a training, with one thread.
    fn arguments(&self, name: &str, more: &[&str]) -> Vec<String> {
        let [input, out] = [&self.train, &self.out(name)].map(|path| path.display().to_string());
        let all = ["ngrams", "--input", &input, "--format=fasttext", "--out", &out, "--threads=1"];
        all.iter().chain(more).map(|&argument| argument.to_owned()).collect()
    }

    /// Trains on ranks that `launch` starts. Returns the summary and standard error.
    #[track_caller]
    fn launched(&self, n_ranks: &str, name: &str, more: &[&str]) -> (Value, String) {
        let mut launch = trainer();
        launch.args(["launch", "--nproc", n_ranks, "--"]).args(self.arguments(name, more)).arg("--json");
        let (code, said, told) = run(launch);
        assert_eq!(code, Some(0), "{told}");
        (serde_json::from_str(&said).unwrap(), told)
    }

    #[track_caller]
    fn alone(&self, name: &str, more: &[&str]) {
        let mut alone = trainer();
        alone.args(self.arguments(name, more));
        let (code, told) = ended(alone);
        assert_eq!(code, Some(0), "{told}");
    }

    /// A rank as torchrun starts it.
    fn rank(&self, rank: usize, port: u16, name: &str, more: &[&str]) -> Rank {
        let mut command = trainer();
        command.args(self.arguments(name, more));
        Rank::start(rank, placed(command, rank, 2, port))
    }

    fn accuracy(&self, name: &str) -> f64 {
        let mut evaluate = trainer();
        evaluate.arg("evaluate").arg(self.out(name)).arg(&self.test).arg("--format=fasttext");
        let (code, said, told) = run(evaluate);
        assert_eq!(code, Some(0), "{told}");
        serde_json::from_str::<Value>(&said).unwrap()["accuracy"].as_f64().unwrap()
    }
}

/// The digests of the files of a model, by name.
fn digests(out: &Path) -> String {
    fs::read_to_string(out.join("model/SHA256SUMS")).unwrap()
}

/// The flags of each kind of model, with several exchanges per epoch.
const MODELS: [&[&str]; 2] = [
    &["--model=linear", "--min-count=1", "--round-texts=200"],
    &["--model=fasttext", "--buckets=20000", "--round-texts=200"],
];

fn with<'a>(model: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [model, more].concat()
}

#[test]
fn two_ranks_learn_as_one_and_report_the_bytes_of_updated_rows() {
    let world = World::of_labels(2);
    for (at, model) in MODELS.iter().enumerate() {
        let [one, two] = ["one", "two"].map(|name| format!("{name}{at}"));
        world.alone(&one, model);
        let (summary, told) = world.launched("2", &two, model);
        let [alone, together] = [&one, &two].map(|name| world.accuracy(name));
        assert!(alone > 0.85 && together > alone - 0.02, "{model:?}: alone {alone}, together {together}");

        let exchange = &summary["exchange"];
        let number = |name: &str| exchange[name].as_u64().unwrap();
        // 751 and 750 texts in rounds of at most 200, in five epochs.
        assert_eq!((number("ranks"), number("rounds")), (2, 20), "{summary}");
        assert!(number("bytes_per_round") < number("table_bytes"), "{summary}");
        assert!(number("rows_per_round") * 4 < number("bytes_per_round"), "{summary}");
        assert!(number("bytes") > 20 * number("bytes_per_round"), "{summary}");
        let line = "trainer: 2 ranks exchanged updated rows 20 times: ";
        assert_eq!(told.lines().filter(|told| told.contains(line)).count(), 1, "{told}");
        let settings: Value =
            serde_json::from_slice(&fs::read(world.out(&two).join("settings.json")).unwrap()).unwrap();
        assert_eq!(settings["world_size"], 2);
    }
}

#[test]
fn two_ranks_have_the_same_bits_again() {
    for (world, name) in [(World::of_labels(2), "two"), (World::of_labels(4), "four")] {
        for (at, model) in MODELS.iter().enumerate() {
            let [one, again] = ["one", "again"].map(|run| format!("{name}{at}{run}"));
            world.launched("2", &one, &with(model, &["--deterministic"]));
            world.launched("2", &again, &with(model, &["--deterministic"]));
            assert_eq!(digests(&world.out(&one)), digests(&world.out(&again)), "{model:?}");
        }
    }
}

#[test]
fn one_rank_is_a_training_without_ranks() {
    let world = World::of_labels(2);
    for (at, model) in MODELS.iter().enumerate() {
        let [alone, launched] = ["alone", "launched"].map(|name| format!("{name}{at}"));
        world.alone(&alone, model);
        let (summary, _) = world.launched("1", &launched, model);
        assert_eq!(digests(&world.out(&alone)), digests(&world.out(&launched)));
        assert_eq!(summary.get("exchange"), None);
    }
}

#[test]
fn classifiers_that_ranks_share_are_those_of_one_rank() {
    let world = World::of_labels(4);
    let flags = ["--model=linear", "--deterministic", "--l1"];
    world.alone("alone", &flags);
    world.launched("2", "two", &flags);
    assert_eq!(digests(&world.out("alone")), digests(&world.out("two")));
}

#[test]
fn ranks_that_torchrun_starts_resume_after_a_kill_with_the_same_bits() {
    let world = World::of_labels(2);
    let flags = with(MODELS[1], &["--deterministic", "--epochs=100", "--optimizer=adagrad"]);
    world.launched("2", "whole", &flags);
    let flags = with(&flags, &["--checkpoint-every=0.02"]);
    let port = free_port();
    let mut ranks = [0, 1].map(|rank| world.rank(rank, port, "killed", &flags));
    let state = world.out("killed/checkpoints/latest");
    // The training is not over before the checkpoint, or the folder has the model.
    while !state.exists() && !world.out("killed/model").exists() {
        std::thread::yield_now();
    }
    ranks[1].signal(Signal::KILL);
    ranks[1].end();
    let (code, output) = ranks[0].end();
    assert_eq!(code, Some(75), "{output:?}");
    assert!(output.last().unwrap().contains("rank 1 ("), "{output:?}");
    assert!(state.exists(), "{output:?}");

    let mut launch = trainer();
    launch.args(["launch", "--nproc", "2", "--"]);
    launch.args(world.arguments("killed", &with(&flags, &["--resume"])));
    let (code, told) = ended(launch);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("resuming from the checkpoint"), "{told}");
    assert_eq!(digests(&world.out("whole")), digests(&world.out("killed")));

    let mut alone = trainer();
    alone.args(world.arguments("killed", &with(&flags, &["--resume"])));
    let (code, told) = ended(alone);
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("ranks"), "{told}");
}

#[test]
fn ranks_stop_together_at_a_signal_to_one_of_them() {
    let world = World::of_labels(2);
    let flags = with(MODELS[1], &["--epochs=100000"]);
    let port = free_port();
    let mut ranks = [0, 1].map(|rank| world.rank(rank, port, "stopped", &flags));
    ranks[0].wait_for("epoch 3 of");
    ranks[1].signal(Signal::TERM);
    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(75), "{output:?}");
        assert!(output.last().unwrap().contains("interrupted; a checkpoint is in "), "{output:?}");
    }
    assert!(world.out("stopped/checkpoints/latest").exists());
}

#[test]
fn ranks_with_other_texts_or_settings_are_refused() {
    let world = World::of_labels(2);
    let other = World::of_labels(3);
    let port = free_port();
    let mut ranks = [world.rank(0, port, "out", MODELS[0]), other.rank(1, port, "out", MODELS[0])];
    let of = |what: &str, rank: usize| {
        format!(
            "rank {} has other {what} than rank {rank}; start all ranks with the same input and flags",
            1 - rank
        )
    };
    for (rank, process) in ranks.iter_mut().enumerate() {
        let (code, output) = process.end();
        assert_eq!(code, Some(78), "{output:?}");
        assert!(output.last().unwrap().contains(&of("texts", rank)), "{output:?}");
    }
    let port = free_port();
    let mut ranks =
        [world.rank(0, port, "other", MODELS[0]), world.rank(1, port, "other", &with(MODELS[0], &["--c=2"]))];
    for (rank, process) in ranks.iter_mut().enumerate() {
        let (_, output) = process.end();
        assert!(output.last().unwrap().contains(&of("settings", rank)), "{output:?}");
    }
}

#[test]
fn what_ranks_cannot_train_is_refused() {
    let world = World::of_labels(2);
    let refused = |arguments: Vec<String>, expected: &str| {
        let mut launch: Command = trainer();
        launch.args(["launch", "--nproc", "2", "--"]).args(arguments);
        let (code, told) = ended(launch);
        assert_eq!(code, Some(78), "{told}");
        assert!(told.lines().last().unwrap().contains(expected), "{told}");
    };
    refused(
        world.arguments("l1", &["--model=linear", "--l1"]),
        "--l1: 2 ranks; expected one rank for two labels; omit --l1, or start one rank",
    );
    let mut of_stdin = world.arguments("stdin", &[]);
    of_stdin[2] = "-".to_owned();
    refused(of_stdin, "--input is - on several ranks, expected files or URLs, which each rank reads");
}

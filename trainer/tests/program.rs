//! The program as users start it: with one or several ranks, interrupted and resumed, and with unusable
//! inputs.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use batches::random::Purpose;
use command::{ended, plain, trainer};
use corpus::record::Votes;
use dataset::Row;
use fixtures::{dataset_of, dataset_with, review, reviews, word};
use ranks::{Rank, free_port, placed};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

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
        let lines = fs::read_to_string(self.out(name).join("metrics.jsonl")).unwrap();
        let values = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        values.filter(|value| value["event"] == event).collect()
    }

    /// The loss of each step.
    fn losses(&self, name: &str) -> Vec<f64> {
        self.metrics(name, "steps").iter().map(|line| line["loss"].as_f64().unwrap()).collect()
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

/// With a large vocabulary, ranks exchange only the gradients of the words in their rows. With a small one,
/// three ranks sum all gradients.
#[test]
fn loss_curves_of_kernels_agree_on_1_2_and_3_ranks() {
    let many = dataset_of(600, 2000, |at| spread(review(at)));
    for (words, job) in [("few", Job::new()), ("many", Job::of(many))] {
        for accumulate in ["1", "2"] {
            let name = |world_size: usize| format!("{accumulate} {world_size}");
            for world_size in 1..=3 {
                let sizes = ["--embedding", "24", "--hidden", "16", "--linear", "8", "--epochs", "3"];
                let rule = ["--optimizer", "sgd", "--rate", "0.3", "--accumulate", accumulate];
                // The dropped values of a row do not depend on the rank that processes the row.
                let dropout = ["--dropout-words", "0.2", "--dropout-layers", "0.2", "--dropout-head", "0.2"];
                job.train(&name(world_size), world_size, &[&sizes[..], &rule, &dropout].concat());
                let (found, expected) = (job.losses(&name(world_size)), job.losses(&name(1)));
                assert_eq!(found.len(), expected.len());
                assert!(found.len() > 20);
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let difference = (found - expected).abs();
                    assert!(
                        difference <= 1e-5 * expected,
                        "{words} words, {world_size} ranks, step {at}: {found}, of one {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn loss_curves_of_1_2_and_4_ranks_agree() {
    let job = Job::new();
    for (name, world_size) in [("one", 1), ("two", 2), ("four", 4)] {
        job.train(
            name,
            world_size,
            &["--precision", "f64", "--row-weight", "log", "--clip", "0.5", "--rate", "0.02"],
        );
    }
    let one = job.losses("one");
    assert!(one.len() > 50);
    // The loss must fall, so that the comparison is meaningful.
    let epochs: Vec<f64> =
        job.metrics("one", "epoch").iter().map(|line| line["loss"].as_f64().unwrap()).collect();
    assert!(epochs[3] < epochs[0], "{epochs:?}");
    for name in ["two", "four"] {
        let found = job.losses(name);
        assert_eq!(found.len(), one.len());
        for (at, (found, expected)) in found.iter().zip(&one).enumerate() {
            assert!(
                (found - expected).abs() <= 1e-9 * expected,
                "{name}, step {at}: {found}, of one {expected}"
            );
        }
        let [test, test_of_one] =
            [name, "one"].map(|name| job.metrics(name, "test")[0]["metrics"]["confusion"].clone());
        assert_eq!(test, test_of_one);
    }
}

#[test]
fn an_evaluation_of_three_ranks_is_that_of_one() {
    let job = Job::new();
    job.train("model", 1, &[]);
    // Neither the number of rows nor the number of batches is divisible by three.
    let (_data, dataset) = reviews(601);
    let evaluation = || {
        let mut command = trainer();
        command.arg("evaluate").arg(job.out("model").join("model")).arg(&dataset);
        command.args(["--batch", "32", "--device", "cpu"]);
        command
    };
    let json = |world_size: usize| {
        let mut ranks = start(world_size, evaluation);
        let outputs: Vec<_> = ranks.iter_mut().map(Rank::end).collect();
        assert!(outputs.iter().all(|(code, _)| *code == Some(0)), "{outputs:?}");
        let lines: Vec<String> = outputs.into_iter().flat_map(|(_, output)| output).collect();
        // Most of its rows are training rows, so a warning is printed, too.
        let (warnings, lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.starts_with("trainer: warning: "));
        assert_eq!((warnings.len(), lines.len()), (1, 1), "only rank 0 prints: {lines:?}");
        lines.concat()
    };

    let one = json(1);

    let metrics: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(metrics["rows"], 601);
    assert_eq!(json(3), one);
}

/// Repeatedly kills all ranks at a random step and resumes from the last checkpoint.
fn interrupted_at_random(world_size: usize, n_kills: usize, seed: u64) {
    let job = Job::new();
    let settings =
        "--checkpoint-steps 3 --dropout-embedding 0.2 --dropout-words 0.1 --validation-fraction 0.1";
    let settings: Vec<&str> = settings.split(' ').collect();
    job.train("whole", world_size, &settings);

    let steps: u64 = job.metrics("whole", "steps").len() as u64;
    let mut random = Purpose::Order.stream(&[seed, world_size as u64]);
    let mut with_resume = settings.to_vec();
    with_resume.push("--resume");
    for kill in 0..n_kills {
        let name = format!("killed-{kill}");
        // Killed twice in succession, mostly within one epoch. On a busy machine, the ranks make more steps before
        // they are killed, or even finish.
        let first = 1 + random.below(steps - 4) as usize;
        let second = 1 + random.below(3) as usize;
        for n_steps in [first, second] {
            let mut ranks = start(world_size, || job.fit(&name, &with_resume));
            ranks[0].wait_for_lines(" step ", n_steps);
            ranks.iter().for_each(|rank| rank.signal(Signal::KILL));
            ranks.iter_mut().for_each(|rank| drop(rank.end()));
        }
        job.train(&name, world_size, &with_resume);
        assert!(
            job.weights(&name) == job.weights("whole"),
            "{world_size} ranks, seed {seed}: killed after {first} steps, and {second} more"
        );
        fs::remove_dir_all(job.out(&name)).unwrap();
    }
}

/// Number of kills: with PROVE=1, they sum to 50 over all tests.
fn kills(of_50: usize, small: usize) -> usize {
    if tests::prove() { of_50 } else { small }
}

#[test]
fn one_rank_killed_and_resumed_ends_with_the_same_bits() {
    interrupted_at_random(1, kills(18, 2), 1);
}

#[test]
fn two_ranks_killed_and_resumed_end_with_the_same_bits() {
    interrupted_at_random(2, kills(16, 2), 2);
}

#[test]
fn four_ranks_killed_and_resumed_end_with_the_same_bits() {
    interrupted_at_random(4, kills(16, 1), 3);
}

#[test]
fn a_lost_rank_ends_the_others_with_its_name() {
    for (signal, how) in [(Signal::KILL, "has died"), (Signal::STOP, "has been silent for 5 s")] {
        let job = Job::new();
        let mut ranks = start(3, || job.fit("out", &["--epochs", "100000"]));
        ranks[0].wait_for(" step 20: ");

        let begin = Instant::now();
        ranks[1].signal(signal);

        for at in [0, 2] {
            let (code, output) = ranks[at].end();
            let took = begin.elapsed();
            let last = output.last().unwrap();
            assert_eq!(code, Some(75), "{output:?}");
            assert!(
                last.starts_with("trainer: ") && last.contains("rank 1 (") && last.contains(how),
                "{last}"
            );
            assert!(took < LIMIT, "rank {at} took {took:?}");
        }
    }
}

fn row(at: u32, label: u8) -> Row {
    let votes = if label == 1 { Votes([0, 0, 0, 0, 1]) } else { Votes([1, 0, 0, 0, 0]) };
    Row {
        hash: u64::from(at),
        tokens: vec![2 + at % 50; 1 + at as usize % 40],
        votes,
        label,
        split: 900,
        source: 0,
    }
}

fn refused(dataset: &Path, more: &[&str]) -> (Option<i32>, String, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = trainer();
    command
        .arg("fit")
        .arg(dataset)
        .arg("--out")
        .arg(&out)
        .args(["--device", "cpu", "--epochs", "2"])
        .args(more);
    let (code, told) = ended(command);
    let left = match fs::read_dir(&out) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    (code, told.lines().last().unwrap_or_default().to_owned(), left)
}

#[test]
fn a_dataset_that_cannot_be_trained_on_is_refused() {
    let (_one_class, path) = dataset_of(50, 50, |at| row(at, 1));
    let (code, told, left) = refused(&path, &[]);
    assert_eq!((code, left.len()), (Some(65), 0));
    assert!(
        told.ends_with(
            "all 50 rows for training have label 1, expected both labels; check the ratings of the reviews"
        ),
        "{told}"
    );

    let (_no_rows, path) = dataset_of(0, 50, |at| row(at, 1));
    let (code, told, left) = refused(&path, &[]);
    assert_eq!((code, left.len()), (Some(65), 0), "{told}");

    let (_flipped, path) = reviews(300);
    let mut bytes = fs::read(&path).unwrap();
    // Some bytes of the file do not affect its content.
    let quarter = bytes.len() / 4;
    bytes[quarter..3 * quarter].iter_mut().for_each(|byte| *byte ^= 0x10);
    fs::write(&path, bytes).unwrap();
    let (code, told, left) = refused(&path, &[]);
    assert_eq!((code, left.len()), (Some(66), 0), "{told}");

    let other = tempfile::NamedTempFile::new().unwrap();
    fs::write(other.path(), b"no HDF5").unwrap();
    let (code, told, left) = refused(other.path(), &[]);
    assert_eq!((code, left.len()), (Some(66), 0), "{told}");
}

#[test]
fn a_dataset_that_breaks_a_rule_of_its_format_is_refused_before_training() {
    let with = |first: &str| {
        let words: Vec<String> =
            (0..50).map(|at| if at == 0 { first.to_owned() } else { word(at) }).collect();
        dataset_with(300, &words, review)
    };
    for (of, rule) in [
        (with("a\nb"), "word 0 of the vocabulary is \"a\\nb\", expected a cleaned word (FORMAT.md, F18)"),
        (
            with("\u{1b}[31m"),
            "word 0 of the vocabulary is \"\\u{1b}[31m\", expected a cleaned word (FORMAT.md, F18)",
        ),
        (
            with(&word(7)),
            "word 7 of the vocabulary is \"waaaah\", expected a word that is listed once (FORMAT.md, F20)",
        ),
        (
            dataset_of(300, 50, |at| Row { hash: u64::from(300 - at), ..review(at) }),
            "row 1 is less than the previous row",
        ),
        (
            dataset_of(300, 50, |at| Row { tokens: vec![52], ..review(at) }),
            "a token of row 0 is 52, expected 1 to 51",
        ),
    ] {
        let (code, told, left) = refused(&of.1, &[]);
        assert_eq!((code, left.len()), (Some(66), 0), "{told}");
        assert!(told.contains(rule), "{told}");
    }
}

#[test]
fn a_loss_that_is_no_number_ends_the_training() {
    let (_data, path) = reviews(300);
    let (code, told, left) = refused(&path, &["--optimizer", "sgd", "--rate", "1e30", "--loss", "rating"]);
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("the training diverged: the loss is not a finite number; lower --rate"), "{told}");
    let kept = ["model", "checkpoints", "evaluation.json", "scores.npy"];
    assert!(!left.iter().any(|path| kept.iter().any(|name| path.ends_with(name))), "{left:?}");
}

#[test]
fn invalid_settings_are_refused() {
    let (_data, path) = reviews(60);
    for (arguments, code, told) in [
        (&["--batch", "0"][..], 64, "--batch 0: expected a whole number from 1 to 16777216"),
        (&["--dropout-head", "1"], 64, "--dropout-head 1: expected a number from 0 to less than 1"),
        (
            &["--patience", "2", "--validation-fraction", "0"],
            78,
            "--validation-fraction is 0, expected more than 0 with --patience",
        ),
        (&["--precision", "bf16"], 78, "--precision is bf16, expected f32 or f64 on a CPU"),
        (&["--rate", "-1"], 64, "--rate -1: expected a number above 0"),
        (&["--pos-weight", "none"], 64, "expected a number above 0, or balanced"),
        (&["--loss", "rating", "--pos-weight", "2"], 64, "--pos-weight has no effect without --loss label"),
        (
            &["--optimizer", "adam", "--momentum", "0.5"],
            64,
            "--momentum has no effect without --optimizer sgd",
        ),
        (&["--test-fraction", "1.5"], 64, "--test-fraction 1.5: expected a number from 0 to less than 1"),
    ] {
        let (found, last, left) = refused(&path, arguments);
        assert_eq!((found, left.len()), (Some(code), 0), "{arguments:?}: {last}");
        assert!(last.contains(told), "{arguments:?}: {last}");
    }
}

#[test]
fn a_full_disk_at_a_checkpoint_ends_the_training_and_leaves_the_last_one_whole() {
    let job = Job::new();
    job.train("out", 1, &["--checkpoint-steps", "10", "--epochs", "2"]);
    let newest = |job: &Job| fs::read_to_string(job.out("out").join("checkpoints/latest")).unwrap();
    let before = newest(&job);

    // The shell's limit of file sizes simulates a full disk: the weights of the next checkpoint do not fit.
    let fit = job.fit("out", &["--checkpoint-steps", "10", "--epochs", "2", "--resume"]);
    fs::remove_dir_all(job.out("out").join("model")).unwrap();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(fit.get_program())
        .args(fit.get_args());
    limited.env("OMP_NUM_THREADS", "1");
    let (code, told) = ended(limited);

    assert_eq!(code, Some(74), "{told}");
    assert_eq!(newest(&job), before);
    assert!(!job.out("out").join("model").exists());
    let unfinished = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    assert_eq!(unfinished(&job.out("out")) + unfinished(&job.out("out").join("checkpoints")), 0);
    job.train("out", 1, &["--checkpoint-steps", "10", "--epochs", "2", "--resume"]);
}

#[test]
fn a_gpu_that_is_not_there_is_said_to_be_missing() {
    let mut command = trainer();
    command.args(["fit", "reviews.h5", "--out", "out", "--device", "cuda"]).env("CUDA_VISIBLE_DEVICES", "");
    let (code, told) = ended(command);
    assert_eq!(code, Some(78), "{told}");
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
}

#[test]
fn a_checkpoint_of_another_training_is_refused() {
    let job = Job::new();
    job.train("out", 1, &["--checkpoint-steps", "10"]);
    fs::remove_dir_all(job.out("out").join("model")).unwrap();

    let (code, told) = ended(job.fit("out", &["--resume", "--seed", "2"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(
        told.trim_end()
            .ends_with(
                "settings.json: --seed is 1 in the training and 2 in this command; resume with the flags with which the training was started"
            ),
        "{told}"
    );

    // A checkpoint in another folder is compared by its own settings.
    let newest = fs::read_to_string(job.out("out").join("checkpoints/latest")).unwrap();
    let newest = job.out("out").join("checkpoints").join(newest);
    let (code, told) = ended(job.fit("other", &["--resume", newest.to_str().unwrap(), "--seed", "2"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("training.json: --seed is 1 in the training and 2 in this command; "), "{told}");
}

#[test]
fn a_damaged_newest_checkpoint_is_passed_over_with_a_message() {
    let job = Job::new();
    job.train("whole", 1, &["--checkpoint-steps", "10"]);
    job.train("out", 1, &["--checkpoint-steps", "10"]);
    fs::remove_dir_all(job.out("out").join("model")).unwrap();
    let checkpoints = job.out("out").join("checkpoints");
    let newest = checkpoints.join(fs::read_to_string(checkpoints.join("latest")).unwrap());
    let weights = newest.join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&weights, bytes).unwrap();

    let (code, told) = ended(job.fit("out", &["--checkpoint-steps", "10", "--resume"]));

    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("skipped a damaged checkpoint: ") && told.contains("model.safetensors"), "{told}");
    assert!(job.weights("out") == job.weights("whole"));
}

/// The process ids of the ranks of a job: the processes of the trainer with this output folder.
fn ranks_below(out: &Path) -> Vec<rustix::process::Pid> {
    let out = out.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id = entry.unwrap().file_name().to_string_lossy().parse().ok()?;
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        let mut words = command.split('\0');
        let is_rank =
            words.next()?.ends_with("/trainer") && words.next()? == "fit" && words.any(|word| word == out);
        is_rank.then_some(rustix::process::Pid::from_raw(id)?)
    });
    processes.collect()
}

/// torchrun restarts the ranks automatically, and they resume from the last checkpoint.
#[test]
fn torchrun_restarts_a_job_that_lost_a_rank_and_it_ends_with_the_same_weights() {
    let Some(python) = ranks::python("torchrun") else { return };
    let job = Job::new();
    let settings = ["--checkpoint-steps", "5", "--epochs", "40"];
    job.train("whole", 2, &settings);

    let mut with_resume = settings.to_vec();
    with_resume.push("--resume");
    let fit = job.fit("out", &with_resume);
    let mut torchrun = Command::new(python);
    torchrun.args(["-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", "2"]);
    torchrun.args(["--max-restarts", "1"]).arg(fit.get_program()).args(fit.get_args());
    let mut torchrun = Rank::start(0, torchrun);
    torchrun.wait_for(" step 12: ");
    let ranks = ranks_below(&job.out("out"));
    assert_eq!(ranks.len(), 2);
    rustix::process::kill_process(ranks[1], Signal::KILL).unwrap();

    let (code, output) = torchrun.end();
    let output = output.join("\n");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("resuming after step "), "{output}");
    assert!(job.weights("out") == job.weights("whole"));
}

#[test]
fn a_terminated_training_saves_a_checkpoint_and_goes_on_from_it() {
    let job = Job::new();
    job.train("whole", 2, &["--epochs", "40"]);

    let mut ranks = start(2, || job.fit("out", &["--epochs", "40"]));
    ranks[0].wait_for(" step 30: ");
    // One rank gets the signal; both stop, after the same step.
    ranks[1].signal(Signal::TERM);
    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(75), "{output:?}");
        assert!(output.last().unwrap().contains("interrupted; a checkpoint is in "), "{output:?}");
    }
    let checkpoints = job.out("out").join("checkpoints");
    assert!(checkpoints.join("latest").exists());
    assert!(!job.out("out").join("model").exists());

    job.train("out", 2, &["--epochs", "40", "--resume"]);
    assert!(job.weights("out") == job.weights("whole"));
}

#[test]
fn launched_ranks_train_together_and_a_killed_one_ends_the_job() {
    let job = Job::new();
    job.train("two", 2, &[]);
    let launched = |name: &str, more: &[&str]| {
        let fit = job.fit(name, more);
        let mut launch = trainer();
        launch.args(["launch", "--nproc", "2", "--"]).args(fit.get_args());
        Rank::start(0, launch)
    };

    let (code, output) = launched("launched", &[]).end();
    assert_eq!(code, Some(0), "{output:?}");
    assert!(job.weights("launched") == job.weights("two"));

    let mut killed = launched("killed", &["--epochs", "100000"]);
    killed.wait_for(" step 20: ");
    rustix::process::kill_process(ranks_below(&job.out("killed"))[0], Signal::KILL).unwrap();
    let (code, output) = killed.end();
    assert_eq!(code, Some(75), "{output:?}");
    assert!(output.last().unwrap().contains("SIGKILL"), "{output:?}");
    assert!(ranks_below(&job.out("killed")).is_empty());
}

#[test]
fn a_training_begins_with_a_saved_model_or_with_word_vectors() {
    let job = Job::new();
    job.train("first", 1, &[]);
    let loss = |name: &str| job.losses(name)[0];

    let model = job.out("first").join("model");
    // The learning rate is so small that no weight changes.
    job.train("second", 1, &["--init-from", model.to_str().unwrap(), "--epochs", "1", "--rate", "1e-30"]);
    assert!(job.weights("second") == job.weights("first"));

    let (code, told) = ended(job.fit("more", &["--init-from", model.to_str().unwrap(), "--layers", "3"]));
    assert_eq!(code, Some(78), "{told}");
    let expected = format!("--layers is 3, expected 2 as in {} (--init-from)", model.display());
    assert!(told.contains(&expected), "{told}");

    let vectors = job.out("words.vec");
    fs::write(&vectors, format!("2 8\n{} 1 2 3 4 5 6 7 8\nelsewhere 0 0 0 0 0 0 0 0\n", word(3))).unwrap();
    job.train("third", 1, &["--init-from", vectors.to_str().unwrap(), "--epochs", "1"]);
    assert!(loss("third") != loss("first"));

    fs::write(&vectors, format!("{} 1 2 3\n", word(3))).unwrap();
    let (code, told) = ended(job.fit("fourth", &["--init-from", "nowhere"]));
    assert_eq!(code, Some(66), "{told}");
    assert!(
        told.contains("nowhere: --init-from is missing: no such file or folder, expected a model folder"),
        "{told}"
    );
    let (code, told) = ended(job.fit("fourth", &["--init-from", vectors.to_str().unwrap()]));
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("words.vec: line 1: 3 values, expected 8, the size of --embedding"), "{told}");
}

#[test]
fn it_ends_early_at_a_loss_or_without_progress_and_keeps_the_best_weights() {
    let job = Job::new();
    job.train("stopped", 1, &["--stop-loss", "100", "--epochs", "50"]);
    assert_eq!(job.metrics("stopped", "epoch").len(), 1);

    // The rate is so high that the model gets worse.
    let settings = ["--validation-fraction", "0.2", "--patience", "2", "--epochs", "50", "--rate", "0.3"];
    job.train("patient", 1, &settings);
    let losses: Vec<f64> = job
        .metrics("patient", "epoch")
        .iter()
        .map(|line| line["validation"]["loss"].as_f64().unwrap())
        .collect();
    assert!(losses.len() < 50);
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses.iter().rposition(|&loss| loss == best), Some(losses.len() - 3));
}

#[test]
fn a_model_predicts_line_by_line_and_is_exported_whole() {
    let job = Job::new();
    job.train("out", 1, &[]);
    let model = job.out("out").join("model");
    let copy = job.out("copy");
    let mut export = trainer();
    export.arg("export").arg(&model).arg("--out").arg(&copy);
    assert_eq!(ended(export).0, Some(0));

    let predicted = |model: &Path| {
        let lines = job.out("lines");
        fs::write(&lines, format!("{} {}\n\nnobody knows\n", word(1), word(2))).unwrap();
        let mut predict = trainer();
        predict.arg("predict").arg(model).args(["--format", "text", "--device", "cpu"]);
        predict.stdin(fs::File::open(&lines).unwrap());
        let output = predict.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lines = predicted(&model);
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.starts_with("{\"line\":1,") && !lines.starts_with("{\"line\":1,\"error\""), "{lines}");
    assert_eq!(lines.lines().nth(1), Some("{\"line\":2,\"error\":\"blank\"}"));
    assert_eq!(lines.lines().nth(2), Some("{\"line\":3,\"error\":\"only_unknown\"}"));
    assert_eq!(predicted(&copy), lines);

    let mut bytes = fs::read(copy.join("vocabulary.txt")).unwrap();
    bytes[0] ^= 1;
    fs::write(copy.join("vocabulary.txt"), bytes).unwrap();
    let mut predict = trainer();
    predict.arg("predict").arg(&copy);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(66), "{told}");
}

#[test]
fn lines_of_another_format_are_bad_input_and_reported_once() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    fs::write(job.out("plain"), "one\ntwo\n").unwrap();
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).arg(job.out("plain")).args(["--device", "cpu"]);
    let Output { status, stdout, stderr } = predict.output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(65), "{told}");
    assert!(
        told.ends_with(
            ": no line could be read (bad_line 2, no_text 0); check --format, --preset and --text-field\n"
        ),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(String::from_utf8(stdout).unwrap().lines().count(), 2, "each line has its answer");
}

#[test]
fn a_named_pipe_is_predicted() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let pipe = job.out("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A program that opened the pipe twice would stop its writer, and would wait for another writer.
    let mut writer = Command::new("sh");
    writer.args(["-c", "exec >\"$0\"; echo one; echo two"]).arg(&pipe);
    let mut writer = writer.spawn().unwrap();
    let mut predict = Command::new("timeout");
    predict.args(["60", env!("CARGO_BIN_EXE_trainer"), "predict"]).arg(job.out("out")).arg(&pipe);
    predict.args(["--format", "text", "--device", "cpu"]);
    let Output { status, stdout, stderr } = predict.output().unwrap();
    // The writer must not wait for a reader that has exited.
    let _ = writer.kill();
    writer.wait().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(stdout.iter().filter(|&&byte| byte == b'\n').count(), 2);
}

#[test]
fn files_are_predicted_inflated_each_line_with_its_file() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let [plain, packed] = ["plain", "packed"].map(|name| job.out(name));
    fs::write(&plain, "w1 w2 w3\n\n").unwrap();
    fs::write(&packed, "nobody knows\nw1 \u{e9}\n").unwrap();
    assert!(Command::new("gzip").arg(&packed).status().unwrap().success());
    let packed = job.out("packed.gz");
    let predict = |files: &[&Path]| {
        let mut predict = trainer();
        // The training folder is passed instead of its model folder.
        predict.arg("predict").arg(job.out("out")).args(files).args(["--format", "text", "--device", "cpu"]);
        predict.stdin(fs::File::open(&packed).unwrap());
        let Output { status, stdout, stderr } = predict.output().unwrap();
        let lines = String::from_utf8(stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
        (status.code(), lines, String::from_utf8(stderr).unwrap())
    };
    let errors = |lines: &[Value]| {
        let told =
            lines.iter().map(|line| (line["file"].clone(), line["line"].clone(), line["error"].clone()));
        told.map(|(file, line, error)| format!("{file} {line} {error}")).collect::<Vec<_>>()
    };
    let shown = |path: &Path| format!("\"{}\"", path.display());

    let (code, lines, told) = predict(&[&plain, &packed, Path::new("-")]);
    let (plain_name, packed_name) = (shown(&plain), shown(&packed));
    assert_eq!((code, told.as_str()), (Some(0), ""));
    // The words of the fixture's vocabulary contain digits, which a cleaned text cannot contain.
    let expected = [
        format!("{plain_name} 1 \"only_unknown\""),
        format!("{plain_name} 2 \"blank\""),
        format!("{packed_name} 1 \"only_unknown\""),
        format!("{packed_name} 2 \"only_unknown\""),
        "null 1 \"only_unknown\"".to_owned(),
        "null 2 \"only_unknown\"".to_owned(),
    ];
    assert_eq!(errors(&lines), expected);

    let missing = job.out("missing");
    let (code, lines, told) = predict(&[&plain, &missing]);
    assert_eq!((code, lines.len()), (Some(66), 0), "nothing is answered before all files are there: {told}");
    assert!(told.contains("missing: cannot be opened, expected a file of lines"), "{told}");

    fs::write(&plain, b"w1\nw\xff\xfe2\n").unwrap();
    let (code, _, told) = predict(&[&plain]);
    assert_eq!(code, Some(0));
    assert!(told.contains("plain: invalid UTF-8 in 1 of 2 lines (read as spaces)"), "{told}");
}

#[test]
fn several_datasets_are_evaluated_by_a_trainings_folder_a_line_each() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let (_data, other) = reviews(301);
    let evaluate = |model: &Path, datasets: &[&Path]| {
        let mut command = trainer();
        command.arg("evaluate").arg(model).args(datasets).args(["--device", "cpu"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };

    let both = evaluate(&job.out("out"), &[&job.dataset, &other]);

    assert_eq!(both.iter().map(|line| &line["rows"]).collect::<Vec<_>>(), [600, 301]);
    assert_eq!(both[1]["dataset"], other.to_str().unwrap());
    assert_eq!(evaluate(&job.out("out/model"), &[&other]), both[1..]);
}

#[test]
fn the_end_of_a_training_tells_three_figures_beside_the_larger_class() {
    let job = Job::new();
    let outcome = |name: &str, more: &[&str]| {
        let (code, told) = ended(job.fit(name, more));
        assert_eq!(code, Some(0), "{told}");
        let from = told.find("trainer: accuracy ").unwrap_or_else(|| panic!("{told}"));
        told[from..].lines().map(str::to_owned).collect::<Vec<_>>()
    };

    // The model learns nothing, so it predicts the same label for all rows.
    let nothing = outcome("nothing", &["--rate", "1e-30", "--epochs", "1"]);

    let test = job.metrics("nothing", "test").remove(0)["metrics"].clone();
    let number = |name: &str| test[name].as_f64().unwrap();
    let accuracy = format!("trainer: accuracy {:.4} [95 %: ", number("accuracy"));
    let rows = format!("] on {} test rows (", test["rows"]);
    assert!(nothing[0].starts_with(&accuracy) && nothing[0].contains(&rows), "{nothing:?}");
    let f1 = format!("trainer: F1       {:.4} [95 %: ", number("f1"));
    assert!(nothing[1].starts_with(&f1) && nothing[1].contains("] ("), "{nothing:?}");
    let auc = format!("trainer: AUC      {:.4} [95 %: ", number("auc"));
    assert!(nothing[2].starts_with(&auc) && nothing[2].contains("] ("), "{nothing:?}");
    assert!(
        nothing[3]
            .starts_with("trainer: the accuracy is not above that of the majority-class baseline (label "),
        "{nothing:?}"
    );

    let learned = outcome("learned", &["--rate", "0.05", "--epochs", "6"]);
    assert!(learned[3].starts_with("trainer: the model is in "), "{learned:?}");
}

/// A program writes one short line at a time. The first line is too short for the detection of compression.
#[test]
fn a_line_on_standard_input_is_answered_before_the_next_is_there() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).args(["--format", "text", "--device", "cpu"]);
    let mut predict = predict.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut asks, answers) = (predict.stdin.take().unwrap(), predict.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines();

    for line in 1..=3 {
        asks.write_all(b"w\n").unwrap();
        let expected = format!("{{\"line\":{line},\"error\":\"only_unknown\"}}");
        assert_eq!(answers.next().unwrap().unwrap(), expected);
    }

    drop(asks);
    assert!(predict.wait().unwrap().success());
}

#[test]
fn an_archive_is_refused_and_utf_16_is_read() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let predict = |file: &Path| {
        let mut predict = trainer();
        predict.arg("predict").arg(job.out("out")).arg(file).args(["--format", "text", "--device", "cpu"]);
        let Output { status, stdout, stderr } = predict.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let [text, archive] = ["text", "archive"].map(|name| job.out(name));
    fs::write(&text, "one\n\nthree\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
        .unwrap();
    let tar =
        Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(job.folder.path()).arg("text").status();
    assert!(tar.unwrap().success());
    fs::write(&text, [&[0xff, 0xfe][..], &fs::read(&text).unwrap()].concat()).unwrap();

    let (code, answers, told) = predict(&text);
    let errors: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["error"].clone()).collect();
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert_eq!(errors, ["only_unknown", "blank", "only_unknown"]);

    let (code, answers, told) = predict(&archive);
    assert_eq!((code, answers.as_str()), (Some(65), ""), "{told}");
    assert!(told.contains("archive: cannot be read: found a tar archive, expected lines"), "{told}");
}

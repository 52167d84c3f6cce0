//! Vectors that several ranks train together: what they compute, how they continue, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use fixtures::free_port;
use rustix::process::Signal;
use serde_json::Value;
use tests::command::{ended, program, run};
use tests::ranks::{Rank, placed};

use super::served::{Server, train};
use super::{embed, sentences, separation};

/// Flags with several steps per epoch.
const STEPS: [&str; 2] = ["--step-pairs", "2000"];
const NGRAMS: [&str; 4] = ["--char-ngrams", "3-5", "--buckets", "500"];

/// Trains on ranks that `--nproc` starts. Returns the summary.
#[track_caller]
fn launched(n_ranks: usize, input: &Path, out: &Path, more: &[&str]) -> Value {
    let (code, said, told) = run(of_ranks(n_ranks, input, out, more));
    assert_eq!(code, Some(0), "{told}");
    serde_json::from_str(&said).unwrap()
}

fn of_ranks(n_ranks: usize, input: &Path, out: &Path, more: &[&str]) -> Command {
    on_ranks(n_ranks, &embed(input, out, &[&STEPS[..], more].concat()))
}

/// This command with a number of ranks.
pub(crate) fn on_ranks(n_ranks: usize, command: &Command) -> Command {
    let mut ranks = program("vectors");
    ranks.args(command.get_args()).args(["--nproc", &n_ranks.to_string(), "--oversubscribe"]);
    ranks
}

/// Starts this command as two ranks, without a launcher.
fn pair(command: impl Fn() -> Command) -> [Rank; 2] {
    let port = free_port();
    [0, 1].map(|rank| Rank::start(rank, placed(command(), rank, 2, port)))
}

/// Starts this command as two ranks, and stops them after the second epoch. One of them gets the signal. On a busy machine they
/// may be done before it arrives; then they start again.
#[track_caller]
pub(crate) fn stopped(asked: usize, command: impl Fn() -> Command, out: &Path) {
    let is_stopped = || {
        let mut ranks = pair(&command);
        ranks[0].wait_for("epoch 2 of 5");
        ranks[asked].signal(Signal::TERM);
        let ended = ranks.each_mut().map(Rank::end);
        if ended.iter().all(|(code, _)| *code == Some(0)) {
            fs::remove_dir_all(out).unwrap();
            return false;
        }
        for (code, output) in ended {
            assert!(code == Some(75) && output.last().unwrap().contains("--resume"), "{output:?}");
        }
        true
    };
    assert!((0..5).any(|_| is_stopped()), "the ranks are always done before they are stopped");
}

fn digests(out: &Path) -> String {
    fs::read_to_string(out.join("model/SHA256SUMS")).unwrap()
}

fn digests_of_arrays(out: &Path) -> Vec<String> {
    digests(out).lines().filter(|line| line.ends_with(".npy")).map(str::to_owned).collect()
}

#[test]
fn ranks_compute_the_bits_of_servers_with_staleness_0() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // One rank has more steps than the other.
    fs::write(at("text"), sentences(1001, 5)).unwrap();
    let pairs = at("pairs");
    fs::write(&pairs, "kettle water 9\nkettle novel 1\n").unwrap();
    for (name, more) in [("words", &[][..]), ("ngrams", &NGRAMS)] {
        let of = |of: &str| at(&format!("{name}-{of}"));
        let server = Server::start(&of("server"), &["--workers", "2", "--staleness", "0", "--until-done"]);
        train(&at("text"), &of("served"), &server.address, more);
        let more = [more, &["--similarity", pairs.to_str().unwrap()]].concat();
        let summary = launched(2, &at("text"), &of("ranks"), &more);
        assert_eq!(digests_of_arrays(&of("ranks")), digests_of_arrays(&of("served")));
        assert_eq!((&summary["ranks"], &summary["words"]), (&Value::from(2), &Value::from(22)));
        assert_eq!(summary["exchanges"], summary["steps"]);
        assert_eq!(summary["similarity"][0]["found"], Value::from(2));
        assert!(summary["pairs_per_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn averages_separate_topics_with_fewer_exchanges() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(4000, 1)).unwrap();
    let summary = launched(3, &input, &out, &["--sync-every", "8"]);
    let [steps, exchanges] = ["steps", "exchanges"].map(|name| summary[name].as_u64().unwrap());
    // After eight steps, and at the end of each of five epochs.
    assert_eq!(exchanges, steps / 8 + 5 - (1..=5).filter(|epoch| epoch * steps / 5 % 8 == 0).count() as u64);
    assert!(separation(&out) > 0.5, "{}", separation(&out));
}

#[test]
fn a_terminated_training_continues_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(20_000, 3)).unwrap();
    let means = [&NGRAMS[..], &["--average-every", "5"]].concat();
    for (asked, name, more) in [(1, "sum", &[][..]), (0, "mean", &means)] {
        let [whole, parts] = ["whole", "parts"].map(|part| at(&format!("{name}-{part}")));
        launched(2, &at("text"), &whole, more);
        let flags = [&STEPS[..], more, &["--resume", "--checkpoint-every", "0.1"]].concat();
        stopped(asked, || embed(&at("text"), &parts, &flags), &parts);
        launched(2, &at("text"), &parts, &[more, &["--resume"]].concat());
        assert_eq!(digests(&parts), digests(&whole));
        // Again, it is complete; with another number of ranks it is another training.
        let again = launched(2, &at("text"), &parts, &[more, &["--resume"]].concat());
        assert_eq!(again["was_complete"], Value::from(true));
        let ends = pair(|| embed(&at("text"), &parts, &flags)).each_mut().map(Rank::end);
        assert!(ends.iter().all(|(code, _)| *code == Some(0)), "{ends:?}");
        let (code, told) = ended(of_ranks(3, &at("text"), &parts, &[more, &["--resume"]].concat()));
        assert!(code == Some(78) && told.contains("ranks"), "{told}");
    }
}

#[test]
fn what_several_ranks_cannot_train_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(100, 1)).unwrap();
    fs::write(at("other"), sentences(100, 2)).unwrap();
    let refused = |more: &[&str], expected: &str| {
        let (code, told) = ended(of_ranks(2, &at("text"), &at("out"), more));
        assert!(code == Some(78) && told.contains(expected), "{code:?} {told}");
        assert!(!at("out/model").exists());
    };
    refused(&["--threads", "2"], "--threads is 2 on several ranks");
    let of_servers = || embed(&at("text"), &at("out"), &["--async", "127.0.0.1:1"]);
    for (code, output) in pair(of_servers).each_mut().map(Rank::end) {
        assert!(
            code == Some(78) && output.join("\n").contains("--async is set on several ranks"),
            "{output:?}"
        );
    }
    let (code, told) = ended(of_ranks(2, &at("text"), &at("out"), &["--async", "127.0.0.1:1"]));
    assert!(code == Some(64) && told.contains("--nproc"), "{told}");
    // Without ranks, their flags would have no effect.
    let (code, told) = ended(embed(&at("text"), &at("out"), &["--sync-every", "2"]));
    assert!(code == Some(78) && told.contains("--sync-every is set for one process"), "{told}");
    // Ranks with other sentences. The training that would have been replaced stays.
    launched(2, &at("text"), &at("out"), &[]);
    let port = free_port();
    let start =
        |rank, name| Rank::start(rank, placed(embed(&at(name), &at("out"), &["--force"]), rank, 2, port));
    for (code, output) in [start(0, "text"), start(1, "other")].each_mut().map(Rank::end) {
        let told = output.last().unwrap();
        assert!(
            code == Some(78) && told.contains("rank 1 has other texts or settings than rank 0"),
            "{output:?}"
        );
    }
    assert!(at("out/model").exists());
    // All ranks hear why rank 0 ends.
    let mut ranks = pair(|| embed(&at("text"), &at("out"), &[]));
    let ends = ranks.each_mut().map(Rank::end);
    let told = ends[1].1.last().unwrap();
    assert!((ends[0].0, ends[1].0) == (Some(64), Some(75)) && told.contains("rank 0 failed: "), "{ends:?}");
}

#[test]
fn a_rank_without_the_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(100, 1)).unwrap();
    for name in ["key", "other"] {
        fs::write(at(name), format!("a secret of 16 bytes or more: {name}")).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let port = free_port();
    let start = |rank, key| {
        let mut command = placed(embed(&at("text"), &at("out"), &[]), rank, 2, port);
        command.env("SENTIMILL_KEY_FILE", at(key));
        Rank::start(rank, command)
    };
    let mut ranks = [start(0, "key"), start(1, "other")];
    let (code, output) = ranks[1].end();
    let expected =
        "refused rank 1, expected the key of rank 0; set SENTIMILL_KEY_FILE on all ranks to the same key";
    assert!(code == Some(78) && output.last().unwrap().contains(expected), "{output:?}");
    let mut welcome = start(1, "key");
    assert_eq!((ranks[0].end().0, welcome.end().0), (Some(0), Some(0)));
}

#[test]
fn a_rank_that_dies_or_stops_ends_the_other_which_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(4000, 3)).unwrap();
    let cases = [(1, Signal::KILL), (1, Signal::STOP), (0, Signal::KILL), (0, Signal::STOP)];
    for (lost, signal) in cases {
        let out = at(&format!("{lost}-{signal:?}"));
        let mut ranks = pair(|| embed(&at("text"), &out, &["--step-pairs", "500", "--epochs", "100000"]));
        ranks[0].wait_for("epoch 2 of ");
        ranks[lost].signal(signal);
        let (code, output) = ranks[1 - lost].end();
        let expected =
            format!("rank {lost} has been silent for 10 s: it has died or stopped; start all ranks again");
        assert!(code == Some(75) && output.last().unwrap().contains(&expected), "{code:?} {output:?}");
    }
}

/// torchrun's agent has the port of the ranks' store.
#[test]
fn ranks_of_torchrun_train() {
    let Some(python) = tests::ranks::python("torchrun") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(1000, 1)).unwrap();
    launched(2, &at("text"), &at("launched"), &[]);
    let command = embed(&at("text"), &at("out"), &STEPS);
    let train = || {
        let mut torchrun = Command::new(&python);
        torchrun.args([
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--no-python",
            "--nproc-per-node",
            "2",
        ]);
        torchrun.arg(command.get_program()).args(command.get_args());
        Rank::start(0, torchrun).end()
    };
    // Another program may have the port after the one that torchrun has found.
    let is_done = |(_, output): &(_, Vec<String>)| !output.join("\n").contains("rank 0 cannot listen on");
    let (code, output) = std::iter::repeat_with(train).take(5).find(is_done).unwrap();
    assert_eq!(code, Some(0), "{output:?}");
    assert_eq!(digests(&at("out")), digests(&at("launched")));
}

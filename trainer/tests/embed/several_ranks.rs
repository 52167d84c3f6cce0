//! Vectors that several ranks train together: what they compute, how they continue, and what is refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use ranks::{Rank, free_port, placed};
use rustix::process::Signal;
use serde_json::Value;

use super::served::{Server, train};
use super::{embed, sentences, separation};
use crate::command::{ended, run, trainer};

/// Flags with several steps per epoch.
const STEPS: [&str; 2] = ["--step-pairs", "2000"];

/// Trains on ranks that `launch` starts. Returns the summary.
#[track_caller]
fn launched(n_ranks: usize, input: &Path, out: &Path, more: &[&str]) -> Value {
    let (code, said, told) = run(of_ranks(n_ranks, input, out, more));
    assert_eq!(code, Some(0), "{told}");
    serde_json::from_str(&said).unwrap()
}

fn of_ranks(n_ranks: usize, input: &Path, out: &Path, more: &[&str]) -> Command {
    on_ranks(n_ranks, &embed(input, out, &[&STEPS[..], more].concat()))
}

/// `launch` of this command.
pub(crate) fn on_ranks(n_ranks: usize, command: &Command) -> Command {
    let mut launch = trainer();
    launch.args(["launch", "--nproc", &n_ranks.to_string(), "--"]).args(command.get_args());
    launch
}

/// Starts this command as two ranks, and stops them after the second epoch. On a busy machine they may be done before the
/// signal arrives; then they start again.
#[track_caller]
pub(crate) fn stopped(command: impl Fn() -> Command, out: &Path) {
    let is_stopped = || {
        let port = free_port();
        let mut ranks = [0, 1].map(|rank| Rank::start(rank, placed(command(), rank, 2, port)));
        ranks[0].wait_for("epoch 2 of 5");
        ranks.iter().for_each(|rank| rank.signal(Signal::TERM));
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

#[test]
fn ranks_compute_the_bits_of_servers_with_staleness_0() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // One rank has more steps than the other.
    fs::write(at("text"), sentences(1001, 5)).unwrap();
    let server = Server::start(&at("server"), &["--workers", "2", "--staleness", "0", "--until-done"]);
    train(&at("text"), &at("served"), &server.address, &[]);
    let pairs = at("pairs");
    fs::write(&pairs, "kettle water 9\nkettle novel 1\n").unwrap();
    let more = ["--similarity", pairs.to_str().unwrap()];
    let summary = launched(2, &at("text"), &at("ranks"), &more);
    let [ours, theirs] =
        ["ranks", "served"].map(|name| fs::read(at(name).join("model/vectors.npy")).unwrap());
    assert!(ours == theirs, "the vectors differ");
    assert_eq!((&summary["ranks"], &summary["words"]), (&Value::from(2), &Value::from(22)));
    assert_eq!(summary["exchanges"], summary["steps"]);
    assert_eq!(summary["similarity"][0]["found"], Value::from(2));
    assert!(summary["pairs_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn averages_separate_topics_with_fewer_exchanges() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(4000, 1)).unwrap();
    let summary = launched(3, &input, &out, &["--average-every", "8"]);
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
    for (name, more) in [("sum", &[][..]), ("mean", &["--average-every", "5"][..])] {
        let [whole, parts] = ["whole", "parts"].map(|part| at(&format!("{name}-{part}")));
        launched(2, &at("text"), &whole, more);
        let flags = [&STEPS[..], more, &["--resume", "--checkpoint-every", "0.1"]].concat();
        stopped(|| embed(&at("text"), &parts, &flags), &parts);
        launched(2, &at("text"), &parts, &[more, &["--resume"]].concat());
        assert_eq!(digests(&parts), digests(&whole));
        // Again, it is complete; with another number of ranks it is another training.
        let again = launched(2, &at("text"), &parts, &[more, &["--resume"]].concat());
        assert_eq!(again["was_complete"], Value::from(true));
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
    refused(&["--char-ngrams", "3-6"], "--char-ngrams is set on several ranks");
    refused(&["--threads", "2"], "--threads is 2 on several ranks");
    refused(&["--async", "127.0.0.1:1"], "--async is set on several ranks");
    // Without ranks, their flags would have no effect.
    let (code, told) = ended(embed(&at("text"), &at("out"), &["--average-every", "2"]));
    assert!(code == Some(78) && told.contains("--average-every is set for one process"), "{told}");
    // Ranks with other sentences.
    let port = free_port();
    let start = |rank, name| Rank::start(rank, placed(embed(&at(name), &at("out"), &[]), rank, 2, port));
    let mut ranks = [start(0, "text"), start(1, "other")];
    let ends = ranks.each_mut().map(Rank::end);
    let told =
        ends.iter().any(|(_, output)| output.iter().any(|line| line.contains("has other texts or settings")));
    assert!(told && ends.iter().all(|(code, _)| *code != Some(0)), "{ends:?}");
}

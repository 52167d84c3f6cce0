//! Vectors of words by their characters, which several processes train together.

use std::fs;
use std::path::Path;
use std::process::Command;

use fixtures::free_port;
use serde_json::Value;
use tests::command::{ended, program, run};
use tests::ranks::{Rank, placed};

use super::served::killed::{client, wait_for};
use super::served::{Running, Server, two};
use super::several_ranks::{on_ranks, stopped};
use super::{TOPICS, sentences, separation, trained};

const FLAGS: [&str; 10] =
    ["--model", "char-lstm", "--hidden", "32", "--char-dim", "16", "--batch", "256", "--dim", "16"];

fn embed(input: &Path, more: &[&str]) -> Command {
    let mut command = program("vectors");
    command.arg("train").arg("--input").arg(input).args(FLAGS).args(more);
    command
}

fn into(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = embed(input, more);
    command.arg("--out").arg(out).arg("--json");
    command
}

/// Trains by two workers. Returns the summary of worker 0.
fn served(input: &Path, out: &Path, servers: &str, more: &[&str]) -> Value {
    let flags = |place| [&["--async", servers, "--worker", place], more].concat();
    two(into(input, out, &flags("0/2")), embed(input, &flags("1/2")))
}

/// Trains on ranks that `launch` starts.
fn of_ranks(n_ranks: usize, input: &Path, out: &Path, more: &[&str]) -> Command {
    on_ranks(n_ranks, &into(input, out, more))
}

fn files(out: &Path) -> [Vec<u8>; 3] {
    ["vectors.npy", "outputs.npy", "generator.safetensors"]
        .map(|name| fs::read(out.join("model").join(name)).unwrap())
}

#[test]
fn ranks_compute_the_bits_of_servers_with_staleness_0() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // One rank has more steps than the other.
    fs::write(at("text"), sentences(1001, 5)).unwrap();
    for outputs in ["table", "generator", "shared"] {
        let more = ["--outputs", outputs, "--epochs", "2"];
        let of = |name: &str| at(&format!("{outputs}-{name}"));
        let flags = |shard| ["--workers", "2", "--shard", shard, "--staleness", "0", "--until-done"];
        let servers = [Server::start(&of("0"), &flags("0/2")), Server::start(&of("1"), &flags("1/2"))];
        let addresses = servers.each_ref().map(|server| server.address.clone()).join(",");
        served(&at("text"), &of("served"), &addresses, &more);
        let summary = trained(of_ranks(2, &at("text"), &of("ranks"), &more));
        assert!(files(&of("ranks")) == files(&of("served")), "{outputs}: the vectors differ");
        assert_eq!((&summary["ranks"], &summary["words"]), (&Value::from(2), &Value::from(22)));
        assert_eq!(summary["exchanges"], summary["steps"]);
    }
}

#[test]
fn words_that_never_occurred_have_vectors_after_asynchronous_workers() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(8000, 11)).unwrap();
    for (staleness, wire) in [("1", "bf16"), ("unbounded", "top-64")] {
        let of = |name: &str| folder.path().join(format!("{staleness}-{name}"));
        let flags = ["--workers", "2", "--staleness", staleness, "--until-done", "--json"];
        let server = Server::start(&of("server"), &flags);
        served(&input, &of("out"), &server.address, &["--wire", wire, "--subsample", "0"]);
        // How much is learned depends on how the workers alternate; without a topic it would be 0.
        assert!(separation(&of("out")) > 0.3, "{staleness} {wire}: {}", separation(&of("out")));
        assert_eq!(server.ended()["balanced"], Value::from(true));
        let mut neighbours = program("vectors");
        neighbours.args(["neighbours"]).arg(of("out")).args(["kettel", "--json", "--top", "3"]);
        let (code, said, told) = run(neighbours);
        assert_eq!(code, Some(0), "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        let near = found["neighbours"].as_array().unwrap();
        assert!(near.iter().all(|near| TOPICS[0].contains(&near["word"].as_str().unwrap())), "{found}");
    }
}

#[test]
fn a_terminated_training_continues_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(10_000, 3)).unwrap();
    trained(of_ranks(2, &at("text"), &at("whole"), &[]));
    let parts = at("parts");
    stopped(0, || into(&at("text"), &parts, &["--resume", "--checkpoint-every", "0.1"]), &parts);
    // Other settings are another training, and so is one of one process.
    let refused = |command: Command, expected: &str| {
        let (code, told) = ended(command);
        assert!(code == Some(78) && told.contains(expected), "{code:?} {told}");
    };
    refused(
        of_ranks(2, &at("text"), &at("parts"), &["--resume", "--rate", "0.01"]),
        "--rate is 0.05 in the training and 0.01 in this command",
    );
    refused(
        into(&at("text"), &at("parts"), &["--resume"]),
        "number of ranks is 2 in the training and missing in this command",
    );
    // And so are other words.
    let lines = fs::read_to_string(at("text")).unwrap();
    fs::write(at("text"), lines.replace("kettle", "kettles")).unwrap();
    refused(
        of_ranks(2, &at("text"), &at("parts"), &["--resume"]),
        "a checkpoint of another input or other settings; pass the input",
    );
    fs::write(at("text"), lines).unwrap();
    let summary = trained(of_ranks(2, &at("text"), &at("parts"), &["--resume"]));
    assert!(summary["exchanges"].as_u64() < summary["steps"].as_u64(), "{summary}");
    assert!(files(&at("parts")) == files(&at("whole")));
}

#[test]
fn a_worker_that_is_killed_continues() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(10_000, 4)).unwrap();
    let flags = ["--staleness", "0", "--until-done", "--json"];
    let [server, other] = ["server", "other"].map(|name| Server::start(&at(name), &flags));
    trained(into(&at("text"), &at("whole"), &["--async", &other.address]));
    let flags = ["--async", &server.address];
    let mut worker = Running::start(into(&at("text"), &at("out"), &flags).arg("--quiet"));
    wait_for(&client(&server), 5);
    worker.kill();
    let (code, _, told) = run(into(&at("text"), &at("out"), &[&flags[..], &["--resume"]].concat()));
    assert!(code == Some(0) && told.contains("continuing after step"), "{told}");
    assert!(files(&at("out")) == files(&at("whole")));
    assert_eq!(server.ended()["balanced"], Value::from(true));
}

#[test]
fn ranks_that_diverge_all_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(2000, 1)).unwrap();
    let port = free_port();
    let command = || into(&at("text"), &at("out"), &["--rate", "1e36"]);
    let mut ranks = [0, 1].map(|rank| Rank::start(rank, placed(command(), rank, 2, port)));
    for (code, output) in ranks.each_mut().map(Rank::end) {
        let told = output.last().unwrap();
        assert!(
            code == Some(78) && told.contains("the training diverged: a vector is not finite"),
            "{output:?}"
        );
    }
}

#[test]
fn flags_that_it_does_not_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(100, 1)).unwrap();
    for flag in ["--step-pairs", "--sync-every"] {
        let (code, told) = ended(of_ranks(2, &at("text"), &at("out"), &[flag, "20"]));
        let expected = format!("{flag} has no effect without --model skip-gram; omit {flag}");
        assert!(code == Some(64) && told.contains(&expected), "{code:?} {told}");
    }
}

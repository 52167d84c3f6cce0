//! Vectors on parameter servers: several workers, kills of servers and workers, and what is refused.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tests::seeds::{each_seed, seeds};

use super::{embed, sentences, separation, trained};
use crate::command::{ended, run, trainer};

/// A server process. It is killed at the end of its test.
struct Server {
    process: Child,
    folder: PathBuf,
    address: String,
    flags: Vec<String>,
}

impl Server {
    fn start(folder: &Path, flags: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let process = Self::spawn(folder, &address, &flags);
        Self { process, folder: folder.to_owned(), address, flags }
    }

    fn spawn(folder: &Path, address: &str, flags: &[String]) -> Child {
        let mut command = trainer();
        command.arg("serve").arg("--folder").arg(folder).args(["--listen", address]).args(flags);
        let mut process = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(process.stderr.take().unwrap());
        let mut lines = told.lines().map(Result::unwrap);
        let listens = lines.find(|line| line.contains("listening on"));
        assert!(listens.is_some(), "{}", process.wait().unwrap());
        thread::spawn(move || lines.for_each(drop));
        process
    }

    fn kill_and_start_again(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = Self::spawn(&self.folder, &self.address, &self.flags);
    }

    /// The statistics that are printed at the end of `--until-done --json`.
    fn ended(mut self) -> Value {
        let said = std::io::read_to_string(self.process.stdout.take().unwrap()).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        serde_json::from_str(&said).unwrap()
    }
}

fn worker(input: &Path, out: &Path, servers: &str, place: &str, more: &[&str]) -> Command {
    let flags = ["--async", servers, "--worker", place, "--step-pairs", "2000"];
    embed(input, out, &[&flags[..], more].concat())
}

/// Runs two workers. Returns the summary of worker 0.
fn train(input: &Path, out: &Path, servers: &str, more: &[&str]) -> Value {
    let mut other = worker(input, out, servers, "1/2", more);
    let other = other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let summary = trained(worker(input, out, servers, "0/2", more));
    assert!(other.wait_with_output().unwrap().status.success());
    summary
}

#[test]
fn words_of_one_topic_are_neighbours_by_two_workers_and_two_servers() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(4000, 1)).unwrap();
    for (staleness, wire) in [("1", "f32"), ("4", "bf16"), ("unbounded", "top-8")] {
        let flags =
            |shard| ["--workers", "2", "--shard", shard, "--staleness", staleness, "--until-done", "--json"];
        let name = |shard: &str| folder.path().join(format!("{staleness}-{shard}"));
        let servers = [Server::start(&name("0"), &flags("0/2")), Server::start(&name("1"), &flags("1/2"))];
        let addresses = servers.iter().map(|server| server.address.clone()).collect::<Vec<_>>().join(",");
        let summary = train(&input, &out, &addresses, &["--wire", wire, "--force"]);
        assert_eq!((&summary["words"], &summary["tokens"]), (&Value::from(22), &Value::from(40_000)));
        assert!(separation(&out) > 0.5, "{staleness} {wire}: {}", separation(&out));
        let statistics = servers.map(Server::ended);
        let pushes = |of: &Value| of["ledger"]["pushes_of"][0].as_u64().unwrap();
        assert_eq!(summary["pushes"].as_u64().unwrap(), statistics.iter().map(pushes).sum::<u64>());
        for of in &statistics {
            assert_eq!((&of["balanced"], &of["waiting_pushes"]), (&Value::from(true), &Value::from(0)));
            let bound = staleness.parse().unwrap_or(u64::MAX);
            let stale = of["ledger"]["staleness"].as_object().unwrap();
            assert!(stale.keys().all(|found| found.parse::<u64>().unwrap() <= bound), "{of}");
        }
    }
}

#[test]
fn with_staleness_0_kills_of_server_and_worker_do_not_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(3000, 2)).unwrap();
    let flags = ["--workers", "2", "--staleness", "0", "--until-done", "--json", "--snapshot-every", "0.1"];
    let vectors = |out: &Path| fs::read(out.join("model/vectors.npy")).unwrap();
    let whole = folder.path().join("whole");
    let server = Server::start(&folder.path().join("server"), &flags);
    let pushes = train(&input, &whole, &server.address.clone(), &[])["pushes"].clone();
    let ledger = server.ended()["ledger"].clone();
    each_seed(&seeds(2, 20), |seed| {
        let of_seed = |name: &str| folder.path().join(format!("{name}-{seed}"));
        let out = of_seed("out");
        let mut server = Server::start(&of_seed("server"), &flags);
        let address = server.address.clone();
        let start = |place: &str, more: &[&str]| {
            let mut command = worker(&input, &out, &address, place, more);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut workers = [start("0/2", &[]), start("1/2", &[])];
        for kill in 0..3 {
            thread::sleep(Duration::from_millis(30 + (seed * 7919 + kill * 104_729) % 300));
            server.kill_and_start_again();
            let killed = ((seed + kill) % 2) as usize;
            workers[killed].kill().unwrap();
            workers[killed].wait().unwrap();
            workers[killed] = start(["0/2", "1/2"][killed], &["--resume"]);
        }
        for mut worker in workers {
            assert!(worker.wait().unwrap().success());
        }
        assert!(vectors(&out) == vectors(&whole), "the vectors differ");
        assert_eq!(server.ended()["ledger"], ledger);
    });
    assert!(pushes.as_u64().unwrap() > 10, "{pushes}");
}

#[test]
fn workers_that_do_not_fit_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let server = Server::start(&folder.path().join("server"), &["--workers", "1"]);
    trained(worker(&input, &out, &server.address, "0/1", &[]));
    let refused = |place: &str, more: &[&str]| {
        let (code, told) = ended(worker(&input, &folder.path().join("other"), &server.address, place, more));
        assert_eq!(code, Some(78), "{told}");
        told
    };
    assert!(refused("0/2", &[]).contains("2 workers, expected 1; pass the same number"));
    assert!(
        refused("0/1", &["--min-count", "9"]).contains("start all workers with the same input and settings")
    );
    let mut statistics = trainer();
    statistics.args(["serve", "--statistics", &server.address]);
    let (code, said, told) = run(statistics);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let statistics: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(statistics["tables"][0]["name"], "vectors");
    let mut second = trainer();
    second.arg("serve").arg("--folder").arg(folder.path().join("server"));
    let (code, told) = ended(second);
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("another server uses the folder; stop it, or choose another --folder"), "{told}");
    let mut open = trainer();
    open.args(["serve", "--listen", "0.0.0.0:0", "--folder"]).arg(folder.path().join("open"));
    let (code, told) = ended(open);
    assert_eq!(code, Some(64), "{told}");
    assert!(told.starts_with("trainer: --listen 0.0.0.0:0: is reachable from other machines"), "{told}");
    let gone = server.address.clone();
    drop(server);
    let (code, told) =
        ended(worker(&input, &folder.path().join("gone"), &gone, "0/1", &["--patience", "0.2"]));
    assert_eq!(code, Some(69), "{told}");
    assert!(told.contains("the parameter server has not answered for 0 s"), "{told}");
    let (code, told) = ended(embed(&input, &out, &["--token-file", "key"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--token-file is set without servers, expected --async HOST:PORT"), "{told}");
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! Vectors on parameter servers: several workers, what they compute, and what is refused.

pub(crate) mod killed;
mod sequential;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use fixtures::free_port;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::command::{ended, program, run};
use tests::steps::trace_steps;
use tests::tracer::{Call, Kind, Then, permitted};

use super::{embed, model, sentences, separation, trained};

/// A process. It is killed at the end of its test, also of one that fails.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server process.
pub(crate) struct Server {
    process: Running,
    folder: PathBuf,
    pub(crate) address: String,
    flags: Vec<String>,
    /// The lines that it prints after its address.
    told: Receiver<String>,
}

impl Server {
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let address = format!("127.0.0.1:{}", free_port());
        let (process, address, told) = Self::spawn(folder, &address, &flags);
        Self { process, folder: folder.to_owned(), address, flags, told }
    }

    /// A process, its address when it listens, and its further lines.
    fn spawn(folder: &Path, address: &str, flags: &[String]) -> (Running, String, Receiver<String>) {
        let mut command = program("vectors");
        command.arg("serve").arg("--folder").arg(folder).args(["--listen", address]).args(flags);
        let mut process = Running::start(command.stderr(Stdio::piped()).stdout(Stdio::piped()));
        let told = BufReader::new(process.0.stderr.take().unwrap());
        let mut lines = told.lines().map(Result::unwrap);
        let address = lines.find_map(|line| {
            let (_, address) = line.split_once("listening on ")?;
            Some(address.split_once(';')?.0.to_owned())
        });
        let (sender, receiver) = channel();
        // A receiver that was dropped does not stop the reading, or the server would wait.
        thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        (process, address.expect("the server listens"), receiver)
    }

    pub(crate) fn kill_and_start_again(&mut self) {
        self.process.kill();
        (self.process, self.address, self.told) = Self::spawn(&self.folder, &self.address, &self.flags);
    }

    /// Waits for a line that contains `text`.
    fn wait_for_line(&self, text: &str) {
        while !self.told.recv_timeout(Duration::from_secs(300)).expect("the server prints it").contains(text)
        {
        }
    }

    /// The statistics that are printed at the end of `--until-done --json`.
    pub(crate) fn ended(mut self) -> Value {
        let said = std::io::read_to_string(self.process.0.stdout.take().unwrap()).unwrap();
        assert_eq!(self.process.0.wait().unwrap().code(), Some(0));
        serde_json::from_str(&said).unwrap()
    }
}

/// A worker. Worker 0 has the training folder.
fn worker(input: &Path, out: &Path, servers: &str, place: &str, more: &[&str]) -> Command {
    let flags = ["--async", servers, "--worker", place, "--step-pairs", "2000"];
    let flags = [&flags[..], more].concat();
    if place.starts_with("0/") {
        return embed(input, out, &flags);
    }
    let mut command = program("vectors");
    command.arg("train").arg("--input").arg(input).args(["--dim", "16", "--rate", "0.05"]).args(flags);
    command
}

/// Runs two workers. `more` is for both of them. Returns the summary of worker 0.
pub(crate) fn train(input: &Path, out: &Path, servers: &str, more: &[&str]) -> Value {
    two(worker(input, out, servers, "0/2", more), worker(input, out, servers, "1/2", more))
}

/// Runs worker 0 and another one. Returns the summary of worker 0.
#[track_caller]
pub(crate) fn two(first: Command, mut other: Command) -> Value {
    let mut other = Running::start(other.arg("--quiet"));
    let summary = trained(first);
    assert!(other.0.wait().unwrap().success());
    summary
}

#[test]
fn words_of_one_topic_are_neighbours_by_two_workers_and_two_servers() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(4000, 1)).unwrap();
    let ngrams = &["--char-ngrams", "3-5", "--buckets", "500"][..];
    let wires =
        [("1", "f32", &[][..]), ("2", "f32", ngrams), ("4", "bf16", &[]), ("unbounded", "top-8", &[])];
    for (staleness, wire, more) in wires {
        let more = [&["--wire", wire][..], more].concat();
        let flags =
            |shard| ["--workers", "2", "--shard", shard, "--staleness", staleness, "--until-done", "--json"];
        let of_bound = |name: &str| folder.path().join(format!("{staleness}-{name}"));
        let servers =
            [Server::start(&of_bound("0"), &flags("0/2")), Server::start(&of_bound("1"), &flags("1/2"))];
        let addresses = servers.each_ref().map(|server| server.address.clone()).join(",");
        let out = of_bound("out");
        let summary = train(&input, &out, &addresses, &more);
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
        // A complete training is not trained again.
        let again = trained(worker(&input, &out, &addresses, "0/2", &[&more[..], &["--resume"]].concat()));
        assert_eq!(again["was_complete"], Value::from(true));
        // A word that did not occur has a vector of its n-grams.
        assert_eq!(model(&out).vector_of(b"kettles").is_some(), more.len() > 2);
    }
}

#[test]
fn vectors_are_compared_while_they_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out, pairs) =
        (folder.path().join("text"), folder.path().join("out"), folder.path().join("pairs"));
    fs::write(&input, sentences(4000, 1)).unwrap();
    fs::write(&pairs, "kettle water 9\nnovel author 8\nkettle novel 1\nwater author 2\n").unwrap();
    let server = Server::start(&folder.path().join("server"), &["--until-done", "--json"]);
    let other = folder.path().join("other");
    trained(embed(&input, &other, &[]));
    let more = ["--similarity", pairs.to_str().unwrap(), "--reference", other.to_str().unwrap()];
    let summary = trained(worker(&input, &out, &server.address, "0/1", &more));
    let losses = &summary["pip"]["unit"];
    assert!(losses["loss"].as_f64().unwrap() < 0.5 * losses["random"].as_f64().unwrap(), "{summary}");
    assert_eq!(summary["similarity"][0]["found"], Value::from(4));
    assert!(summary["similarity"][0]["spearman"].as_f64().unwrap() > 0.5, "{summary}");
    // One line per epoch.
    let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
    assert_eq!(metrics.matches("\"similarity\"").count(), 5, "{metrics}");
    server.ended();
}

#[test]
fn no_worker_waits_for_steps_that_another_one_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let long = "novel chapter author page story plot reader ending ".repeat(4);
    for (name, lines) in [
        ("less", ["kettle water\n", &format!("{long}\n")]),
        ("more", [&format!("{long}\n"), "kettle water\n"]),
    ] {
        let at = |what: &str| folder.path().join(format!("{name}-{what}"));
        fs::write(at("text"), lines.concat().repeat(300)).unwrap();
        for staleness in ["0", "1"] {
            let flags = ["--workers", "2", "--staleness", staleness, "--until-done", "--json"];
            let server = Server::start(&at(&format!("server-{staleness}")), &flags);
            let out = at(&format!("out-{staleness}"));
            train(&at("text"), &out, &server.address, &["--patience", "20"]);
            assert!(out.join("model/vectors.npy").exists());
            assert_eq!(server.ended()["balanced"], Value::from(true));
        }
    }
}

#[test]
fn a_training_that_diverges_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |what: &str| folder.path().join(what);
    fs::write(at("text"), sentences(1000, 1)).unwrap();
    let server = Server::start(&at("server"), &["--until-done"]);
    let embed = |out: &str| {
        let mut command = program("vectors");
        command.arg("train").arg("--input").arg(at("text")).arg("--out").arg(at(out));
        command.args(["--rate", "1e36", "--step-pairs", "1000"]);
        command
    };
    let mut worker = embed("served");
    worker.args(["--async", &server.address]);
    let launched = embed("ranks");
    let mut ranks = program("vectors");
    ranks.args(launched.get_args()).args(["--nproc", "2"]);
    for command in [worker, ranks] {
        let (code, told) = ended(command);
        assert!(code == Some(78) && told.contains("the training diverged: a vector is not finite"), "{told}");
    }
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
    let told = refused("0/1", &["--min-count", "9"]);
    let difference = r#"the content is "min_count 9", expected "min_count 5", as on the server"#;
    assert!(told.contains(difference) && told.contains("start all workers with the same input"), "{told}");
    assert!(
        refused("0/1", &["--wire", "bf16"]).contains(r#"the content is "wire Bf16", expected "wire F32""#)
    );
    // Other sentences of the same words.
    let lines = fs::read_to_string(&input).unwrap();
    let reversed: String = lines.lines().rev().map(|line| format!("{line}\n")).collect();
    let other = folder.path().join("reversed");
    fs::write(&other, reversed).unwrap();
    let (code, told) = ended(worker(&other, &folder.path().join("other"), &server.address, "0/1", &[]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("start all workers with the same input and settings"), "{told}");
    // Another model. Nothing is deleted, and no table is created.
    let other = folder.path().join("other");
    trained(embed(&input, &other, &[]));
    for outputs in ["table", "generator", "shared"] {
        let more = ["--async", &server.address, "--model", "char-lstm", "--outputs", outputs, "--force"];
        let (code, told) = ended(embed(&input, &other, &more));
        let expected = r#"the content is "model char-lstm", expected "model skip-gram""#;
        assert!(code == Some(78) && told.contains(expected), "{told}");
    }
    assert!(other.join("model/vectors.npy").exists());
    let mut statistics = program("vectors");
    statistics.args(["serve", "--statistics", &server.address]);
    let (code, said, told) = run(statistics);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let statistics: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(statistics["tables"].as_array().unwrap().len(), 2);
    assert_eq!(statistics["tables"][0]["name"], "inputs");
    let gone = server.address.clone();
    drop(server);
    let (code, told) =
        ended(worker(&input, &folder.path().join("gone"), &gone, "0/1", &["--patience", "0.2"]));
    assert_eq!(code, Some(69), "{told}");
    assert!(told.contains("the parameter server has not answered for 0 s"), "{told}");
}

#[test]
fn servers_of_different_staleness_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let flags = |shard, staleness| ["--workers", "1", "--shard", shard, "--staleness", staleness];
    let first = Server::start(&folder.path().join("first"), &flags("0/2", "5"));
    let second = Server::start(&folder.path().join("second"), &flags("1/2", "unbounded"));
    let servers = [first.address.clone(), second.address.clone()].join(",");
    let (code, told) = ended(worker(&input, &out, &servers, "0/1", &[]));
    let expected = format!(
        "{}: its --staleness is unbounded, expected 5, as that of {}; start all servers with the same",
        second.address, first.address
    );
    assert!(code == Some(78) && told.ends_with(&expected), "{told}");
}

#[test]
fn worker_0_that_is_killed_before_it_leaves_does_so_when_it_is_repeated() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let server = Server::start(&folder.path().join("server"), &["--workers", "1", "--until-done", "--json"]);
    let command = worker(&input, &out, &server.address, "0/1", &["--epochs", "1"]);
    let mut has_model = false;
    trace_steps(&command, b"", Call::changes, |_, call| {
        if has_model {
            return Then::Kill;
        }
        has_model = matches!(call.kind, Kind::Name { .. }) && call.path == out.join("model");
        Then::GoOn
    });
    assert!(out.join("model/vectors.npy").exists());

    let repeated = worker(&input, &out, &server.address, "0/1", &["--epochs", "1", "--resume"]);
    let (code, told) = ended(repeated);

    assert!(code == Some(0) && told.contains("already complete: the model is in"), "{told}");
    // It ends when all workers have left.
    let statistics = server.ended();
    assert_eq!(statistics["workers"][0]["steps"], Value::Null);
    // A server that has ended is not awaited.
    let repeated = worker(&input, &out, "127.0.0.1:1", "0/1", &["--epochs", "1", "--resume"]);
    let (code, told) = ended(repeated);
    assert!(code == Some(0) && told.contains("already complete: the model is in"), "{told}");
}

#[test]
fn tables_of_another_program_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let server = Server::start(&folder.path().join("server"), &[]);
    let (initial, optimizer) = (parameters::Initial::Zero, parameters::Optimizer::Sum);
    let (name, content) = ("theirs".to_owned(), String::new());
    let spec = parameters::Spec { name, n_rows: 3, dim: 2, initial, optimizer, content, min_count: 0 };
    assert_eq!(killed::client(&server).create(&spec).unwrap(), 0);
    let (code, told) = ended(worker(&input, &out, &server.address, "0/1", &[]));
    let expected =
        "the servers have other tables: inputs is table 1, expected table 0; start them with new folders";
    assert!(code == Some(78) && told.contains(expected), "{told}");
}

#[test]
fn servers_that_cannot_serve_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server");
    let first = Server::start(&path, &["--workers", "1"]);
    let refused = |path: &Path, flags: &[&str], expected: (i32, &str)| {
        let mut command = program("vectors");
        command.arg("serve").arg("--folder").arg(path).args(flags);
        let (code, told) = ended(command);
        assert_eq!(code, Some(expected.0), "{told}");
        assert!(told.contains(expected.1), "{told}");
    };
    refused(&path, &[], (64, "another server uses the folder; stop it, or choose another --folder"));
    let occupied =
        format!("--listen {}: cannot listen; check that the address is of this machine", first.address);
    refused(&folder.path().join("occupied"), &["--listen", &first.address], (74, &occupied));
    drop(first);
    refused(
        &path,
        &["--workers", "2"],
        (78, "its server has --workers 1, expected 2; pass the flags of that server"),
    );
    let open = folder.path().join("open");
    refused(&open, &["--listen", "0.0.0.0:0"], (64, "--listen 0.0.0.0:0: is reachable from other machines"));
    let authority = ["--listen", "0.0.0.0:0", "--tls-ca", "ca.pem"];
    refused(&open, &authority, (64, "--listen 0.0.0.0:0: is reachable from other machines"));
    refused(
        &open,
        &["--tls-ca", "ca.pem"],
        (78, "ca.pem: passed as --tls-ca alone, expected --tls-certificate"),
    );
}

#[test]
fn flags_that_parameter_servers_do_not_support_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let refused = |command: Command, code: i32, expected: &str| {
        let (found, told) = ended(command);
        assert_eq!(found, Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    };
    let served = |place: &str, more: &[&str]| worker(&input, &out, "127.0.0.1:1", place, more);
    refused(served("0/1", &["--threads", "2"]), 64, "cannot be used with");
    let of_stream = "--checkpoint-every has no effect without --follow or standard input as --input";
    refused(served("0/2", &["--checkpoint-every", "9"]), 64, of_stream);
    refused(served("1/2", &["--resume"]), 64, "--resume has no effect without --worker 0/N; omit --resume");
    refused(embed(&input, &out, &["--worker", "0/2"]), 64, "--async");
    let idle = "--token-file has no effect without --async; omit --token-file, or pass --async";
    refused(embed(&input, &out, &["--token-file", "key"]), 64, idle);
    let mut statistics = program("vectors");
    statistics.args(["serve", "--statistics", "127.0.0.1:1", "--workers", "2"]);
    refused(statistics, 64, "--workers has no effect without --folder; omit --workers, or pass --folder");
    // Before the input is read.
    refused(
        worker(&folder.path().join("missing"), &out, "here", "0/1", &[]),
        64,
        "here: is no address of a server, expected HOST:PORT",
    );
}

#[test]
fn clients_without_the_key_are_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let key = |name: &str, content: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ours, theirs) = (key("ours", &"o".repeat(44)), key("theirs", &"t".repeat(44)));
    let server = Server::start(&folder.path().join("server"), &["--token-file", &ours]);
    for (more, expected) in [
        (&[][..], "the parameter server refused: no token; pass the server's --token-file"),
        (&["--token-file", &theirs][..], "the parameter server refused: another token"),
    ] {
        let (code, told) = ended(worker(&input, &out, &server.address, "0/1", more));
        assert_eq!(code, Some(78), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    trained(worker(&input, &out, &server.address, "0/1", &["--token-file", &ours, "--force"]));
}

/// Writes an authority, and a certificate that it signed, with its key. Returns the flags with them.
fn certificates(folder: &Path, name: &str) -> Vec<String> {
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let files = [
        ("--tls-ca", authority.pem()),
        ("--tls-certificate", certificate.pem()),
        ("--tls-key", key.serialize_pem()),
    ];
    let flags = files.into_iter().flat_map(|(flag, content)| {
        let path = folder.join(format!("{name}{flag}.pem"));
        fs::write(&path, content).unwrap();
        [flag.to_owned(), path.to_str().unwrap().to_owned()]
    });
    flags.collect()
}

#[test]
fn only_certificates_of_the_authority_are_served_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let (ours, theirs) = (certificates(folder.path(), "ours"), certificates(folder.path(), "theirs"));
    let of_server: Vec<&str> = ours.iter().map(String::as_str).collect();
    let server = Server::start(&folder.path().join("server"), &of_server);
    let with = |flags: &[String]| {
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--force"]).collect();
        worker(&input, &out, &server.address, "0/1", &flags)
    };
    // Without TLS, without a certificate, and with those of another authority.
    let mixed = [&ours[..2], &theirs[2..]].concat();
    for flags in [&[][..], &ours[..2], &mixed, &theirs] {
        let (code, told) = ended(with(&[flags, &["--patience".to_owned(), "0.3".to_owned()]].concat()));
        assert_eq!(code, Some(69), "{told}");
        assert!(told.contains("the parameter server has not answered for"), "{told}");
    }
    trained(with(&ours));
}

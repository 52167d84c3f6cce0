//! Kills and suspensions of servers and workers, at points of the training that a seed determines.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parameters::{Client, ClientOptions, TlsFiles, Wire};
use rustix::process::Signal;
use tests::command::ended;
use tests::seeds::{each_seed, seeds};

use super::super::sentences;
use super::{Running, Server, train, worker};

/// Returns when the server has accepted this number of pushes.
pub(crate) fn wait_for(client: &Client, n_pushes: u64) {
    while client.statistics().unwrap()[0].ledger.pushes < n_pushes {}
}

pub(crate) fn client(server: &Server) -> Client {
    Client::new(&ClientOptions {
        servers: vec![server.address.clone()],
        token: None,
        tls: TlsFiles::default(),
        wire: Wire::F32,
        patience: Duration::from_secs(300),
        stop: Arc::default(),
    })
    .unwrap()
}

#[test]
fn with_staleness_0_kills_of_server_and_workers_do_not_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(3000, 2)).unwrap();
    let flags = ["--workers", "2", "--staleness", "0", "--until-done", "--json", "--snapshot-every", "0.1"];
    let vectors = |out: &Path| fs::read(out.join("model/vectors.npy")).unwrap();
    let whole = folder.path().join("whole");
    let server = Server::start(&folder.path().join("server"), &flags);
    let address = server.address.clone();
    train(&input, &whole, &address, &[]);
    let ledger = server.ended()["ledger"].clone();
    let n_pushes = ledger["pushes"].as_u64().unwrap();
    each_seed(&seeds(2, 20), |seed| {
        let of_seed = |name: &str| folder.path().join(format!("{name}-{seed}"));
        let out = of_seed("out");
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut server = Server::start(&of_seed("server"), &flags);
        let client = client(&server);
        let address = server.address.clone();
        let start = |number: usize, more: &[&str]| {
            let mut command = worker(&input, &out, &address, ["0/2", "1/2"][number], more);
            Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
        };
        let mut workers = [start(0, &[]), start(1, &[])];
        let mut moments: Vec<u64> = (0..4).map(|_| draw(n_pushes * 3 / 4)).collect();
        moments.sort_unstable();
        for moment in moments {
            wait_for(&client, moment);
            match draw(3) {
                0 => server.kill_and_start_again(),
                1 => {
                    server.process.signal(Signal::STOP);
                    if draw(2) == 0 {
                        server.kill_and_start_again();
                    } else {
                        server.process.signal(Signal::CONT);
                    }
                }
                _ => {
                    let number = draw(2) as usize;
                    workers[number].signal(Signal::STOP);
                    workers[number].kill();
                    workers[number] = start(number, [&["--resume"][..], &[]][number]);
                }
            }
        }
        for mut worker in workers {
            assert!(worker.0.wait().unwrap().success());
        }
        assert!(vectors(&out) == vectors(&whole), "the vectors differ");
        assert_eq!(server.ended()["ledger"], ledger);
    });
}

#[test]
fn a_worker_that_waits_for_another_one_ends_at_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let server = Server::start(&folder.path().join("server"), &["--workers", "2", "--staleness", "0"]);
    let mut command = worker(&input, &out, &server.address, "0/2", &[]);
    let mut waiting = Running::start(command.stderr(Stdio::piped()));
    wait_for(&client(&server), 1);
    waiting.signal(Signal::TERM);
    let told = std::io::read_to_string(waiting.0.stderr.take().unwrap()).unwrap();
    assert_eq!(waiting.0.wait().unwrap().code(), Some(75), "{told}");
    assert!(told.contains("interrupted"), "{told}");
}

#[test]
fn a_worker_that_was_removed_writes_the_vectors_that_the_others_have_trained() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let flags = ["--workers", "2", "--staleness", "0", "--remove-after", "5", "--json"];
    let server = Server::start(&folder.path().join("server"), &flags);
    let client = client(&server);
    let start = |place: &str, more: &[&str]| {
        let mut command = worker(&input, &out, &server.address, place, more);
        Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let mut first = start("0/2", &[]);
    wait_for(&client, 1);
    first.kill();
    let mut other = start("1/2", &[]);
    assert!(other.0.wait().unwrap().success());
    assert!(client.statistics().unwrap()[0].workers[0].removed);
    server.wait_for_line("warning: worker 0 was removed, because it was silent for 5 s");
    let (code, told) = ended(worker(&input, &out, &server.address, "0/2", &["--resume"]));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("worker 0 was removed because it was silent for too long"), "{told}");
    assert!(told.contains("the model lacks the rest of its sentences"), "{told}");
    assert!(out.join("model/vectors.npy").exists());
}

#[test]
fn a_server_that_ends_because_its_last_worker_was_removed_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(300, 3)).unwrap();
    let flags = ["--workers", "1", "--remove-after", "1", "--until-done"];
    let server = Server::start(&folder.path().join("server"), &flags);
    let mut command = worker(&input, &out, &server.address, "0/1", &["--epochs", "100000"]);
    let mut only = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_for(&client(&server), 1);
    only.kill();
    server.wait_for_line("warning: worker 0 was removed");
}

#[test]
fn a_worker_that_was_replaced_and_continues_does_not_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(3000, 4)).unwrap();
    let flags = ["--workers", "2", "--staleness", "0", "--until-done", "--json"];
    let of = |name: &str| folder.path().join(name);
    let server = Server::start(&of("whole-server"), &flags);
    let address = server.address.clone();
    train(&input, &of("whole"), &address, &[]);
    let ledger = server.ended()["ledger"].clone();
    let server = Server::start(&of("server"), &flags);
    let client = client(&server);
    let address = server.address.clone();
    let start = |place: &str| {
        let mut command = worker(&input, &of("out"), &address, place, &["--patience", "15"]);
        Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let (mut first, mut forgotten) = (start("0/2"), start("1/2"));
    let n_pushes = ledger["pushes"].as_u64().unwrap();
    wait_for(&client, n_pushes / 4);
    forgotten.signal(Signal::STOP);
    let mut replacement = start("1/2");
    wait_for(&client, n_pushes / 2);
    forgotten.signal(Signal::CONT);
    assert!(first.0.wait().unwrap().success());
    // Either may be the first to complete the steps. The other one may not reach the server again, which ends then.
    let are_complete = [&mut forgotten, &mut replacement].map(|worker| worker.0.wait().unwrap().success());
    assert!(are_complete.contains(&true), "{are_complete:?}");
    assert_eq!(server.ended()["ledger"], ledger);
    let vectors = |out: &str| fs::read(of(out).join("model/vectors.npy")).unwrap();
    assert!(vectors("out") == vectors("whole"), "the vectors differ");
}

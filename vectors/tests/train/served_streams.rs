//! Vectors on parameter servers, trained by workers that read lines as they arrive.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::command::ended as ended_command;
use tests::seeds::{each_seed, seeds};

use super::served::Server;
use super::served::killed::client;
use super::streams::{ended, piped, until, until_taken};
use super::{embed, sentences, separation};

const SERVER: [&str; 4] = ["--workers", "2", "--until-done", "--json"];

fn worker(input: &Path, out: &Path, servers: &str, place: &str, more: &[&str]) -> Command {
    let flags = ["--async", servers, "--worker", place, "--step-pairs", "2000"];
    embed(input, out, &[&flags[..], more].concat())
}

/// Two workers with pipes, each with its own folder.
fn start(folder: &Path, servers: &str, more: &[&str]) -> [(Child, ChildStdin); 2] {
    ["0/2", "1/2"].map(|place| {
        let out = folder.join(format!("out{}", &place[..1]));
        piped(worker(Path::new("-"), &out, servers, place, more))
    })
}

/// Number of words that the server has counted.
fn counted(server: &Server) -> u64 {
    client(server).statistics().unwrap()[0].keys.map_or(0, |keys| keys.counted)
}

fn numbers<const N: usize>(summary: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| summary[name].as_u64().unwrap())
}

#[test]
fn two_streams_train_one_set_of_vectors() {
    let folder = tempfile::tempdir().unwrap();
    for (name, wire) in [("one", "f32"), ("two", "bf16")] {
        let folder = folder.path().join(name);
        let shards: &[&str] = if name == "one" { &["0/1"] } else { &["0/2", "1/2"] };
        let server = |shard: &&str| {
            let flags = [&SERVER[..], &["--shard", shard]].concat();
            Server::start(&folder.join(&shard[..1]), &flags)
        };
        let servers: Vec<Server> = shards.iter().map(server).collect();
        let addresses: Vec<&str> = servers.iter().map(|server| &server.address[..]).collect();
        let mut workers = start(&folder, &addresses.join(","), &["--wire", wire, "--words-max", "1000"]);
        for part in 0..10 {
            for (seed, (_, input)) in (0..).zip(&mut workers) {
                input.write_all(sentences(1000, 2 * part + seed).as_bytes()).unwrap();
            }
        }
        let summaries = workers.map(|(process, input)| {
            drop(input);
            move || ended(process, 0).0
        });
        let [first, other] = summaries.map(std::thread::spawn).map(|summary| summary.join().unwrap());
        for summary in [&first, &other] {
            assert_eq!(numbers(summary, ["lines", "skipped_lines", "lost_lines"]), [10_000, 0, 0]);
        }
        assert_eq!(numbers(&first, ["words", "tokens", "left_out_tokens"]), [22, 200_000, 0]);
        assert!(separation(&folder.join("out0")) > 0.5, "{}", separation(&folder.join("out0")));
        let statistics = servers.into_iter().map(Server::ended).next().unwrap();
        assert_eq!(statistics["keys"]["counted"], Value::from(200_000));
        for worker in 0..2 {
            assert_eq!(statistics["workers"][worker]["lines"]["trained"], Value::from(10_000));
        }
    }
}

#[test]
fn a_second_process_of_a_worker_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), &["--workers", "1", "--json"]);
    let lines = sentences(1000, 1);
    let mut both = ["one", "other"].map(|name| {
        let out = folder.path().join(name);
        piped(worker(Path::new("-"), &out, &server.address, "0/1", &["--words-max", "1000"]))
    });
    let began = Instant::now();
    let at = loop {
        for (_, input) in &mut both {
            // The one that has ended reads no more.
            let _ = input.write_all(lines.as_bytes());
        }
        if let Some(at) = both.iter_mut().position(|(process, _)| process.try_wait().unwrap().is_some()) {
            break at;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "none has ended");
    };
    let [one, other] = both;
    let ((refused, input), (left, left_input)) = if at == 0 { (one, other) } else { (other, one) };
    drop(input);
    let (_, told) = ended(refused, 78);
    assert!(told.contains("another process of this worker has completed"), "{told}");
    drop(left_input);
    let summary = ended(left, 0).0;
    assert_eq!(counted(&server), 10 * numbers(&summary, ["lines"])[0]);
}

#[test]
fn an_idle_source_stops_nobody_and_the_model_is_written_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    for staleness in ["0", "1"] {
        let folder = folder.path().join(staleness);
        let server =
            Server::start(&folder.join("server"), &[&SERVER[..], &["--staleness", staleness]].concat());
        let more = ["--words-max", "1000", "--checkpoint-every", "0.1"];
        let [(first, mut input), (idle, idle_input)] = start(&folder, &server.address, &more);
        input.write_all(sentences(4000, 1).as_bytes()).unwrap();
        until("all words are counted", || counted(&server) == 40_000);
        until("there is a model", || folder.join("out0/model/vectors.npy").exists());
        drop(idle_input);
        assert_eq!(numbers(&ended(idle, 0).0, ["lines", "tokens"]), [0, 40_000]);
        // It has left, and reads no lines that nobody would count.
        let more = [&more[..], &["--resume"]].concat();
        let (again, _again_input) =
            piped(worker(Path::new("-"), &folder.join("out1"), &server.address, "1/2", &more));
        let (again, told) = ended(again, 0);
        assert!(told.contains("this worker has left, because its source had ended"), "{told}");
        assert_eq!(numbers(&again, ["lines"]), [0]);
        drop(input);
        assert_eq!(numbers(&ended(first, 0).0, ["lines", "words"]), [4000, 22]);
        server.ended();
    }
}

#[test]
fn each_line_is_counted_once_after_kills_of_workers_and_the_server() {
    each_seed(&seeds(2, 20), |seed| {
        let folder = tempfile::tempdir().unwrap();
        let flags = [&SERVER[..], &["--snapshot-every", "0.2"]].concat();
        let mut server = Server::start(&folder.path().join("server"), &flags);
        let address = server.address.clone();
        let start_again = |place: usize| {
            let out = folder.path().join(format!("out{place}"));
            let place = format!("{place}/2");
            piped(worker(Path::new("-"), &out, &address, &place, &["--words-max", "1000", "--resume"]))
        };
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut workers = [start_again(0), start_again(1)];
        let mut n_lines = [0, 0];
        for round in 0..4 {
            for (at, (_, input)) in workers.iter_mut().enumerate() {
                let n = 500 + draw(400) as usize;
                input.write_all(sentences(n, seed + round).as_bytes()).unwrap();
                until_taken(input);
                n_lines[at] += n as u64;
            }
            if draw(2) == 0 {
                server.kill_and_start_again();
            }
            let killed = draw(2) as usize;
            let signal = [Signal::KILL, Signal::TERM][draw(2) as usize];
            let process = &mut workers[killed].0;
            kill_process(Pid::from_child(process), signal).unwrap();
            let code = process.wait().unwrap().code();
            assert_eq!(code, (signal == Signal::TERM).then_some(75));
            workers[killed] = start_again(killed);
        }
        let summaries = workers.map(|(process, input)| {
            drop(input);
            std::thread::spawn(|| ended(process, 0))
        });
        for (summary, n_lines) in summaries.into_iter().zip(n_lines) {
            let (summary, told) = summary.join().unwrap();
            assert_eq!(
                numbers(&summary, ["lines", "skipped_lines", "lost_lines"]),
                [n_lines, 0, 0],
                "{told}"
            );
        }
        let statistics = server.ended();
        assert_eq!(statistics["keys"]["counted"], Value::from(10 * n_lines.iter().sum::<u64>()));
        assert_eq!(
            (&statistics["keys"]["rows"], &statistics["balanced"]),
            (&Value::from(22), &Value::from(true))
        );
        assert!(separation(&folder.path().join("out0")) > 0.2);
    });
}

#[test]
fn folders_that_grow_are_followed_by_two_workers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), &SERVER);
    let at = |name: &str| folder.path().join(name);
    let logs = ["logs0", "logs1"].map(at);
    let write = |logs: &Path, number: u64| {
        fs::write(logs.join(format!("{number}.txt")), sentences(500, number)).unwrap();
    };
    for logs in &logs {
        fs::create_dir(logs).unwrap();
        // A folder without a file is refused.
        write(logs, 0);
    }
    let start = |place: &str, more: &[&str]| {
        let flags = [&["--follow", "--words-max", "1000"][..], more].concat();
        let number = &place[..1];
        piped(worker(
            &at(&format!("logs{number}")),
            &at(&format!("out{number}")),
            &server.address,
            place,
            &flags,
        ))
        .0
    };
    let mut n_counted = 10_000;
    for (number, more) in (1..).zip([&[][..], &["--resume"]]) {
        let workers = ["0/2", "1/2"].map(|place| start(place, more));
        logs.iter().for_each(|logs| write(logs, number));
        n_counted += 10_000;
        until("all words are counted", || counted(&server) == n_counted);
        for process in workers {
            kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
            let (_, told) = ended(process, 75);
            // The one that is stopped later may wait for the other one.
            assert!(told.contains("repeat the command"), "{told}");
        }
    }
    assert_eq!(counted(&server), 30_000);
}

/// The refusals of the documentation are those of the program.
#[test]
fn refused_combinations_are_those_of_the_documentation() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(100, 3)).unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/parameter-server.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("| `vectors train` with | is refused |").unwrap();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 6, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let mut command = tests::command::program("vectors");
        command.arg("train").arg("--out").arg(&out);
        for word in cells[0].split(' ') {
            match word {
                "FILE" => command.arg(&input),
                "SERVER" => command.arg("127.0.0.1:1"),
                word => command.arg(word),
            };
        }
        let (code, told) = ended_command(command);
        assert!(code == Some(78) && told.contains(cells[1]), "{row}\n{code:?} {told}");
    }
}

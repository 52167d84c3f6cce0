//! Vectors of words by their characters, on lines that arrive over time.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::spelled::{neighbours, spelled};
use super::streams::{ended, piped, until, until_taken};
use super::{TOPICS, sentences, separation, trained};

#[test]
fn words_and_characters_are_learned_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    let late = "Дом дома мода\nдома мода дом\n".repeat(20);
    fs::write(&input, sentences(12_000, 11) + &late).unwrap();
    let mut command = spelled(Path::new("-"), &out, &["--subsample", "0"]);
    command.stdin(File::open(&input).unwrap());
    let summary = trained(command);
    assert_eq!((&summary["words"], &summary["tokens"]), (&Value::from(25), &Value::from(120_120)));
    assert_eq!(
        (&summary["trained_tokens"], &summary["lines"]),
        (&Value::from(120_120), &Value::from(12_040))
    );
    assert!(separation(&out) > 0.5, "{}", separation(&out));
    let found = neighbours(&out, &["kettel", "chaptr", "authour"], 3);
    for (near, topic) in found.iter().zip([0, 1, 1]) {
        assert!(near.iter().all(|near| TOPICS[topic].contains(&near.as_str())), "{found:?}");
    }
    let characters = fs::read_to_string(out.join("model/characters.txt")).unwrap();
    assert!(characters.ends_with("д\nо\nм\nа\n"), "{characters}");
}

#[test]
fn each_line_of_a_stream_that_is_stopped_and_killed_is_learned_from_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let text = sentences(3000, 2);
    let bytes = text.as_bytes();
    // Cut within a line before the stop and, because a kill loses such a line, at the end of one before the kill.
    let half = bytes.len() / 2 + text[bytes.len() / 2..].find('\n').unwrap() + 1;
    let cuts = [0, bytes.len() / 4 + 4, half, bytes.len()];
    for (cut, signal) in cuts.windows(2).zip([Some(Signal::TERM), Some(Signal::KILL), None]) {
        let (mut process, mut input) =
            piped(spelled(Path::new("-"), &out, &[if cut[0] == 0 { "--quiet" } else { "--resume" }]));
        input.write_all(&bytes[cut[0]..cut[1]]).unwrap();
        match signal {
            Some(signal) => {
                until_taken(&input);
                kill_process(Pid::from_child(&process), signal).unwrap();
                process.wait().unwrap();
                // What a checkpoint has is a model.
                assert!(out.join("model/characters.txt").exists());
            }
            None => {
                drop(input);
                let (summary, told) = ended(process, 0);
                let found =
                    ["lines", "tokens", "skipped_lines", "lost_lines"].map(|name| summary[name].as_u64());
                assert_eq!(found, [3000, 30_000, 0, 0].map(Some), "{told}");
                assert!(told.contains("are read again"), "{told}");
            }
        }
    }
    // The next stream.
    let mut command = spelled(Path::new("-"), &out, &["--resume"]);
    let next = folder.path().join("next");
    fs::write(&next, sentences(500, 3)).unwrap();
    command.stdin(File::open(&next).unwrap());
    assert_eq!(trained(command)["lines"], Value::from(3500));
}

#[test]
fn a_folder_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, out) = (folder.path().join("logs"), folder.path().join("out"));
    fs::create_dir(&logs).unwrap();
    fs::write(logs.join("a"), sentences(1000, 5)).unwrap();
    let flags = ["--follow", "--checkpoint-every", "0.2"];
    let (process, _input) = piped(spelled(&logs, &out, &flags));
    until("a checkpoint", || out.join("model/characters.txt").exists());
    let mut log = OpenOptions::new().append(true).open(logs.join("a")).unwrap();
    log.write_all(sentences(1000, 6).as_bytes()).unwrap();
    fs::write(logs.join("b"), sentences(1000, 7)).unwrap();
    until("all lines are counted", || {
        let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap_or_default();
        metrics.contains("\"lines\":3000")
    });
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    ended(process, 75);
    let counts = fs::read_to_string(out.join("model/words.txt")).unwrap();
    let n: u64 = counts
        .lines()
        .map(|line| line.rsplit_once(char::is_whitespace).unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(n, 30_000);
}

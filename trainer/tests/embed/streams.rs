//! Trainings on lines that arrive over time.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::seeds::{each_seed, seeds};

use super::{embed, sentences, separation};

fn start(out: &Path, more: &[&str]) -> (Child, ChildStdin) {
    let mut command = embed(Path::new("-"), out, more);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = process.stdin.take().unwrap();
    (process, input)
}

#[track_caller]
fn ended(process: Child, code: i32) -> (Value, String) {
    let output = process.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{told}");
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), told)
}

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Lines that the process has read.
fn lines_read(out: &Path) -> u64 {
    fs::read_to_string(out.join(".lines-read")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn standard_input_is_learned_from_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (process, mut input) = start(&out, &["--threads", "2"]);
    for seed in 0..5 {
        input.write_all(sentences(4000, seed).as_bytes()).unwrap();
    }
    drop(input);
    let (summary, told) = ended(process, 0);
    assert_eq!((&summary["lines"], &summary["tokens"]), (&Value::from(20_000), &Value::from(200_000)));
    assert_eq!(
        (&summary["trained_tokens"], &summary["skipped_lines"]),
        (&Value::from(200_000), &Value::from(0))
    );
    assert!(separation(&out) > 0.5, "{told}");
}

#[test]
fn a_stream_ends_after_a_number_of_words() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (process, mut input) = start(&out, &["--words", "100000"]);
    // The writer is told by a closed pipe.
    while input.write_all(sentences(1000, 1).as_bytes()).is_ok() {}
    let (summary, _) = ended(process, 0);
    let tokens = summary["tokens"].as_u64().unwrap();
    assert!((100_000..500_000).contains(&tokens), "{tokens}");
}

#[test]
fn a_stopped_stream_continues_with_the_next_byte() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let text = sentences(6000, 2);
    let bytes = text.as_bytes();
    // Cut within lines.
    let cuts = [0, bytes.len() / 3 + 4, 2 * bytes.len() / 3 + 7, bytes.len()];
    let mut summary = Value::Null;
    for (at, cut) in cuts.windows(2).enumerate() {
        let (process, mut input) = start(&out, if at == 0 { &[] } else { &["--resume"] });
        input.write_all(&bytes[cut[0]..cut[1]]).unwrap();
        if cut[1] == bytes.len() {
            drop(input);
            summary = ended(process, 0).0;
        } else {
            let n_lines = bytes[..cut[1]].iter().filter(|&&byte| byte == b'\n').count() as u64;
            until("all complete lines are read", || lines_read(&out) == n_lines);
            kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
            let (_, told) = ended(process, 75);
            assert!(told.contains("interrupted; a checkpoint is in"), "{told}");
            // The model of the stream so far.
            assert!(out.join("model/vectors.npy").exists());
            drop(input);
        }
    }
    assert_eq!((&summary["lines"], &summary["tokens"]), (&Value::from(6000), &Value::from(60_000)));
    assert!(separation(&out) > 0.3);
}

#[test]
fn lines_that_a_killed_process_read_after_its_checkpoint_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (process, mut input) = start(&out, &["--checkpoint-every", "0"]);
    input.write_all(sentences(3000, 3).as_bytes()).unwrap();
    until("the first lines are read", || lines_read(&out) == 3000);
    kill_process(Pid::from_child(&process), Signal::USR1).unwrap();
    until("there is a checkpoint", || out.join("model/vectors.npy").exists());
    input.write_all(sentences(500, 4).as_bytes()).unwrap();
    until("the last lines are read", || lines_read(&out) == 3500);
    kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
    let _ = process.wait_with_output();
    drop(input);
    let (process, mut input) = start(&out, &["--checkpoint-every", "0", "--resume"]);
    input.write_all(sentences(1000, 5).as_bytes()).unwrap();
    drop(input);
    let (summary, told) = ended(process, 0);
    assert!(told.contains("500 lines that it read after its last one are lost"), "{told}");
    assert_eq!(summary["lines"], Value::from(4000));
}

/// The number of lost lines that a resumed process reports; 0 without a report.
fn lost(told: &str) -> u64 {
    let line = told.lines().find(|line| line.contains("lines that it read after its last one are lost"));
    let number = line.and_then(|line| line.rsplit_once(" lines that it read")?.0.rsplit(' ').next());
    number.map_or(0, |number| number.replace(',', "").parse().unwrap())
}

#[test]
fn lines_after_the_checkpoint_of_a_process_killed_at_any_instant_are_lost_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    each_seed(&seeds(4, 20), |seed| {
        let out = folder.path().join(format!("out-{seed}"));
        let flags = ["--checkpoint-every", "0.03", "--threads", "1"];
        let (process, mut input) = start(&out, &flags);
        let mut n_written = 0;
        for part in 0..1 + seed % 5 {
            let n = 500 + (seed * 7919 + part * 104_729) % 4000;
            input.write_all(sentences(n as usize, seed + part).as_bytes()).unwrap();
            n_written += n;
            until("the lines are read", || lines_read(&out) == n_written);
        }
        // While it trains, writes a checkpoint or waits for lines.
        thread::sleep(Duration::from_millis(seed * 7919 % 90));
        kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
        let _ = process.wait_with_output();
        drop(input);
        let (process, mut input) = start(&out, &[&flags[..], &["--resume"]].concat());
        input.write_all(sentences(1000, seed).as_bytes()).unwrap();
        drop(input);
        let (summary, told) = ended(process, 0);
        let n_kept = summary["lines"].as_u64().unwrap();
        assert_eq!(n_kept + lost(&told), n_written + 1000, "{told}");
    });
}

#[test]
fn a_stream_without_a_word_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (process, input) = start(&folder.path().join("out"), &[]);
    drop(input);
    let (_, told) = ended(process, 65);
    assert!(told.contains("-: no word occurs 5 times; lower --min-count, or check --format"), "{told}");
}

#[test]
fn lines_that_are_skipped_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Many samples: slower than the writer.
    let (process, mut input) = start(&out, &["--if-slow", "skip", "--negatives", "300", "--threads", "1"]);
    let text = sentences(20_000, 6);
    for _ in 0..20 {
        input.write_all(text.as_bytes()).unwrap();
    }
    drop(input);
    let (summary, told) = ended(process, 0);
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert!(number("skipped_lines") > 0, "{told}");
    assert_eq!(number("lines") + number("skipped_lines"), 400_000, "{told}");
    assert!(told.contains(" of 400,000 lines were skipped"), "{told}");
    assert_eq!(number("tokens"), 10 * (400_000 - number("skipped_lines")), "{told}");
}

#[test]
fn a_folder_is_followed_and_continues_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, out) = (folder.path().join("logs"), folder.path().join("out"));
    fs::create_dir(&logs).unwrap();
    let append = |name: &str, text: &str| {
        let mut file: File =
            OpenOptions::new().create(true).append(true).open(PathBuf::from(&logs).join(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("a", &sentences(1000, 7));
    let process = |more: &[&str]| {
        let mut command = embed(&logs, &out, &[&["--follow"], more].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = process(&[]);
    until("the first file is read", || lines_read(&out) == 1000);
    append("a", &sentences(1000, 8));
    append("b", &sentences(1000, 9));
    until("new lines are read", || lines_read(&out) == 3000);
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    ended(first, 75);
    append("b", &sentences(1000, 10));
    let second = process(&["--resume"]);
    until("lines that arrived in between are read", || lines_read(&out) == 4000);
    kill_process(Pid::from_child(&second), Signal::TERM).unwrap();
    ended(second, 75);
    assert!(separation(&out) > 0.3);
}

//! Trainings on lines that arrive over time.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::compressed::gzip;
use tests::tracer::{Call, Kind, Then, permitted, trace};

use super::{embed, sentences, separation};

fn start(out: &Path, more: &[&str]) -> (Child, ChildStdin) {
    piped(embed(Path::new("-"), out, more))
}

/// Starts a command whose streams are pipes.
pub(crate) fn piped(mut command: Command) -> (Child, ChildStdin) {
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = process.stdin.take().unwrap();
    (process, input)
}

#[track_caller]
pub(crate) fn ended(process: Child, code: i32) -> (Value, String) {
    let output = process.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{told}");
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), told)
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(300), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a process has taken all bytes that were written to its input.
#[track_caller]
pub(crate) fn until_taken(input: &impl AsFd) {
    until("all bytes are taken", || rustix::io::ioctl_fionread(input).unwrap() == 0);
}

/// Lines that were trained on at the end of the last segment. Each checkpoint ends one.
fn lines_trained(out: &Path) -> u64 {
    let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap_or_default();
    let mut lines =
        metrics.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["lines"].as_u64());
    lines.next_back().unwrap_or_default()
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
fn a_stream_has_a_model_while_the_next_one_replaces_it() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (process, mut input) = start(&out, &[]);
    input.write_all(sentences(2000, 1).as_bytes()).unwrap();
    until_taken(&input);
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    ended(process, 75);

    let (model, mut n_replaced) = (out.join("model"), 0);
    let resumed = embed(Path::new("-"), &out, &["--resume"]);
    let ended = trace(&resumed, sentences(2000, 2).as_bytes(), &mut |Call { kind, path }| {
        if let Kind::Name { from } = kind {
            assert_ne!(from, &model, "there is no model for a moment");
            n_replaced += usize::from(*path == model);
        }
        Then::GoOn
    });
    assert_eq!((ended.code, n_replaced), (Some(0), 1), "{}", ended.stderr);
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
            until_taken(&input);
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
fn a_stream_that_ended_continues_with_the_lines_of_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (at, more) in [(1, &[][..]), (2, &["--resume"]), (3, &["--resume"])] {
        let (process, mut input) = start(&out, more);
        // The last line has no line end.
        input.write_all(sentences(1000, at).trim_end().as_bytes()).unwrap();
        drop(input);
        let (summary, told) = ended(process, 0);
        let expected = (Value::from(1000 * at), Value::from(10_000 * at), Value::from(0));
        let found = (summary["lines"].clone(), summary["tokens"].clone(), summary["lost_lines"].clone());
        assert_eq!(found, expected, "{told}");
        assert!(!told.contains("warning"), "{told}");
        let of_all = format!("words; {at}0,000 tokens, of which this process trained on 10,000 tokens in ");
        assert_eq!(told.contains(&of_all), at > 1, "{told}");
        // The log has the speed that is printed.
        let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
        let lines = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let speed = lines.filter_map(|line| line["tokens_per_s"].as_f64()).next_back();
        assert_eq!(summary["tokens_per_s"].as_f64(), speed);
    }
    // With a number of words, the training is complete.
    let out = folder.path().join("complete");
    for (more, was_complete) in [(&[][..], None), (&["--resume"], Some(true))] {
        let (process, mut input) = start(&out, &[&["--words", "20000"], more].concat());
        let _ = input.write_all(sentences(1000, 1).as_bytes());
        drop(input);
        let (summary, told) = ended(process, 0);
        assert_eq!(summary["was_complete"].as_bool().filter(|&was| was), was_complete, "{told}");
    }
}

#[test]
fn a_stream_that_cannot_be_trained_on_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let line = "{\"text\": \"a good kettle\"}\n".repeat(20);
    let array = format!("[{}]", line.trim_end().replace('\n', ",\n"));
    for (format, text, expected) in [
        (&["--format", "fasttext"][..], &line, "no line is of the format fasttext; check --format"),
        (&["--format", "json"], &line, "found the fields text; name the field with --text-field"),
        (
            &["--format", "json"],
            &array,
            "the input is a JSON array; write one object per line with jq -c '.[]' FILE",
        ),
        (&[], &line, "the first line is of JSON"),
    ] {
        let (process, mut input) = start(&out, format);
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        let (_, told) = ended(process, 65);
        assert!(told.contains(expected), "{told}");
    }
    let (process, mut input) = start(&out, &["--format", "json", "--text-field", "text"]);
    input.write_all(line.as_bytes()).unwrap();
    drop(input);
    ended(process, 0);
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
        let flags = ["--follow", "--checkpoint-every", "0.05"];
        let mut command = embed(&logs, &out, &[&flags, more].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = process(&[]);
    until("the first file is read", || lines_trained(&out) == 1000);
    append("a", &sentences(1000, 8));
    append("b", &sentences(1000, 9));
    until("new lines are read", || lines_trained(&out) == 3000);
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    ended(first, 75);
    append("b", &sentences(1000, 10));
    let second = process(&["--resume"]);
    until("lines that arrived in between are read", || lines_trained(&out) == 4000);
    kill_process(Pid::from_child(&second), Signal::TERM).unwrap();
    ended(second, 75);
    assert!(separation(&out) > 0.3);
}

#[test]
fn a_line_that_is_too_long_is_skipped_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, long) = (folder.path().join("text"), "a ".repeat(3 << 20));
    fs::write(&path, format!("{}{long}\n{}", sentences(1000, 1), sentences(1000, 2))).unwrap();
    for input in [&path, Path::new("-")] {
        let out = folder.path().join(format!("out-{}", input == path));
        let mut command = embed(input, &out, &[]);
        command.stdin(File::open(&path).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (summary, told) = ended(command.spawn().unwrap(), 0);
        assert_eq!((&summary["lines"], &summary["tokens"]), (&Value::from(2000), &Value::from(20_000)));
        assert!(told.contains(&format!("{}:1001: line_too_long\n", input.display())), "{told}");
        let counted = "lines of more than 4,194,304 bytes, which were skipped: 1; check --format";
        assert!(told.contains(counted), "{told}");
        assert_eq!(summary["skipped_lines"], Value::from(u64::from(input != path)));
    }
}

#[test]
fn a_stream_that_cannot_be_read_further_ends_with_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let packed = gzip(sentences(20_000, 1).as_bytes());
    let (process, mut input) = start(&out, &[]);
    input.write_all(&packed[..packed.len() / 2]).unwrap();
    drop(input);
    let (_, told) = ended(process, 65);
    assert!(told.contains("-: cannot read it: the gzip member at byte 0 is cut off"), "{told}");
    let n_lines = lines_trained(&out);
    assert!((5000..15_000).contains(&n_lines), "{n_lines}");
    let (process, mut input) = start(&out, &["--resume"]);
    input.write_all(sentences(1000, 2).as_bytes()).unwrap();
    drop(input);
    let (summary, told) = ended(process, 0);
    assert_eq!(summary["lines"], Value::from(n_lines + 1000), "{told}");
}

#[test]
fn a_file_that_is_not_complete_does_not_end_a_training_that_follows_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, out) = (folder.path().join("logs"), folder.path().join("out"));
    fs::create_dir(&logs).unwrap();
    let packed = gzip(sentences(3000, 1).as_bytes());
    fs::write(logs.join("a.gz"), &packed[..packed.len() - 9]).unwrap();
    fs::write(logs.join("b"), sentences(1000, 2)).unwrap();
    let mut command = embed(&logs, &out, &["--follow", "--checkpoint-every", "0.05"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = command.spawn().unwrap();
    until("all but the last line is read", || lines_trained(&out) >= 3999);
    fs::write(logs.join("b"), sentences(200, 3)).unwrap();
    until("the file is read from its start", || lines_trained(&out) >= 4199);
    fs::write(logs.join("a.gz"), &packed).unwrap();
    until("the rest is read", || lines_trained(&out) == 4200);
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    let (_, told) = ended(process, 75);
    let name = |name| logs.join(name).display().to_string();
    assert!(told.contains(&format!("{}: cannot read it: the gzip member", name("a.gz"))), "{told}");
    let replaced = "found other content than the 1000 lines that were read of it; reading it from its start";
    assert!(told.contains(&format!("{}: {replaced}", name("b"))), "{told}");
}

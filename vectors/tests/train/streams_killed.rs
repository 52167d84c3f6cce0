//! Trainings on streams that are killed and stopped while lines arrive. Each line that was written is trained on, skipped,
//! or reported as lost.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tests::say;
use tests::seeds::{each_seed, seeds};

use super::streams::{ended, until, until_taken};
use super::{embed, sentences};

/// How lines arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flow {
    /// As fast as they are read.
    Fast,
    /// Some at a time, less than 8 KiB, when the last ones were read.
    Bursts,
}

/// A pipe whose source writes while processes that read it come and go.
struct Source {
    reader: OwnedFd,
    writer: OwnedFd,
    n_lines: AtomicU64,
    is_over: AtomicBool,
}

/// What was written, and what processes reported.
#[derive(Debug, Default)]
struct Reported {
    n_lines: u64,
    n_skipped: u64,
    n_lost: u64,
    n_again: u64,
}

impl Source {
    fn new() -> Self {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        Self { reader, writer, n_lines: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }

    /// Writes until it is told to end.
    fn write(&self, flow: Flow, seed: u64) {
        let mut writer = File::from(self.writer.try_clone().unwrap());
        for part in 0.. {
            let n_lines = match flow {
                Flow::Fast => 2000,
                Flow::Bursts => 1 + (seed * 7919 + part * 104_729) % 100,
            };
            // Whole lines are written, in pieces that end anywhere.
            writer.write_all(sentences(n_lines as usize, seed + part % 7).as_bytes()).unwrap();
            self.n_lines.fetch_add(n_lines, Relaxed);
            if self.is_over.load(Relaxed) {
                return;
            }
            if flow == Flow::Bursts {
                while rustix::io::ioctl_fionread(&self.writer).unwrap() > 0 && !self.is_over.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    fn start(&self, out: &Path, more: &[&str]) -> Child {
        let mut command = embed(Path::new("-"), out, more);
        command.stdin(self.reader.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// A number before a text in what was told; 0 without it.
fn number_before(told: &str, text: &str) -> u64 {
    let number = |line: &str| line.split_once(text)?.0.rsplit(' ').next().map(|n| n.replace(',', ""));
    told.lines().filter_map(number).map(|number| number.parse::<u64>().unwrap()).sum()
}

impl Reported {
    fn add(&mut self, told: &str) {
        self.n_lost += number_before(told, " lines that it read after its last one are lost");
        self.n_again += number_before(told, " lines that it read after its last one are read again");
    }
}

/// Sends signals at random instants to one process after the other, then reads the stream to its end. Compares the lines
/// that were written with those of the summary and of the reports.
fn run(folder: &Path, seed: u64, flow: Flow, signals: &[Signal]) -> Reported {
    let out: PathBuf = folder.join(format!("out-{seed}-{}", signals.len()));
    let skips: &[&str] = if seed % 3 == 1 { &["--if-slow", "skip"] } else { &[] };
    let every = ["0", "0.03", "0.2"][seed as usize % 3];
    let flags = [&["--checkpoint-every", every, "--threads", "1"], skips].concat();
    let (source, mut reported) = (Source::new(), Reported::default());
    let last = thread::scope(|scope| {
        scope.spawn(|| source.write(flow, seed));
        let mut resumed: &[&str] = &[];
        for (number, &signal) in signals.iter().enumerate() {
            let process = source.start(&out, &[&flags, resumed].concat());
            let before = source.n_lines.load(Relaxed);
            // One in ten is not waited for until it reads.
            if seed % 10 != 9 {
                until("lines are read", || source.n_lines.load(Relaxed) > before);
            }
            // While it reads, trains, or saves a checkpoint.
            thread::sleep(Duration::from_millis((seed * 7919 + number as u64 * 104_729) % 300));
            kill_process(Pid::from_child(&process), signal).unwrap();
            let output = process.wait_with_output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            // A signal before it listens ends it.
            assert!(output.status.code().is_none_or(|code| code == 75), "{told}");
            reported.add(&told);
            if out.join("settings.json").exists() {
                resumed = &["--resume"];
            }
        }
        let process = source.start(&out, &[&flags, resumed].concat());
        source.is_over.store(true, Relaxed);
        process
    });
    drop(source.writer);
    let (summary, told) = ended(last, 0);
    reported.add(&told);
    let number = |name: &str| summary[name].as_u64().unwrap();
    let (trained, skipped, lost) = (number("lines"), number("skipped_lines"), number("lost_lines"));
    (reported.n_lines, reported.n_skipped) = (source.n_lines.load(Relaxed), skipped);
    assert_eq!(trained + skipped + lost, reported.n_lines, "{reported:?}: {told}");
    // A process that is killed after it has reported a loss, and before its checkpoint, is followed by one that repeats it.
    assert!(reported.n_lost >= lost && (reported.n_lost == 0) == (lost == 0), "{reported:?}: {told}");
    reported
}

/// Runs all seeds, and prints their sums.
fn run_all(usual: u64, proof: u64, flow: Flow, signals: &[Signal]) {
    let folder = tempfile::tempdir().unwrap();
    let all = Mutex::new((0, Reported::default()));
    each_seed(&seeds(usual, proof), |seed| {
        let found = run(folder.path(), seed, flow, signals);
        let mut all = all.lock().unwrap();
        all.0 += 1;
        all.1.n_lines += found.n_lines;
        all.1.n_skipped += found.n_skipped;
        all.1.n_lost += found.n_lost;
        all.1.n_again += found.n_again;
    });
    let (n, found) = all.into_inner().unwrap();
    say(&format!("{n} times {signals:?}, {flow:?}: {found:?}"));
}

#[test]
fn lines_of_a_stream_that_flows_add_up_after_a_kill() {
    run_all(6, 300, Flow::Fast, &[Signal::KILL]);
}

#[test]
fn lines_of_small_bursts_add_up_after_a_stop_and_after_a_kill() {
    run_all(3, 100, Flow::Bursts, &[Signal::TERM]);
    run_all(3, 100, Flow::Bursts, &[Signal::KILL]);
}

#[test]
fn lines_of_a_stream_add_up_in_every_order_of_stops_and_kills() {
    for first in [Signal::TERM, Signal::KILL] {
        for second in [Signal::TERM, Signal::KILL] {
            run_all(1, 100, Flow::Fast, &[first, second]);
            run_all(1, 100, Flow::Bursts, &[first, second]);
        }
    }
}

#[test]
fn lines_that_exceed_what_is_kept_are_lost_and_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let flags = ["--checkpoint-every", "0", "--threads", "1", "--if-slow", "skip"];
    let (source, mut reported) = (Source::new(), Reported::default());
    let process = source.start(&out, &flags);
    let text = sentences(20_000, 1);
    let n_parts = (100 << 20) / text.len() as u64;
    let mut writer = File::from(source.writer.try_clone().unwrap());
    (0..n_parts).for_each(|_| writer.write_all(text.as_bytes()).unwrap());
    until_taken(&source.reader);
    kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
    process.wait_with_output().unwrap();
    // Killed again, before and after it has reported what was lost.
    for wait_ms in [0, 50, 150, 400] {
        let process = source.start(&out, &[&flags[..], &["--resume"]].concat());
        thread::sleep(Duration::from_millis(wait_ms));
        kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
        let output = process.wait_with_output().unwrap();
        reported.add(&String::from_utf8(output.stderr).unwrap());
    }
    let process = source.start(&out, &[&flags[..], &["--resume"]].concat());
    drop((source, writer));
    let (summary, told) = ended(process, 0);
    reported.add(&told);
    let number = |name: &str| summary[name].as_u64().unwrap();
    let lost = number("lost_lines");
    assert!(
        lost > 100_000 && reported.n_lost >= lost && reported.n_lost.is_multiple_of(lost),
        "{reported:?}: {told}"
    );
    assert_eq!(number("lines") + number("skipped_lines") + lost, n_parts * 20_000, "{told}");
}

#[test]
fn half_a_line_of_a_killed_process_is_not_joined_to_a_later_text() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let flags = ["--checkpoint-every", "0", "--min-count", "1"];
    let words = |text: &str| (text.to_owned() + " ").repeat(5);
    let run = |text: &str, more: &[&str], signal: Option<Signal>| {
        let source = Source::new();
        let process = source.start(&out, &[&flags, more].concat());
        let mut writer = File::from(source.writer.try_clone().unwrap());
        writer.write_all(text.as_bytes()).unwrap();
        until_taken(&source.reader);
        match signal {
            Some(signal) => kill_process(Pid::from_child(&process), signal).unwrap(),
            None => drop((source, writer)),
        }
        process.wait_with_output().unwrap()
    };
    let told = |output: std::process::Output| String::from_utf8(output.stderr).unwrap();
    run(&format!("{}\n{}half", words("alpha"), words("beta")), &[], Some(Signal::TERM));
    let second = run("ling\ngamma gamma\nst", &["--resume"], Some(Signal::KILL));
    assert!(second.status.code().is_none());
    let last = told(run("gamma delta\n", &["--resume"], None));
    let killed = "the last process did not end with a checkpoint";
    assert!(
        last.contains(&format!("{killed}: 2 lines that it read after its last one are read again")),
        "{last}"
    );
    let open = format!("{killed}: the first 2 bytes of a line, whose end it did not read, are lost");
    assert!(last.contains(&open), "{last}");
    let model = fs::read_to_string(out.join("model/words.txt")).unwrap();
    let mut words: Vec<&str> = model.lines().filter_map(|line| line.split_whitespace().next()).collect();
    words.sort_unstable();
    assert_eq!(words, ["alpha", "beta", "delta", "gamma", "halfling"]);
}

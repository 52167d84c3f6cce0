//! After a signal the program exits at once, reports it, and leaves nothing.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, Command};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::demo::raw;
use tests::programs::start;

use crate::made::{Flags, Manner, Room};

/// The test's ends of the pipes, which stay open.
type Pipes = (ChildStdin, BufReader<ChildStderr>);

/// Starts the program with part of its input, and sends the signal when it prints that this stage starts.
fn interrupted(sentimill: &mut Command, input: &[u8], signal: Signal, doing: &str) -> (Child, Pipes, String) {
    let mut child = start(sentimill);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (mut said, mut last) = (String::new(), String::new());
    while !last.starts_with(&format!("sentimill: {doing}")) {
        last.clear();
        assert!(stderr.read_line(&mut last).unwrap() > 0, "it never came to {doing}: {said}");
        said += &last;
    }
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    last.clear();
    stderr.read_line(&mut last).unwrap();
    (child, (stdin, stderr), last)
}

#[test]
fn a_signal_ends_the_program_in_every_stage() {
    // Large enough that its last stage, which takes 2 s, does not end between its start message and the
    // signal.
    let (lines, _) = raw(60_000, 1);
    let flags = Flags { dataset: &["--padded", "60000"], ..Flags::default() };
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        for manner in [Manner { threads: 2, memory: "512MiB" }, Manner::SPARING] {
            for doing in ["reading (", "reading\n", "folding", "writing", "reading them back", "copying"] {
                // Standard input does not end by itself.
                let inputs = if doing == "reading\n" { ["-"] } else { ["reviews.json"] };
                let room = Room::new();
                room.write("reviews.json", &lines);
                let (mut child, pipes, said) =
                    interrupted(&mut room.sentimill(manner, &flags, &inputs), b"\n", signal, doing);
                let how = format!("{signal:?} while {doing}, {manner:?}: {said}");
                assert_eq!(child.wait().unwrap().code(), Some(75), "{how}");
                drop(pipes);
                assert_eq!(room.files(), ["reviews.json"], "{how}");
            }
        }
    }
}

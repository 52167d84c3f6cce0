//! Output that no process reads is a failure, because records would be lost.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::demo::DEMO;
use tests::lines::sorted_as_c;
use tests::pipe::reducer;
use tests::programs::{Finished, finish, program, run, start};
use tests::say;

use crate::made::commits;

/// Runs the command with a reader that exits before there is any input.
fn unread(command: &mut Command, input: &[u8]) -> Finished {
    let mut child = start(command);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    match stdin.write_all(input) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    drop(stdin);
    finish(child, &format!("{command:?}"))
}

#[test]
fn a_closed_pipe_is_a_failure() {
    for (name, input) in [("mapper", &DEMO.raw), ("combiner", &DEMO.records)] {
        let failed = unread(&mut program(name), input).with_code(74);
        assert!(
            failed.stderr.contains(&format!("{name}: standard output: cannot write records: broken pipe")),
            "{}",
            failed.stderr
        );
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    for (name, input) in [("mapper", &DEMO.raw), ("combiner", &DEMO.records)] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut child =
            program(name).stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        // The program may exit before it has read all input.
        let _ = child.stdin.take().unwrap().write_all(input);
        finish(child, name).with_code(74);
    }
}

#[test]
fn a_reducer_whose_output_is_lost_has_committed_and_can_be_rerun() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);

    unread(&mut reducer(folder.path(), 0, 1), &sorted).with_code(74);

    assert_eq!(commits(folder.path()).len(), 1);
    run(&mut reducer(folder.path(), 0, 1), &sorted).succeeded();
}

#[test]
fn a_combiner_prints_nothing() {
    // Hadoop starts the combiner for every spill of every mapper. The time is only printed, because the
    // machine may be busy.
    const STARTS: u32 = 50;
    let begin = Instant::now();
    for _ in 0..STARTS {
        let finished = run(&mut program("combiner"), b"a\t0,0,0,0,1\na\t0,0,0,0,1\n").succeeded();
        assert_eq!((finished.said().as_str(), finished.stderr.as_str()), ("a\t0,0,0,0,2\n", ""));
    }
    let each: Duration = begin.elapsed() / STARTS;
    say(&format!("a combiner starts, folds two records and ends in {:.1} ms", each.as_secs_f64() * 1e3));
}

#[test]
fn unknown_arguments_are_a_usage_error_and_help_is_not() {
    for name in ["mapper", "combiner", "reducer", "merge"] {
        run(program(name).arg("--no-such-option"), b"").with_code(64);
        let help = run(program(name).arg("--help"), b"").succeeded().said();
        assert!(help.contains(&format!("Usage: {name}")), "{help}");
    }
}

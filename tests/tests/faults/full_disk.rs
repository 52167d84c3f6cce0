//! There is no room from some step on, or once: the program ends in order, and with room it does its work.

use std::env;
use std::path::Path;
use std::process::Command;

use tests::programs::run;
use tests::steps::{Ways, described, each_step, error_line, trace_steps};
use tests::tracer::{Call, Ended, Errno, Kind, Then, permitted};

use crate::job::{JOB, Room, SPILLING, visible};

/// How long there is no room.
#[derive(Clone, Copy, Debug)]
enum Full {
    /// From a step on.
    ForGood,
    /// At that step.
    Once,
}

/// Runs a program that finds no room at a step; gives the call that was refused first.
fn without_room(command: &Command, input: &[u8], at: usize, full: Full) -> (Ended, Option<Call>) {
    let mut refused = None;
    let ended = trace_steps(command, input, Call::needs_room, |step, call| {
        let is_full = match full {
            Full::ForGood => step >= at,
            Full::Once => step == at,
        };
        if !is_full {
            return Then::GoOn;
        }
        refused.get_or_insert_with(|| call.clone());
        Then::Fail(Errno::ENOSPC)
    });
    (ended, refused)
}

/// It says on one line what it could not do to which file, why, and what to do about it.
#[track_caller]
fn assert_said_why(program: &str, room: &Room, ended: &Ended, call: Option<&Call>, how: &str) {
    let stderr = &ended.stderr;
    assert_eq!(ended.code, Some(74), "{how}: {stderr}");
    let line = error_line(program, ended, how);
    let on_stdout = line.contains("standard output") || line.contains("write the result");
    assert!(on_stdout || line.contains(room.path().to_str().unwrap()), "{how}: names no file: {line}");
    assert!(on_stdout || line.contains("; "), "{how}: names no remedy: {line}");
    assert!(line.to_lowercase().contains("space"), "{how}: does not say that there is no space: {line}");
    let is_waiting = call.is_some_and(|call| is_waiting(room, &call.path));
    assert!(!is_waiting || line.contains("TMPDIR"), "{how}: does not name the setting of the folder: {line}");
}

/// Whether this is a file without a name in the folder for temporary ones.
fn is_waiting(room: &Room, path: &Path) -> bool {
    let has_no_name = path.to_string_lossy().ends_with("(deleted)");
    path == room.scratch() || has_no_name && path.starts_with(room.scratch())
}

#[test]
fn a_reducer_without_room_says_so_and_succeeds_with_room() {
    if !permitted() {
        return;
    }
    let job = &*SPILLING;
    each_step("reducer without room", 5, Ways::Each(&[Full::ForGood, Full::Once]), |at, full| {
        let room = Room::new();

        let (ended, call) = without_room(&room.reducer(0, "first"), &job.records[0], at, full);

        let how = described("reducer", at, call.as_ref(), &format!("full {full:?}"));
        if call.is_none() {
            assert_eq!(ended.code, Some(0), "{how}: {}", ended.stderr);
            return None;
        }
        assert_said_why("reducer", &room, &ended, call.as_ref(), &how);
        room.assert_nothing_half_written(job, &how);
        assert!(room.unfinished().is_empty(), "{how}: left behind: {:?}", room.unfinished());
        let again = run(&mut room.reducer(0, "second"), &job.records[0]);
        assert_eq!((again.code, room.commits().len()), (0, 1), "{how}: {}", again.stderr);
        room.assert_nothing_half_written(job, &how);
        call
    });
}

#[test]
fn a_merge_without_room_says_so_and_succeeds_with_room() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    room.reduce_all(&JOB);
    run(&mut room.merge(&JOB), b"").succeeded();
    let files = visible(&room.path().join("out"));

    each_step("merge without room", 5, Ways::Each(&[Full::ForGood, Full::Once]), |at, full| {
        room.unmerge();

        let (ended, call) = without_room(&room.merge(&JOB), b"", at, full);

        let how = described("merge", at, call.as_ref(), &format!("full {full:?}"));
        if call.is_none() {
            assert_eq!(ended.code, Some(0), "{how}: {}", ended.stderr);
            return None;
        }
        assert_said_why("merge", &room, &ended, call.as_ref(), &how);
        room.assert_whole(&files, &how);
        assert!(room.unfinished().is_empty(), "{how}: left behind: {:?}", room.unfinished());
        let again = run(&mut room.merge(&JOB), b"");
        assert_eq!(again.code, 0, "{how}: {}", again.stderr);
        assert!(visible(&room.path().join("out")) == files, "{how}: other files");
        call
    });
}

#[test]
fn a_mill_without_room_says_so_and_succeeds_with_room() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    let job = &*SPILLING;
    run(&mut room.sentimill(job), b"").succeeded();
    let files = visible(&room.path().join("out"));
    let is_waiting = |call: &Call| call.kind == Kind::Write && call.path.starts_with(room.scratch());
    let mut has_waited = false;

    each_step("sentimill without room", 45, Ways::Each(&[Full::ForGood, Full::Once]), |at, full| {
        room.unmerge();

        let (ended, call) = without_room(&room.sentimill(job), b"", at, full);

        let how = described("sentimill", at, call.as_ref(), &format!("full {full:?}"));
        if call.is_none() {
            assert_eq!(ended.code, Some(0), "{how}: {}", ended.stderr);
            return None;
        }
        assert_said_why("sentimill", &room, &ended, call.as_ref(), &how);
        if call.as_ref().is_some_and(is_waiting) {
            has_waited = true;
            let (line, tmpdir) = (error_line("sentimill", &ended, &how), room.scratch());
            assert!(line.contains(tmpdir.to_str().unwrap()), "{how}: names no folder: {line}");
        }
        room.assert_whole(&files, &how);
        assert!(room.unfinished().is_empty(), "{how}: left behind: {:?}", room.unfinished());
        let again = run(&mut room.sentimill(job), b"");
        assert_eq!(again.code, 0, "{how}: {}", again.stderr);
        assert!(visible(&room.path().join("out")) == files, "{how}: other files");
        call
    });
    assert!(has_waited || env::var_os("FAULT_AT").is_some(), "nothing had to wait on disk");
}

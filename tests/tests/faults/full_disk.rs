//! The disk is full from one step on, or only at one step. The program fails with a message, and succeeds
//! when there is space again.

use std::env;
use std::path::Path;
use std::process::Command;

use tests::programs::run;
use tests::steps::{Ways, described, each_step, error_line, trace_steps};
use tests::tracer::{Call, Ended, Errno, Kind, Then, permitted};

use crate::job::{JOB, Room, SPILLING, visible};

/// For how long the disk is full.
#[derive(Clone, Copy, Debug)]
enum Full {
    /// From a step to the end.
    ForGood,
    /// At one step.
    Once,
}

/// Runs a program with a full disk at a step. Returns the call that failed first.
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

/// Checks that one line states the failed action, the file, the reason and the remedy.
#[track_caller]
fn assert_said_why(program: &str, room: &Room, ended: &Ended, call: Option<&Call>, how: &str) {
    let stderr = &ended.stderr;
    assert_eq!(ended.code, Some(74), "{how}: {stderr}");
    let line = error_line(program, ended, how);
    let on_stdout = line.contains("standard output");
    assert!(on_stdout || line.contains(room.path().to_str().unwrap()), "{how}: names no file: {line}");
    assert!(line.contains("; "), "{how}: names no remedy: {line}");
    let cause = "disk full while writing; free space there or ";
    assert!(line.contains(cause), "{how}: does not say that the disk is full: {line}");
    let is_waiting = call.is_some_and(|call| is_waiting(room, &call.path));
    assert!(!is_waiting || line.contains("TMPDIR"), "{how}: does not name the setting of the folder: {line}");
}

/// Whether this is an unnamed file in the temporary folder.
fn is_waiting(room: &Room, path: &Path) -> bool {
    let has_no_name = path.to_string_lossy().ends_with("(deleted)");
    path == room.scratch() || has_no_name && path.starts_with(room.scratch())
}

#[test]
fn a_reducer_reports_a_full_disk_and_succeeds_with_free_space() {
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
fn a_merge_reports_a_full_disk_and_succeeds_with_free_space() {
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
fn sentimill_reports_a_full_disk_and_succeeds_with_free_space() {
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

//! A program is killed before each of its steps, and restarted as Hadoop or a user would.

use std::fs;
use std::process::Command;

use tests::programs::run;
use tests::steps::{Ways, described, each_step, trace_steps};
use tests::tracer::{Call, Errno, Kind, Then, permitted};

use crate::job::{JOB, MERGED, PARTITIONS, Room, SPILLING, assert_same, visible};

/// How files get their names.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// With a rename that does not overwrite.
    Rename,
    /// With a link, as on NFS, which has no such rename.
    Link,
}

impl Naming {
    fn refuses(self, call: &Call) -> bool {
        // An older manifest of the same dataset is replaced with an ordinary rename.
        let is_exclusive = !call.path.ends_with("out/reviews.manifest.json");
        matches!((self, &call.kind), (Self::Link, Kind::Name { .. })) && is_exclusive
    }
}

/// Kills a program before a step. Returns the call that it was about to make.
fn kill_at(command: &Command, input: &[u8], at: usize, naming: Naming) -> Option<Call> {
    let mut killed_at = None;
    let mut may_name = false;
    let ended = trace_steps(command, input, Call::changes, |step, call| {
        if step == at {
            killed_at = Some(call.clone());
            return Then::Kill;
        }
        // Of two attempts to name a file, the second is the link.
        let refused = naming.refuses(call) && !may_name;
        may_name = refused;
        if refused { Then::Fail(Errno::EINVAL) } else { Then::GoOn }
    });
    assert_eq!(ended.code.is_none(), killed_at.is_some(), "{}", ended.stderr);
    killed_at
}

#[test]
fn a_reducer_killed_at_any_step_and_restarted_commits_every_row_once() {
    if !permitted() {
        return;
    }
    const WAYS: [(Naming, &str); 2] = [(Naming::Rename, "second"), (Naming::Link, "first")];
    let job = &*SPILLING;
    each_step("reducer killed", 5, Ways::ByTurns(&WAYS), |at, (naming, again)| {
        let room = Room::new();
        let way = format!("{naming:?}, then attempt {again}");
        let mut killed_at = None;
        for partition in 0..PARTITIONS {
            let first = room.reducer(partition, "first");
            let call = kill_at(&first, &job.records[partition as usize], at, naming);
            let how = described("reducer", at, call.as_ref(), &way);
            killed_at = killed_at.or(call);
            room.assert_nothing_half_written(job, &how);
            let second = run(&mut room.reducer(partition, again), &job.records[partition as usize]);
            assert_eq!(second.code, 0, "{how}: {}", second.stderr);
            room.assert_nothing_half_written(job, &how);
        }
        let how = described("reducer", at, None, &way);
        run(&mut room.collect_garbage(), b"").succeeded();
        assert_eq!((room.commits().len(), room.objects().len()), (2, 4), "{how}");
        run(&mut room.merge(job), b"").succeeded();
        room.assert_dataset(job, &how);
        room.assert_no_leftovers(&how);
        killed_at
    });
}

#[test]
fn a_merge_killed_at_any_step_and_restarted_makes_the_same_files() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    room.reduce_all(&JOB);
    let objects = room.objects();
    run(&mut room.merge(&JOB), b"").succeeded();
    let seal = fs::read(room.run().join("manifest.json")).unwrap();
    let files = visible(&room.path().join("out"));
    assert!(files.keys().eq(&MERGED), "{:?}", files.keys());

    each_step("merge killed", 2, Ways::ByTurns(&[Naming::Rename, Naming::Link]), |at, naming| {
        room.unmerge();

        let call = kill_at(&room.merge(&JOB), b"", at, naming);

        let how = described("merge", at, call.as_ref(), &format!("{naming:?}"));
        room.assert_whole(&files, &how);
        if let Ok(bytes) = fs::read(room.run().join("manifest.json")) {
            assert!(bytes == seal, "{how}: the seal is not whole");
        }

        let again = run(&mut room.merge(&JOB), b"");

        assert_eq!(again.code, 0, "{how}: {}", again.stderr);
        assert!(visible(&room.path().join("out")) == files, "{how}: other files");
        assert_same(&room.run().join("manifest.json"), &seal, &how);
        assert!(room.objects() == objects, "{how}: the objects were changed");
        room.assert_no_leftovers(&how);
        call
    });
}

#[test]
fn the_tasks_of_a_merge_killed_at_any_step_and_repeated_make_the_same_files() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    room.reduce_all(&JOB);
    let tasks = room.plan(&JOB);
    run(&mut room.work(), &tasks).succeeded();
    let plan = room.run().join("merge/merge");
    let results = visible(&plan);
    assert_eq!(results.len(), 8, "{:?}", results.keys());

    each_step("tasks killed", 5, Ways::ByTurns(&[Naming::Rename, Naming::Link]), |at, naming| {
        room.unmerge();
        for name in results.keys().filter(|name| name.contains('-')) {
            fs::remove_file(plan.join(name)).unwrap();
        }

        let call = kill_at(&room.work(), &tasks, at, naming);

        let how = described("merge work", at, call.as_ref(), &format!("{naming:?}"));
        for (name, bytes) in visible(&plan) {
            assert!(results[&name] == bytes, "{how}: {name} is not whole");
        }
        run(&mut room.work(), &tasks).succeeded();
        assert!(visible(&plan) == results, "{how}: other results");
        run(&mut room.assemble(), b"").succeeded();
        room.assert_dataset(&JOB, &how);
        room.assert_no_leftovers(&how);
        call
    });
}

#[test]
fn a_replacing_merge_killed_at_any_step_leaves_whole_files_and_can_run_again() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    room.reduce_all(&JOB);
    let out = room.path().join("out");
    let files_of = |more: &[&str]| {
        room.unmerge();
        run(room.merge(&JOB).args(more), b"").succeeded();
        visible(&out)
    };
    let old = files_of(&["--vocabulary-size", "5"]);
    let new = files_of(&[]);
    assert!(new.keys().eq(&MERGED) && old.keys().eq(&MERGED), "{:?}", new.keys());
    let replacing = || {
        let mut merge = room.merge(&JOB);
        merge.arg("--force");
        merge
    };

    each_step("replacing merge killed", 3, Ways::Each(&[Naming::Rename]), |at, naming| {
        for (name, bytes) in &old {
            fs::write(out.join(name), bytes).unwrap();
        }

        let call = kill_at(&replacing(), b"", at, naming);

        let how = described("merge --force", at, call.as_ref(), &format!("{naming:?}"));
        for (name, bytes) in visible(&out) {
            let is_whole = old.get(&name) == Some(&bytes) || new.get(&name) == Some(&bytes);
            assert!(is_whole, "{how}: {name} is neither the old one nor the new one");
        }
        assert!(visible(&out).keys().eq(&MERGED), "{how}: {:?}", visible(&out).keys());

        let again = run(&mut replacing(), b"");

        assert_eq!(again.code, 0, "{how}: {}", again.stderr);
        assert!(visible(&out) == new, "{how}: other files");
        room.assert_no_leftovers(&how);
        call
    });
}

#[test]
fn sentimill_killed_at_any_step_and_restarted_makes_the_same_files() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    run(&mut room.sentimill(&JOB), b"").succeeded();
    room.assert_dataset(&JOB, "let live");
    let files = visible(&room.path().join("out"));
    assert!(files.keys().eq(&MERGED), "{:?}", files.keys());

    each_step("sentimill killed", 2, Ways::ByTurns(&[Naming::Rename, Naming::Link]), |at, naming| {
        room.unmerge();

        let call = kill_at(&room.sentimill(&JOB), b"", at, naming);

        let how = described("sentimill", at, call.as_ref(), &format!("{naming:?}"));
        room.assert_whole(&files, &how);
        // Temporary files are unnamed, except for those that will be renamed in the dataset's folder.
        let left = room.unfinished();
        assert!(
            left.iter().all(|path| path.starts_with(room.path().join("out"))),
            "{how}: left behind: {left:?}"
        );

        let again = run(&mut room.sentimill(&JOB), b"");

        assert_eq!(again.code, 0, "{how}: {}", again.stderr);
        assert!(visible(&room.path().join("out")) == files, "{how}: other files");
        room.assert_no_leftovers(&how);
        call
    });
}

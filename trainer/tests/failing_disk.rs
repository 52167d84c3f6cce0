//! A training on a disk that fails at any system call that writes a checkpoint. The previous checkpoint is complete,
//! and a training resumed from it has the same result. With PROVE=1 every call fails once, with `FAULT_AT=n` only
//! call n.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::Path;
use std::process::Command;

use command::{plain, trainer};
use fixtures::reviews;
use tests::steps::{Ways, described, each_step, trace_steps};
use tests::tracer::{Call, Ended, Errno, Kind, Then, permitted};

/// Distance between two tested calls. A checkpoint takes 26 calls, five checkpoints take 131. Five or six
/// calls are tested, each at another position within a checkpoint.
const STRIDE: usize = 24;

#[test]
fn a_checkpoint_that_the_disk_refuses_leaves_the_one_before_it() {
    if !permitted() {
        return;
    }
    let (data, dataset) = reviews(600);
    let whole = data.path().join("whole");
    assert!(fit(&dataset, &whole).status().unwrap().success());

    each_step("checkpoint refused", STRIDE, Ways::Each(&[Errno::ENOSPC, Errno::EIO]), |at, reason| {
        let out = data.path().join(format!("{at}-{}", reason as i32));

        let (ended, call) = train_until_refused(&dataset, &out, at, reason);

        let how = described("trainer", at, call.as_ref(), &reason.to_string());
        if call.is_none() {
            assert_eq!(ended.code, Some(0), "{how}: {}", ended.stderr);
            return None;
        }
        assert_eq!(ended.code, Some(74), "{how}: {}", ended.stderr);
        let (cause, remedy) = match reason {
            Errno::ENOSPC => ("disk full", "; free space there"),
            _ => ("input/output error of the disk", "; check the disk"),
        };
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(cause) && last.contains(remedy), "{how}: {}", ended.stderr);
        assert!(!out.join("model").exists(), "{how}: a model is there");
        let resumed = fit(&dataset, &out).arg("--resume").output().unwrap();
        assert!(resumed.status.success(), "{how}: {}", String::from_utf8_lossy(&resumed.stderr));
        assert!(weights(&out) == weights(&whole), "{how}: other weights");
        fs::remove_dir_all(&out).unwrap();
        call
    });
}

fn fit(dataset: &Path, out: &Path) -> Command {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out);
    command.args(["--embedding", "8", "--linear", "5", "--tokens", "20"]);
    command.args(["--device", "cpu", "--checkpoint-steps", "3", "--keep-checkpoints", "2"]);
    command.args(plain(&["--hidden", "6", "--epochs", "2", "--batch", "64"]));
    command
}

/// Trains. Starting with the `at`-th call that concerns a checkpoint after the first one, all such calls fail.
/// Returns that call; `None` if there are fewer calls.
fn train_until_refused(dataset: &Path, out: &Path, at: usize, reason: Errno) -> (Ended, Option<Call>) {
    let checkpoints = out.join("checkpoints");
    let mut is_after_the_first = false;
    let is_step = |call: &Call| {
        if !call.path.starts_with(&checkpoints) || !call.needs_room() {
            return false;
        }
        let is_step = is_after_the_first;
        is_after_the_first |=
            matches!(call.kind, Kind::Name { .. }) && call.path == checkpoints.join("latest");
        is_step
    };
    let mut refused = None;
    let ended = trace_steps(&fit(dataset, out), b"", is_step, |step, call| {
        if step < at {
            return Then::GoOn;
        }
        refused.get_or_insert_with(|| call.clone());
        Then::Fail(reason)
    });
    (ended, refused)
}

fn weights(out: &Path) -> Vec<u8> {
    fs::read(out.join("model/model.safetensors")).unwrap()
}

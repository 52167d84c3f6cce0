//! A training whose checkpoints the disk refuses, at any call by which one is kept: the one before it is whole, and the
//! training goes on from it as if nothing had happened. PROVE=1 takes every call, `FAULT_AT=n` that one alone.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

#[path = "fixture/mod.rs"]
mod fixture;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use fixture::reviews;
use tests::tracer::{Call, Errno, Kind, Then, permitted, trace};

/// `make test` goes on by so many calls.
const STRIDE: usize = 30;

#[test]
fn a_checkpoint_that_the_disk_refuses_leaves_the_one_before_it() {
    if !permitted() {
        return;
    }
    let (data, dataset) = reviews(600);
    let whole = data.path().join("whole");
    assert!(fit(&dataset, &whole).status().unwrap().success());
    let only = env::var("FAULT_AT").ok().map(|at| at.parse::<usize>().unwrap());
    let stride = if tests::prove() { 1 } else { STRIDE };
    for (n_refused, at) in (only.unwrap_or(1)..).step_by(stride).enumerate() {
        for reason in [Errno::ENOSPC, Errno::EIO] {
            let out = data.path().join(format!("{at}-{reason}"));
            let Some(call) = train_until_refused(&dataset, &out, at, reason) else {
                assert!(n_refused >= 3, "checkpoints of {n_refused} calls are none of ours");
                tests::say(&format!("checkpoints refused at {n_refused} calls"));
                return;
            };
            let resumed = fit(&dataset, &out).arg("--resume").output().unwrap();
            let told = String::from_utf8_lossy(&resumed.stderr);
            assert!(resumed.status.success(), "FAULT_AT={at}, {reason} at {call:?}: {told}");
            assert!(weights(&out) == weights(&whole), "FAULT_AT={at}, {reason} at {call:?}: other weights");
            fs::remove_dir_all(&out).unwrap();
        }
        if only.is_some() {
            return;
        }
    }
}

fn fit(dataset: &Path, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer"));
    command.env("OMP_NUM_THREADS", "1").arg("fit").arg(dataset).arg("--out").arg(out);
    command.args(["--embedding", "8", "--hidden", "6", "--linear", "5", "--batch", "64", "--tokens", "20"]);
    command.args(["--epochs", "2", "--device", "cpu", "--checkpoint-steps", "3", "--keep", "2"]);
    command
}

/// Trains, and from the `at`-th call on that has to do with a checkpoint after the first, the disk takes nothing more of
/// them; gives that call, `None` where there are not so many.
fn train_until_refused(dataset: &Path, out: &Path, at: usize, reason: Errno) -> Option<Call> {
    let checkpoints = out.join("checkpoints");
    let (mut is_after_the_first, mut n_calls, mut refused) = (false, 0, None);
    let ended = trace(&fit(dataset, out), b"", &mut |call| {
        if !call.path.starts_with(&checkpoints) || !call.needs_room() {
            return Then::GoOn;
        }
        if !is_after_the_first {
            is_after_the_first =
                matches!(call.kind, Kind::Name { .. }) && call.path == checkpoints.join("latest");
            return Then::GoOn;
        }
        n_calls += 1;
        if n_calls < at {
            return Then::GoOn;
        }
        refused.get_or_insert_with(|| call.clone());
        Then::Fail(reason)
    });
    match &refused {
        None => assert_eq!(ended.code, Some(0), "{}", ended.stderr),
        Some(call) => {
            assert_eq!(ended.code, Some(74), "FAULT_AT={at}, {reason} at {call:?}: {}", ended.stderr);
            assert!(!out.join("model").exists(), "FAULT_AT={at}, {reason} at {call:?}: a model is there");
        }
    }
    refused
}

fn weights(out: &Path) -> Vec<u8> {
    fs::read(out.join("model/model.safetensors")).unwrap()
}

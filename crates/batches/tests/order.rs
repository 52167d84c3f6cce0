//! Compares the order of an epoch with a Python script that shares no code with it.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use batches::{Arrangement, Order};
use serde_json::json;

#[test]
fn a_python_implementation_gives_the_same_order() {
    for (seed, epoch, n_rows, batch_rows) in
        [(0, 0, 1u32, 1usize), (42, 3, 11, 3), (7, 1, 5_000, 13), (u64::MAX, 9, 4_096, 8), (1, 0, 3, 8)]
    {
        let lengths: Vec<u32> = (0..n_rows).map(|row| row.wrapping_mul(2_654_435_761) % 100 + 1).collect();
        let order = Order::of_epoch(Arrangement::Shuffled { seed, epoch }, &lengths, batch_rows);
        let mut batches: Vec<Vec<u32>> = (0..=order.n_whole()).map(|at| order.batch(at).to_vec()).collect();
        batches.retain(|batch| !batch.is_empty());
        let asked = json!({ "seed": seed, "epoch": epoch, "batch_rows": batch_rows, "lengths": lengths });
        let Some(answer) = python(&asked.to_string()) else { return };
        assert_eq!(serde_json::from_str::<Vec<Vec<u32>>>(&answer).unwrap(), batches, "seed {seed}");
    }
}

/// Returns `None` if Python is missing.
fn python(asked: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/order.py");
    // -B: do not write bytecode files next to the sources.
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            tests::skipped("order: python3 is missing");
            return None;
        }
        started => started.unwrap(),
    };
    child.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    Some(String::from_utf8(output.stdout).unwrap())
}

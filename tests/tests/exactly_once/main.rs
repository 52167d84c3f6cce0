//! One commit a partition, no row lost or doubled, whatever becomes of attempts: the proof of what
//! RELIABILITY.md promises.
//!
//! A usual run has small counts; with PROVE=1 they are those of RELIABILITY.md. What fails prints a seed;
//! `SEED=n cargo test -p tests --test exactly_once NAME` plays that one again.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

mod attempts;
mod damaged;
mod hadoop;
mod kills;
mod races;
mod races_in_s3;

mod schedule;
mod simulator;
mod stores;
mod world;

use std::env;
use std::path::PathBuf;

use tempfile::TempDir;

/// A new folder, in memory where the machine has such a place: syncing is not what is tested.
fn scratch() -> TempDir {
    let in_memory = PathBuf::from("/dev/shm");
    let folder = if in_memory.is_dir() { in_memory } else { env::temp_dir() };
    tempfile::Builder::new().prefix("sentimill-").tempdir_in(folder).unwrap()
}

//! Whatever happens to attempts, each partition has one commit, and no row is lost or duplicated. These tests
//! check the guarantees of RELIABILITY.md.
//!
//! By default the numbers of cases are small; with PROVE=1 they are those of RELIABILITY.md. A failure prints
//! a seed; `SEED=n cargo test -p tests --test exactly_once NAME` runs it again.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

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

/// A new folder, in memory if the machine has such a file system, because syncing is not tested here.
fn scratch() -> TempDir {
    let in_memory = PathBuf::from("/dev/shm");
    let folder = if in_memory.is_dir() { in_memory } else { env::temp_dir() };
    tempfile::Builder::new().prefix("sentimill-").tempdir_in(folder).unwrap()
}

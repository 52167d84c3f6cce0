//! One commit a partition, no row lost or doubled, whatever becomes of attempts: the proof of what
//! RELIABILITY.md promises.
//!
//! A usual run has small counts; with PROVE=1 they are those of RELIABILITY.md. What fails prints a seed;
//! `SEED=n cargo test --release -p tests --test exactly_once NAME` plays that one again.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

mod attempts;
mod hadoop;
mod kills;
mod races;
mod races_in_s3;

mod schedule;
mod simulator;
mod stores;
mod world;

use std::env;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tempfile::TempDir;

/// The seeds to play: one that the environment names, or as many as there is time for.
fn seeds(usual: u64, proof: u64) -> Range<u64> {
    match env::var("SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("SEED is a whole number");
            seed..seed + 1
        }
        Err(_) if tests::prove() => 0..proof,
        Err(_) => 0..usual,
    }
}

/// Plays each seed, on as many threads as the machine has cores; what one says when it fails begins with its seed.
fn each_seed(seeds: &Range<u64>, play: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let failed = thread::scope(|scope| scope.spawn(|| play(seed)).join());
                    assert!(failed.is_ok(), "SEED={seed} failed, see above");
                }
            });
        }
    });
}

/// A new folder, in memory where the machine has such a place: syncing is not what is tested.
fn scratch() -> TempDir {
    let in_memory = PathBuf::from("/dev/shm");
    let folder = if in_memory.is_dir() { in_memory } else { env::temp_dir() };
    tempfile::Builder::new().prefix("sentimill-").tempdir_in(folder).unwrap()
}

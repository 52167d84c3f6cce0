//! Reproducible random tests: a failure prints a seed, and `SEED=n` runs that seed again.

use std::env;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::prove;

/// The seeds to run: the one in the environment, or a number that depends on PROVE.
pub fn seeds(usual: u64, proof: u64) -> Range<u64> {
    match env::var("SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("SEED is a whole number");
            seed..seed + 1
        }
        Err(_) if prove() => 0..proof,
        Err(_) => 0..usual,
    }
}

/// Runs all seeds, on one thread per core. The message of a failure starts with its seed.
pub fn each_seed(seeds: &Range<u64>, play: impl Fn(u64) + Sync) {
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

//! A pool of threads. Part n of the work always runs on thread n, so results do not depend on timing.

use std::sync::Mutex;

use program::threads::{exhausted, locked};
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::Processor;

/// A number of threads and the instruction set that they use.
#[derive(Debug)]
pub struct Team {
    /// None if there is only the caller's thread.
    pool: Option<ThreadPool>,
    n_threads: usize,
    processor: Processor,
}

impl Team {
    /// Starts `n_threads` threads, at least 1. If the system refuses one, the program ends.
    pub fn new(n_threads: usize, processor: Processor) -> Self {
        let n_threads = n_threads.max(1);
        let pool = ThreadPoolBuilder::new().num_threads(n_threads).thread_name(|n| format!("kernels {n}"));
        let pool = (n_threads > 1).then(|| pool.build().unwrap_or_else(|_| exhausted()));
        Self { pool, n_threads, processor }
    }

    /// The instruction set.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    /// Number of threads.
    pub fn n_threads(&self) -> usize {
        self.n_threads
    }

    /// Length of the parts into which a slice of `length` values is split. There is at most one part per thread, and
    /// each part consists of whole cache lines.
    pub fn part(&self, length: usize) -> usize {
        length.div_ceil(self.n_threads).next_multiple_of(16).max(16)
    }

    /// Runs part n on thread n. There must not be more parts than threads.
    pub fn each<T: Send>(&self, parts: Vec<T>, each: impl Fn(T) + Sync) {
        assert!(parts.len() <= self.n_threads, "more parts than threads");
        let Some(pool) = &self.pool else { return parts.into_iter().for_each(each) };
        let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
        pool.broadcast(|thread| {
            let part = parts.get(thread.index());
            if let Some(part) = part.and_then(|part| locked(part).take()) {
                each(part);
            }
        });
    }
}

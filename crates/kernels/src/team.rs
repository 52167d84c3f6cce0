//! Threads that each do the part with their number, so that nothing depends on who was faster.

use std::sync::{Mutex, PoisonError};

use rayon_core::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::Processor;

/// So many threads, and what they compute with.
#[derive(Debug)]
pub struct Team {
    /// None: the caller's thread alone.
    pool: Option<ThreadPool>,
    n_threads: usize,
    processor: Processor,
}

impl Team {
    /// Starts threads, 1 or more.
    pub fn new(n_threads: usize, processor: Processor) -> Result<Self, ThreadPoolBuildError> {
        let n_threads = n_threads.max(1);
        let pool = ThreadPoolBuilder::new().num_threads(n_threads).thread_name(|n| format!("kernels {n}"));
        let pool = if n_threads > 1 { Some(pool.build()?) } else { None };
        Ok(Self { pool, n_threads, processor })
    }

    /// What they compute with.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    pub(crate) fn n_threads(&self) -> usize {
        self.n_threads
    }

    /// The length of the parts that so many numbers are cut into, one a thread at the most: whole cache lines.
    pub(crate) fn part(&self, length: usize) -> usize {
        length.div_ceil(self.n_threads).next_multiple_of(16).max(16)
    }

    /// Does each part in the thread with its number. There are no more parts than threads.
    pub(crate) fn each<T: Send>(&self, parts: Vec<T>, each: impl Fn(T) + Sync) {
        assert!(parts.len() <= self.n_threads, "a thread has one part");
        let Some(pool) = &self.pool else { return parts.into_iter().for_each(each) };
        let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
        pool.broadcast(|thread| {
            let part = parts.get(thread.index());
            if let Some(part) =
                part.and_then(|part| part.lock().unwrap_or_else(PoisonError::into_inner).take())
            {
                each(part);
            }
        });
    }
}

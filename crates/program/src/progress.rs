//! A counter of work done, for threads that report it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that grows while work advances: rows written, bytes sent. Clones share the number.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds steps.
    pub fn advance(&self, steps: u64) {
        self.0.fetch_add(steps, Ordering::Relaxed);
    }
}

//! Ctrl-C: a flag that long waits check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Error;

/// Longest time until a signal is noticed.
const SLICE: Duration = Duration::from_millis(100);

/// Set by the first SIGINT or SIGTERM.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches SIGINT and SIGTERM. The second SIGINT ends the program at once.
    pub fn catch() -> Result<Self, Error> {
        let interrupt = Self::default();
        flag::register_conditional_default(SIGINT, Arc::clone(&interrupt.0))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&interrupt.0)))
            .and_then(|_| flag::register(SIGTERM, Arc::clone(&interrupt.0)))
            .map_err(|source| {
                let message =
                    "cannot handle signals; free memory, or raise the limits of this shell (ulimit -a)";
                Error::io(message, source)
            })?;
        Ok(interrupt)
    }

    /// Whether a signal was received.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits. Returns early, and `true`, if a signal is received.
    pub fn sleep(&self, time: Duration) -> bool {
        let mut left = time;
        while !self.is_set() && !left.is_zero() {
            let slice = left.min(SLICE);
            thread::sleep(slice);
            left -= slice;
        }
        self.is_set()
    }
}

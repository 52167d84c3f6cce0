//! Converts signals into flags, which the training loop checks between steps.
//!
//! | Signal | Requested action |
//! |---|---|
//! | SIGTERM, SIGINT | write a checkpoint and stop |
//! | SIGUSR1 | write a checkpoint and continue |
//! | a second SIGINT | none: the default action ends the process |
//!
//! A signal reaches ranks at different times and may miss some. To stop at the same step, ranks must exchange
//! their flags.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// Write a checkpoint and stop.
    Stop,
    /// Write a checkpoint and continue.
    Checkpoint,
}

/// The actions requested from this process.
#[derive(Debug)]
pub struct Interrupts {
    stop: Arc<AtomicBool>,
    checkpoint: Arc<AtomicBool>,
}

impl Interrupts {
    /// Starts to convert the three signals into flags. Call it once, early: before it, the signals end the process.
    /// Afterwards they do not, even if the flags are dropped.
    pub fn listen() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let checkpoint = Arc::new(AtomicBool::new(false));
        // Separate from `stop`: a terminal's SIGINT and a launcher's SIGTERM may arrive for the same request.
        let interrupted = Arc::new(AtomicBool::new(false));
        // Actions run in order of registration, so the first SIGINT sees the flag unset.
        flag::register_conditional_default(SIGINT, Arc::clone(&interrupted))?;
        flag::register(SIGINT, interrupted)?;
        flag::register(SIGINT, Arc::clone(&stop))?;
        flag::register(SIGTERM, Arc::clone(&stop))?;
        flag::register(SIGUSR1, Arc::clone(&checkpoint))?;
        Ok(Self { stop, checkpoint })
    }

    /// Returns the requested action. A stop is returned on every call, a checkpoint only once.
    pub fn requested(&self) -> Option<Requested> {
        if self.stop.load(Ordering::SeqCst) {
            return Some(Requested::Stop);
        }
        self.checkpoint.swap(false, Ordering::SeqCst).then_some(Requested::Checkpoint)
    }

    /// The flag that a request to stop sets.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether a stop is requested. Several threads may call it often.
    pub fn is_stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

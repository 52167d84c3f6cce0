//! Signals that ask a rank for something: flags that the loop looks at between two steps.
//!
//! | Signal | What the rank is asked for |
//! |---|---|
//! | SIGTERM, SIGINT | a checkpoint, and to stop |
//! | SIGUSR1 | a checkpoint, and to go on |
//! | a second SIGINT | nothing: it ends the process at once, as it does any program |
//!
//! A signal reaches ranks at different moments and may miss some, so ranks that are to stop at the same step have to
//! tell each other what they were asked.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Write a checkpoint, and stop.
    Stop,
    /// Write a checkpoint, and go on.
    Checkpoint,
}

/// What this process was asked by signals.
#[derive(Debug)]
pub struct Interrupts {
    stop: Arc<AtomicBool>,
    checkpoint: Arc<AtomicBool>,
}

impl Interrupts {
    /// From now on the three signals set flags. To be called once, early: before it, they end the process, and after
    /// it they do so no more, however long the flags live.
    pub fn listen() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let checkpoint = Arc::new(AtomicBool::new(false));
        // Apart from `stop`: a terminal's SIGINT and a launcher's SIGTERM for the same wish are not two wishes.
        let interrupted = Arc::new(AtomicBool::new(false));
        // Actions run in the order of their registration, so the first SIGINT finds its flag still unset.
        flag::register_conditional_default(SIGINT, Arc::clone(&interrupted))?;
        flag::register(SIGINT, interrupted)?;
        flag::register(SIGINT, Arc::clone(&stop))?;
        flag::register(SIGTERM, Arc::clone(&stop))?;
        flag::register(SIGUSR1, Arc::clone(&checkpoint))?;
        Ok(Self { stop, checkpoint })
    }

    /// What was asked. A stop stays asked; a checkpoint is told once.
    pub fn asked(&self) -> Option<Asked> {
        if self.stop.load(Ordering::SeqCst) {
            return Some(Asked::Stop);
        }
        self.checkpoint.swap(false, Ordering::SeqCst).then_some(Asked::Checkpoint)
    }
}

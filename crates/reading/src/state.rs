//! What all threads share while they read.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use corpus::encoding::{Encoding, Invalid, LineDecoder};
use program::threads::locked;

use crate::dialects::Tables;
use crate::source::Source;

/// State shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub is_stopped: AtomicBool,
    pub bytes_read: AtomicU64,
    /// The sources that are JSON arrays, as far as they have been read.
    pub arrays: Mutex<BTreeSet<usize>>,
    pub tables: Tables,
    /// The lines that are not in the encoding that was named.
    pub invalid: Mutex<Invalid>,
}

/// Context for reading a part of a source.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub source: &'a Source,
    pub line_bytes_max: usize,
    pub encoding: &'static Encoding,
    pub state: &'a State,
}

impl State {
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Adds the lines that are not in their encoding.
    pub fn add_invalid(&self, decoder: Option<&LineDecoder>) {
        if let Some(decoder) = decoder.filter(|decoder| decoder.invalid.lines > 0) {
            locked(&self.invalid).merge(&decoder.invalid);
        }
    }

    pub fn advance(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}

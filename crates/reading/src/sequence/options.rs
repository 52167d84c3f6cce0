//! Options of a sequence, and what it keeps of streams.

use std::io;

use corpus::encoding::Encoding;
use store::S3Options;

use super::place::Place;
use super::taken::{self, Keep};

/// What is read.
#[derive(Clone, Debug)]
pub struct SequenceOptions {
    /// Files, folders, patterns, URLs, or `-`.
    pub inputs: Vec<String>,
    /// Options for S3.
    pub s3: S3Options,
    /// The encoding of the inputs.
    pub encoding: &'static Encoding,
    /// Whether to wait for more lines and files at the end of the inputs.
    pub follows: bool,
    /// Chunks have about this size, at most twice as much if lines are short.
    pub chunk_bytes: usize,
    /// Where the bytes of streams are kept that no checkpoint has. Without it, what a killed process has read is lost.
    pub keep: Option<Keep>,
}

impl SequenceOptions {
    /// Where the bytes of a stream are kept.
    pub(super) fn keep_of(&self, stream: &str) -> Option<Keep> {
        let number = self.inputs.iter().position(|input| input == stream)?;
        let keep = self.keep.as_ref()?;
        Some(Keep { folder: keep.folder.join(number.to_string()), ..keep.clone() })
    }

    /// Deletes what was taken from streams and is before a place, which a checkpoint has.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn forget(&self, place: &Place) -> io::Result<()> {
        for (name, position) in &place.sources {
            if let Some(keep) = self.keep_of(name) {
                taken::forget(&keep.folder, position.bytes)?;
            }
        }
        Ok(())
    }

    /// Number of lines behind a place that were taken from streams and not passed on.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn n_unread_lines(&self, place: &Place) -> io::Result<u64> {
        let mut n_lines = 0;
        for (name, position) in &place.sources {
            if let Some(keep) = self.keep_of(name) {
                let n_rest = if place.rest_of == *name { place.rest.len() } else { 0 };
                n_lines += taken::n_unread_lines(&keep.folder, *position, n_rest as u64)?;
            }
        }
        Ok(n_lines)
    }
}

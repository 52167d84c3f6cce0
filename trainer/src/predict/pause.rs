//! A stream that stops once where somebody may wait for an answer before it goes on.
//!
//! Whoever reads lines asks the stream for more only when no whole line is left. If then the last byte was a line's
//! end and answers are owed, the stream gives an error of its own kind instead of reading, perhaps for ever. Within a
//! line it never does, so that the reader of lines can simply go on.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

/// Reads from `source`.
pub(super) struct Pausing<'a, R> {
    source: R,
    answers_owed: &'a Cell<bool>,
    at_line_end: bool,
}

impl<'a, R> Pausing<'a, R> {
    /// Stops only where answers are owed, and as long as they are.
    pub(super) fn new(source: R, answers_owed: &'a Cell<bool>) -> Self {
        Self { source, answers_owed, at_line_end: false }
    }
}

impl<R: Read> Read for Pausing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at_line_end && self.answers_owed.get() {
            return Err(io::Error::other(Pause));
        }
        let n = self.source.read(buffer)?;
        self.at_line_end = matches!(buffer[..n].last(), Some(b'\n' | b'\r'));
        Ok(n)
    }
}

#[derive(Debug)]
struct Pause;

impl fmt::Display for Pause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("answers are owed before more is read")
    }
}

impl std::error::Error for Pause {}

/// Whether the stream stopped, and may be read again once the answers are given.
pub(super) fn is_pause(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Pause>())
}

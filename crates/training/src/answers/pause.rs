//! A stream that pauses when the program that writes its input may be waiting for predictions.
//!
//! The reader of lines requests more bytes only if no complete line is left. If the last byte was a line end and
//! predictions are pending, the stream returns a special error instead of blocking in a read. It never does this
//! within a line, so the reader can continue after the pause.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

use corpus::lines::LineEnds;

/// Wraps `source`.
pub struct Pausing<'a, R> {
    source: R,
    ends: LineEnds,
    answers_owed: &'a Cell<bool>,
    at_line_end: bool,
}

impl<'a, R> Pausing<'a, R> {
    /// Pauses only while `answers_owed` is set.
    pub fn new(source: R, ends: LineEnds, answers_owed: &'a Cell<bool>) -> Self {
        Self { source, ends, answers_owed, at_line_end: false }
    }
}

impl<R: Read> Read for Pausing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at_line_end && self.answers_owed.get() {
            return Err(io::Error::other(Pause));
        }
        let n = self.source.read(buffer)?;
        self.at_line_end = buffer[..n].last().is_some_and(|&byte| self.ends.end_with(byte));
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

/// Whether an error is a pause. The stream can be read again after the predictions are written.
pub fn is_pause(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Pause>())
}

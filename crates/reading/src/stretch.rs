//! Reads the lines of a stretch of a source (a range, or a group of members) without the bytes before it.
//!
//! A line belongs to the stretch that contains the byte before the line. The first line of a source belongs
//! to its first stretch. The reader of a stretch therefore skips everything up to the first line end. It then
//! reads past the end of the stretch, until the last line that starts at or before the end of the stretch is
//! complete.

use std::cell::Cell;
use std::io::Read;

use corpus::encoding::LineDecoder;
use corpus::lines::{Line, LineReader};

use crate::error::Error;
use crate::state::Part;

/// Size of the first read past the end of a stretch. Most lines are shorter.
const BEYOND_BYTES: u64 = 16 << 10;

/// Shared between a reader of lines and the stretch it reads from.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Whether the stretch should also return the bytes after its end.
    is_passed: Cell<bool>,
    /// Length of the stretch, once its end was reached.
    at: Cell<Option<u64>>,
}

impl End {
    /// Records that the stretch ends after this number of bytes. Returns whether it should return more.
    pub(crate) fn meet(&self, at: u64) -> bool {
        self.at.set(Some(at));
        self.is_passed.get()
    }

    /// The recorded end.
    pub(crate) fn at(&self) -> Option<u64> {
        self.at.get()
    }

    /// Size of the next read, this number of bytes past the end. A line that extends far is read in ever
    /// larger blocks.
    pub(crate) fn bytes_beyond(behind: u64) -> u64 {
        behind.max(BEYOND_BYTES)
    }

    fn is_before(&self, offset: u64) -> bool {
        self.at().is_some_and(|at| at < offset)
    }
}

/// Visits the lines of a stretch, with their offsets from its start.
pub(crate) fn each_line<E: From<Error>>(
    stretch: impl Read,
    (end, is_first): (&End, bool),
    part: &Part<'_>,
    visit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let unreadable = |error| part.source.failed(error);
    let mut lines = LineReader::new(stretch, part.line_bytes_max);
    let mut decoder = LineDecoder::of(part.encoding, part.line_bytes_max);
    if !is_first {
        lines.next_line().map_err(unreadable)?;
        if end.at().is_some() {
            // No line ends in the stretch.
            return Ok(());
        }
    }
    end.is_passed.set(true);
    // Both checks are required, because the LF of a CRLF that is not skipped yet may precede the next line.
    while !end.is_before(lines.offset()) {
        let Some(line) = lines.next_line().map_err(unreadable)? else { break };
        if end.is_before(line.offset) || part.state.is_stopped() {
            break;
        }
        match &mut decoder {
            None => visit(line)?,
            Some(decoder) => visit(decoder.decode(line))?,
        }
    }
    part.state.add_invalid(decoder.as_ref());
    Ok(())
}

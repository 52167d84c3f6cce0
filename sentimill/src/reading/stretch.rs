//! A stretch of a source's bytes, read by one who does not know those before it → the lines that are read with it.
//!
//! A line is read with the stretch that the byte before it lies in, and a source's first line with its first stretch: so
//! who reads a stretch passes over everything up to its first line end, and reads on behind its end until the line is
//! whole that begins there, or before.

use std::cell::Cell;
use std::io::Read;

use corpus::lines::{Line, LineReader};

use super::{Error, Part};

/// So much is read first behind the end of a stretch: most lines are shorter.
const BEYOND_BYTES: u64 = 16 << 10;

/// What a reader of lines and the stretch it reads from say to each other.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Whether the stretch is to give what lies behind it, too.
    is_passed: Cell<bool>,
    /// Where the stretch ends, once that was met: so many bytes behind its beginning.
    at: Cell<Option<u64>>,
}

impl End {
    /// Says that the stretch ends after so many bytes; whether it is to give more.
    pub(super) fn meet(&self, at: u64) -> bool {
        self.at.set(Some(at));
        self.is_passed.get()
    }

    /// Where it was met.
    pub(super) fn at(&self) -> Option<u64> {
        self.at.get()
    }

    /// How much to read at once so many bytes behind it: a line that goes far beyond is read in ever larger pieces.
    pub(super) fn bytes_beyond(behind: u64) -> u64 {
        behind.max(BEYOND_BYTES)
    }

    fn is_before(&self, offset: u64) -> bool {
        self.at().is_some_and(|at| at < offset)
    }
}

/// Visits the lines of a stretch, with their offsets from its beginning.
pub(super) fn each_line<E: From<Error>>(
    stretch: impl Read,
    (end, is_first): (&End, bool),
    part: &Part<'_>,
    visit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let unreadable = |error| part.unreadable(error);
    let mut lines = LineReader::new(stretch, part.line_bytes_max);
    if !is_first {
        lines.next_line().map_err(unreadable)?;
        if end.at().is_some() {
            // No line ends in it.
            return Ok(());
        }
    }
    end.is_passed.set(true);
    // Both are asked: a line end that is yet to be passed over, CR's LF, may stand before the next line.
    while !end.is_before(lines.offset()) {
        let Some(line) = lines.next_line().map_err(unreadable)? else { break };
        if end.is_before(line.offset) || part.state.is_stopped() {
            break;
        }
        visit(line)?;
    }
    Ok(())
}

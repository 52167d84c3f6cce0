//! A plain file, cut into ranges that are read independently of each other.
//!
//! A line belongs to the range in which its first byte lies. Who reads a range looks at the byte before it to know
//! whether a line begins with it, and reads past its end for its last line only.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use corpus::lines::{Line, LineReader};

use super::{Error, Part};

/// Large enough that what is done once a range costs nothing, small enough that all threads end at about the same time.
const RANGE_BYTES_MAX: u64 = 16 << 20;
/// With less, threads would be busier with taking ranges than with reading them.
const RANGE_BYTES_MIN: u64 = 256 << 10;
/// So many ranges a thread are enough to even out their speeds.
const RANGES_A_THREAD: u64 = 8;
/// So much is read first behind the end of a range: most lines are shorter.
const BEYOND_BYTES: u64 = 16 << 10;

/// Some bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u64,
    /// Behind the last one.
    pub end: u64,
    /// The size of the file when it was cut; what is appended later is not read.
    pub file_bytes: u64,
}

/// How large ranges are, if there are so many bytes for so many threads.
pub(super) fn range_bytes(bytes: u64, threads: u64) -> u64 {
    (bytes / (threads * RANGES_A_THREAD)).clamp(RANGE_BYTES_MIN, RANGE_BYTES_MAX)
}

/// Cuts a file.
pub(super) fn cut(file_bytes: u64, range_bytes: u64) -> impl Iterator<Item = Range> {
    (0..file_bytes.div_ceil(range_bytes)).map(move |number| {
        let start = number * range_bytes;
        Range { start, end: file_bytes.min(start + range_bytes), file_bytes }
    })
}

impl Range {
    /// Reads the lines of this range, with their offsets in the file.
    pub(super) fn each_line<E: From<Error>>(
        self,
        file: &File,
        part: &Part<'_>,
        visit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let unreadable = |error| part.unreadable(error);
        let from = self.start.saturating_sub(1);
        let passes_end = Cell::new(false);
        let window = Window { range: self, file, at: from, passes_end: &passes_end };
        let mut lines = LineReader::new(window, part.line_bytes_max);
        if self.start > 0 {
            // The rest of the line that the byte before the range belongs to, maybe its end alone.
            lines.next_line().map_err(unreadable)?;
        }
        passes_end.set(true);
        // Both are asked: a line end that is yet to be passed over, CR's LF, may be all that is left.
        while from + lines.offset() < self.end {
            let Some(line) = lines.next_line().map_err(unreadable)? else { break };
            let offset = from + line.offset;
            if offset >= self.end || part.state.is_stopped() {
                break;
            }
            visit(Line { offset, ..line })?;
        }
        part.state.advance(self.end - self.start);
        Ok(())
    }
}

/// The bytes of a file from the one before a range on.
struct Window<'a> {
    range: Range,
    file: &'a File,
    at: u64,
    /// Whether it goes on behind the range's end.
    passes_end: &'a Cell<bool>,
}

impl Read for Window<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Range { end, file_bytes, .. } = self.range;
        let most = if self.at < end {
            end - self.at
        } else if self.passes_end.get() {
            // A line that goes far beyond is read in ever larger pieces.
            (self.at - end).max(BEYOND_BYTES).min(file_bytes - self.at)
        } else {
            0
        };
        let most = usize::try_from(most).map_or(buffer.len(), |most| most.min(buffer.len()));
        let bytes = self.file.read_at(&mut buffer[..most], self.at)?;
        if bytes == 0 && most > 0 {
            let found = self.file.metadata()?.len();
            let found =
                format!("found {found} bytes, expected {file_bytes}; leave it alone while it is read");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, found));
        }
        self.at += bytes as u64;
        Ok(bytes)
    }
}

//! A plain file, split into ranges that are read independently.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use corpus::lines::Line;

use crate::error::Error;
use crate::state::Part;
use crate::stretch::{End, each_line};

/// Large enough that the cost per range is negligible, small enough that all threads end at about the same
/// time.
const RANGE_BYTES_MAX: u64 = 16 << 20;
/// With smaller ranges, threads would spend more time on taking ranges than on reading them.
const RANGE_BYTES_MIN: u64 = 256 << 10;
/// Number of ranges per thread, sufficient to balance different speeds.
const RANGES_A_THREAD: u64 = 8;

/// A byte range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Number of ranges before it.
    pub number: usize,
    pub start: u64,
    /// Exclusive end.
    pub end: u64,
    /// Size of the file when it was split. Bytes appended later are not read.
    pub file_bytes: u64,
}

/// Size of ranges for this number of bytes and threads.
pub(crate) fn range_bytes(bytes: u64, threads: u64) -> u64 {
    (bytes / (threads * RANGES_A_THREAD)).clamp(RANGE_BYTES_MIN, RANGE_BYTES_MAX)
}

/// Splits a file.
pub(crate) fn cut(file_bytes: u64, range_bytes: u64) -> impl Iterator<Item = Range> {
    (0..file_bytes.div_ceil(range_bytes)).map(move |number| {
        let start = number * range_bytes;
        Range { number: number as usize, start, end: file_bytes.min(start + range_bytes), file_bytes }
    })
}

impl Range {
    /// Reads the lines of this range, with their offsets in the file.
    pub(crate) fn each_line<E: From<Error>>(
        self,
        file: &File,
        part: &Part<'_>,
        visit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = End::default();
        let window = RangeBytes { range: self, file, at: self.start, end: &end };
        let visit = &mut |line: Line<'_>| visit(Line { offset: self.start + line.offset, ..line });
        each_line(window, (&end, self.start == 0), part, visit)?;
        part.state.advance(self.end - self.start);
        Ok(())
    }
}

/// The bytes of a file from the start of a range.
struct RangeBytes<'a> {
    range: Range,
    file: &'a File,
    at: u64,
    end: &'a End,
}

impl Read for RangeBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Range { start, end, file_bytes, .. } = self.range;
        let most = if self.at < end {
            end - self.at
        } else if self.end.meet(end - start) {
            End::bytes_beyond(self.at - end).min(file_bytes - self.at)
        } else {
            0
        };
        let most = usize::try_from(most).map_or(buffer.len(), |most| most.min(buffer.len()));
        let bytes = self.file.read_at(&mut buffer[..most], self.at)?;
        if bytes == 0 && most > 0 {
            return Err(input::shorter(self.file, file_bytes));
        }
        self.at += bytes as u64;
        Ok(bytes)
    }
}

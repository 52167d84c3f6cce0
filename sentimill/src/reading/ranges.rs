//! A plain file, cut into ranges that are read independently of each other.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use corpus::lines::Line;

use super::stretch::{End, each_line};
use super::{Error, Part};

/// Large enough that what is done once a range costs nothing, small enough that all threads end at about the same time.
const RANGE_BYTES_MAX: u64 = 16 << 20;
/// With less, threads would be busier with taking ranges than with reading them.
const RANGE_BYTES_MIN: u64 = 256 << 10;
/// So many ranges a thread are enough to even out their speeds.
const RANGES_A_THREAD: u64 = 8;

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
        let end = End::default();
        let window = Window { range: self, file, at: self.start, end: &end };
        let visit = &mut |line: Line<'_>| visit(Line { offset: self.start + line.offset, ..line });
        each_line(window, (&end, self.start == 0), part, visit)?;
        part.state.advance(self.end - self.start);
        Ok(())
    }
}

/// The bytes of a file from a range's beginning on.
struct Window<'a> {
    range: Range,
    file: &'a File,
    at: u64,
    end: &'a End,
}

impl Read for Window<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Range { start, end, file_bytes } = self.range;
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
            let found = self.file.metadata()?.len();
            let found =
                format!("found {found} bytes, expected {file_bytes}; leave it alone while it is read");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, found));
        }
        self.at += bytes as u64;
        Ok(bytes)
    }
}

//! Splits a stream of bytes into raw lines, as Hadoop's line reader does: a line ends at LF, CR or CRLF.
//!
//! The reader has one buffer and returns slices of it, so nothing is copied. Memory is at most the longest
//! line allowed plus one buffer. A UTF-8 byte-order mark at the start of any line is skipped, because `cat a
//! b` puts one in mid-stream. No other property of a format or an encoding is used.

use std::io::{self, Read};

/// Default limit of a line in bytes. No review is nearly as long, and a file without line ends exceeds it.
pub const LINE_BYTES_MAX: usize = 4 << 20;

// Large enough that the cost of reads and of moving the last incomplete line to the front is negligible.
// Small enough for the cache of one processor core, together with the tables in which words are looked up.
const BUFFER_BYTES: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A line and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Number of bytes before the line. A byte-order mark is part of the line.
    pub offset: u64,
    /// The line without its line end and without a byte-order mark.
    pub content: LineContent<'a>,
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineContent<'a> {
    /// A line within the limit.
    Bytes(&'a [u8]),
    /// A line beyond the limit. Its bytes are skipped, not stored.
    TooLong {
        /// Length of the line, without its line end and without a byte-order mark.
        bytes: u64,
        /// Whether the line is only spaces and tabs.
        blank: bool,
    },
}

impl LineContent<'_> {
    /// Whether the line is empty or only spaces and tabs.
    pub fn is_blank(self) -> bool {
        match self {
            Self::Bytes(line) => is_blank(line),
            Self::TooLong { blank, .. } => blank,
        }
    }
}

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    line_bytes_max: usize,
    buffer: Vec<u8>,
    // The unread bytes are buffer[start..end]. Those before `scanned` contain no line end.
    start: usize,
    scanned: usize,
    end: usize,
    offset: u64,
    // The last line ended in a CR that was the last byte of the buffer. An LF that follows belongs to it.
    after_cr: bool,
}

// Position of a line in the buffer, computed before the line is borrowed from it.
enum Found {
    Held { content_bytes: usize, end_bytes: usize },
    TooLong { bytes: u64, blank: bool },
}

/// Whether a line is empty or only spaces and tabs.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| byte == b' ' || byte == b'\t')
}

impl<R: Read> LineReader<R> {
    /// Reads from `source`. Neither the line end nor a byte-order mark counts towards `line_bytes_max`.
    pub fn new(source: R, line_bytes_max: usize) -> Self {
        Self::with_buffer_bytes(source, line_bytes_max, BUFFER_BYTES)
    }

    /// Reads from `source` with this initial buffer size. The buffer grows for longer lines.
    pub fn with_buffer_bytes(source: R, line_bytes_max: usize, buffer_bytes: usize) -> Self {
        Self {
            source,
            line_bytes_max,
            buffer: vec![0; buffer_bytes],
            start: 0,
            scanned: 0,
            end: 0,
            offset: 0,
            after_cr: false,
        }
    }

    /// Returns the next line, or `None` at the end. A last line without a line end counts. No empty line
    /// follows a line end at the end of the stream.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.after_cr {
            if self.start == self.end && self.fill()? == 0 {
                return Ok(None);
            }
            self.after_cr = false;
            if self.buffer[self.start] == b'\n' {
                self.consume(1);
            }
        }
        let offset = self.offset;
        let content = match self.find()? {
            None => return Ok(None),
            Some(Found::TooLong { bytes, blank }) => LineContent::TooLong { bytes, blank },
            Some(Found::Held { content_bytes, end_bytes }) => {
                let line_start = self.start;
                self.consume(content_bytes + end_bytes);
                let line = without_mark(&self.buffer[line_start..line_start + content_bytes]);
                if line.len() <= self.line_bytes_max {
                    LineContent::Bytes(line)
                } else {
                    LineContent::TooLong { bytes: line.len() as u64, blank: is_blank(line) }
                }
            }
        };
        Ok(Some(Line { offset, content }))
    }

    /// Offset of the end of the last line. An LF at this offset may still belong to the CR before it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn find(&mut self) -> io::Result<Option<Found>> {
        loop {
            if let Some(line_end) = self.find_end() {
                let content_bytes = line_end - self.start;
                let end_bytes = self.end_bytes(line_end);
                return Ok(Some(Found::Held { content_bytes, end_bytes }));
            }
            let held_bytes = self.end - self.start;
            if held_bytes > self.line_bytes_max.saturating_add(BYTE_ORDER_MARK.len()) {
                return Ok(Some(self.read_past()?));
            }
            if self.fill()? == 0 {
                let last = Found::Held { content_bytes: held_bytes, end_bytes: 0 };
                return Ok((held_bytes > 0).then_some(last));
            }
        }
    }

    /// Drops the unread bytes and all that follow, up to the line end.
    fn read_past(&mut self) -> io::Result<Found> {
        let marked = self.buffer[self.start..self.end].starts_with(BYTE_ORDER_MARK);
        if marked {
            self.consume(BYTE_ORDER_MARK.len());
        }
        let (mut bytes, mut blank) = (0, true);
        loop {
            let found = self.find_end();
            let dropped = found.unwrap_or(self.end) - self.start;
            bytes += dropped as u64;
            blank = blank && is_blank(&self.buffer[self.start..self.start + dropped]);
            let end_bytes = found.map_or(0, |line_end| self.end_bytes(line_end));
            self.consume(dropped + end_bytes);
            if found.is_some() || self.fill()? == 0 {
                break;
            }
        }
        Ok(Found::TooLong { bytes, blank })
    }

    /// Position of the end of the current line. No byte is scanned twice.
    fn find_end(&mut self) -> Option<usize> {
        let found = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..self.end]);
        let line_end = found.map(|at| self.scanned + at);
        self.scanned = line_end.unwrap_or(self.end);
        line_end
    }

    /// Length of the line end at `line_end`, as far as it is in the buffer.
    fn end_bytes(&mut self, line_end: usize) -> usize {
        if self.buffer[line_end] == b'\n' {
            return 1;
        }
        match self.buffer[line_end + 1..self.end].first() {
            Some(b'\n') => 2,
            Some(_) => 1,
            None => {
                self.after_cr = true;
                1
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.scanned = self.start;
        self.offset += bytes as u64;
    }

    /// Reads once after the unread bytes and makes space for that. 0 is the end of the source.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.scanned -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // Just enough to detect that a line is too long.
            let largest = self.line_bytes_max.saturating_add(BYTE_ORDER_MARK.len() + 1);
            let grown = (self.buffer.len() * 2).min(largest).max(self.buffer.len() + 1);
            self.buffer.resize(grown, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The offset of a line, and its bytes. If the line is too long: its length, and whether it is blank.
    type Owned = (u64, Result<Vec<u8>, (u64, bool)>);

    #[test]
    fn every_kind_of_line_end_counts_once() {
        let lines = read_all(b"a\nb\rc\r\n\r\r\n\n\nd".as_slice(), 9, 64);
        let expected: [&[u8]; 8] = [b"a", b"b", b"c", b"", b"", b"", b"", b"d"];
        assert_eq!(texts(&lines), expected);
    }

    #[test]
    fn no_empty_line_follows_the_last_line_end() {
        for text in ["a\n", "a\r", "a\r\n"] {
            assert_eq!(texts(&read_all(text.as_bytes(), 9, 64)), [b"a"], "{text:?}");
        }
        assert_eq!(read_all(b"".as_slice(), 9, 64), []);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_only_at_the_start_of_a_line() {
        let text = "\u{FEFF}ab\nc\u{FEFF}d\n\u{FEFF}\n\u{FEFF}e";
        let lines = read_all(text.as_bytes(), 5, 1);
        let expected: [&[u8]; 4] = [b"ab", "c\u{FEFF}d".as_bytes(), b"", b"e"];
        assert_eq!(texts(&lines), expected);
        assert_eq!(lines.iter().map(|line| line.0).collect::<Vec<_>>(), [0, 6, 12, 16]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped_without_being_stored() {
        let long = 100_000_000;
        let source = io::repeat(b'x').take(long).chain(b"\nshort".as_slice());
        let mut lines = LineReader::with_buffer_bytes(source, 1000, 64);

        let line = lines.next_line().unwrap().unwrap();
        assert_eq!(line, Line { offset: 0, content: LineContent::TooLong { bytes: long, blank: false } });
        let line = lines.next_line().unwrap().unwrap();
        assert_eq!(line, Line { offset: long + 1, content: LineContent::Bytes(b"short") });
        assert_eq!(lines.next_line().unwrap(), None);
        assert!(lines.buffer.len() <= 1004);
    }

    #[test]
    fn interrupted_reads_are_retried_and_other_errors_reported() {
        let source = Faulty(vec![
            Ok(b"a\nb".to_vec()),
            Err(io::ErrorKind::Interrupted),
            Ok(b"c\n".to_vec()),
            Err(io::ErrorKind::ConnectionReset),
        ]);
        let mut lines = LineReader::new(source, 9);
        assert_eq!(lines.next_line().unwrap().unwrap().content, LineContent::Bytes(b"a"));
        assert_eq!(lines.next_line().unwrap().unwrap().content, LineContent::Bytes(b"bc"));
        assert_eq!(lines.next_line().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn only_spaces_and_tabs_are_blank() {
        assert!(is_blank(b"") && is_blank(b" \t "));
        assert!(!is_blank(b" x ") && !is_blank(b"\x0c") && !is_blank("\u{A0}".as_bytes()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn lines_equal_those_of_a_naive_reader_for_every_block_size(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["\n", "\r", "\r\n", "\u{FEFF}", "a", " \t  ", "bcdefgh", "\u{E9}", "\0"]), 0..24),
            line_bytes_max in 0..12usize,
            buffer_bytes in 1..8usize,
            read_bytes in 1..8usize,
        ) {
            let text = pieces.concat().into_bytes();
            let source = Trickle { rest: &text, read_bytes };
            prop_assert_eq!(read_all_with(source, line_bytes_max, buffer_bytes), naive(&text, line_bytes_max));
        }
    }

    fn naive(text: &[u8], line_bytes_max: usize) -> Vec<Owned> {
        let mut lines = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = (at..text.len()).find(|&i| text[i] == b'\n' || text[i] == b'\r').unwrap_or(text.len());
            let line = without_mark(&text[at..end]);
            let content = if line.len() > line_bytes_max {
                Err((line.len() as u64, is_blank(line)))
            } else {
                Ok(line.to_vec())
            };
            lines.push((at as u64, content));
            at = if text[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
        }
        lines
    }

    fn read_all(source: &[u8], line_bytes_max: usize, buffer_bytes: usize) -> Vec<Owned> {
        read_all_with(source, line_bytes_max, buffer_bytes)
    }

    fn read_all_with(source: impl Read, line_bytes_max: usize, buffer_bytes: usize) -> Vec<Owned> {
        let mut reader = LineReader::with_buffer_bytes(source, line_bytes_max, buffer_bytes);
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            let content = match line.content {
                LineContent::Bytes(bytes) => Ok(bytes.to_vec()),
                LineContent::TooLong { bytes, blank } => Err((bytes, blank)),
            };
            lines.push((line.offset, content));
        }
        lines
    }

    fn texts(lines: &[Owned]) -> Vec<&[u8]> {
        lines.iter().map(|(_, content)| content.as_deref().unwrap()).collect()
    }

    struct Trickle<'a> {
        rest: &'a [u8],
        read_bytes: usize,
    }

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.read_bytes);
            self.rest.read(&mut buffer[..most])
        }
    }

    struct Faulty(Vec<Result<Vec<u8>, io::ErrorKind>>);

    impl Read for Faulty {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let bytes = self.0.remove(0)?;
            buffer[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }
}

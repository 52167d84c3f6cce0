//! Splits a stream of bytes into raw lines, as Hadoop's line reader does: a line ends at LF, CR or CRLF. Lines that may
//! contain a CR end at LF or CRLF.
//!
//! The reader has one buffer and returns slices of it, so nothing is copied. Memory is at most the longest
//! line allowed plus one buffer. A UTF-8 byte-order mark at the start of any line is skipped, because `cat a
//! b` puts one in mid-stream. No other property of a format or an encoding is used.

use std::io::{self, Read};

use crate::buffer::{BUFFER_BYTES, BYTE_ORDER_MARK, Buffer};

/// Default limit of a line in bytes. No review is nearly as long, and a file without line ends exceeds it.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Where lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnds {
    /// At LF, CR or CRLF.
    #[default]
    Any,
    /// At LF or CRLF. Any other CR is part of a line.
    Lf,
}

impl LineEnds {
    /// Whether a line ends, or may end, with this byte.
    pub fn end_with(self, byte: u8) -> bool {
        byte == b'\n' || (byte == b'\r' && self == Self::Any)
    }
}

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
    line_bytes_max: usize,
    ends: LineEnds,
    buffer: Buffer<R>,
    // The first unread bytes, which contain no line end.
    scanned: usize,
    // The last line ended in a CR that was the last byte of the buffer. An LF that follows belongs to it.
    after_cr: bool,
}

// Position of a line in the buffer, computed before the line is borrowed from it.
enum LineLength {
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
        // Just enough to detect that a line is too long.
        let largest = line_bytes_max.saturating_add(BYTE_ORDER_MARK.len() + 1);
        let buffer = Buffer::new(source, buffer_bytes, largest);
        Self { line_bytes_max, ends: LineEnds::Any, buffer, scanned: 0, after_cr: false }
    }

    /// Splits the stream at these line ends.
    pub fn ending_at(mut self, ends: LineEnds) -> Self {
        self.ends = ends;
        self
    }

    /// Returns the next line, or `None` at the end. A last line without a line end counts. No empty line
    /// follows a line end at the end of the stream.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.after_cr {
            if self.buffer.held().is_empty() && self.buffer.fill()? == 0 {
                return Ok(None);
            }
            self.after_cr = false;
            if self.buffer.held()[0] == b'\n' {
                self.buffer.take(1);
            }
        }
        let offset = self.buffer.offset();
        let content = match self.find()? {
            None => return Ok(None),
            Some(LineLength::TooLong { bytes, blank }) => LineContent::TooLong { bytes, blank },
            Some(LineLength::Held { content_bytes, end_bytes }) => {
                self.scanned = 0;
                let line = without_mark(&self.buffer.take(content_bytes + end_bytes)[..content_bytes]);
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
        self.buffer.offset()
    }

    fn find(&mut self) -> io::Result<Option<LineLength>> {
        loop {
            if let Some(line_end) = self.find_end() {
                let (content_bytes, end_bytes) = self.ended(line_end);
                return Ok(Some(LineLength::Held { content_bytes, end_bytes }));
            }
            let held_bytes = self.buffer.held().len();
            // A CR at the end may belong to the line end.
            let of_end = usize::from(self.ends == LineEnds::Lf && self.buffer.held().ends_with(b"\r"));
            if held_bytes - of_end > self.line_bytes_max.saturating_add(BYTE_ORDER_MARK.len()) {
                return Ok(Some(self.read_past()?));
            }
            if self.buffer.fill()? == 0 {
                let last = LineLength::Held { content_bytes: held_bytes, end_bytes: 0 };
                return Ok((held_bytes > 0).then_some(last));
            }
        }
    }

    /// Drops the unread bytes and all that follow, up to the line end.
    fn read_past(&mut self) -> io::Result<LineLength> {
        if self.buffer.held().starts_with(BYTE_ORDER_MARK) {
            self.buffer.take(BYTE_ORDER_MARK.len());
            self.scanned -= BYTE_ORDER_MARK.len();
        }
        let (mut bytes, mut blank) = (0, true);
        loop {
            let found = self.find_end();
            let (dropped, end_bytes) = match found {
                Some(line_end) => self.ended(line_end),
                None => (self.buffer.held().len(), 0),
            };
            // A CR before an LF is not in the same buffer if it was the last byte of it.
            let held = &self.buffer.held()[..dropped];
            let last_cr = usize::from(found.is_none() && self.ends == LineEnds::Lf && held.ends_with(b"\r"));
            let dropped = dropped - last_cr;
            bytes += dropped as u64;
            blank = blank && is_blank(&held[..dropped]);
            self.buffer.take(dropped + end_bytes);
            self.scanned = last_cr;
            if found.is_some() {
                break;
            }
            if self.buffer.fill()? == 0 {
                let rest = self.buffer.held().len();
                self.buffer.take(rest);
                self.scanned = 0;
                bytes += rest as u64;
                blank = blank && rest == 0;
                break;
            }
        }
        Ok(LineLength::TooLong { bytes, blank })
    }

    /// Number of unread bytes before the end of the current line. No byte is scanned twice.
    fn find_end(&mut self) -> Option<usize> {
        let rest = &self.buffer.held()[self.scanned..];
        let found = match self.ends {
            LineEnds::Any => memchr::memchr2(b'\n', b'\r', rest),
            LineEnds::Lf => memchr::memchr(b'\n', rest),
        };
        let line_end = found.map(|at| self.scanned + at);
        self.scanned = line_end.unwrap_or(self.buffer.held().len());
        line_end
    }

    /// Length of the line whose end was found, and of its end as far as it is in the buffer.
    fn ended(&mut self, line_end: usize) -> (usize, usize) {
        let held = self.buffer.held();
        if held[line_end] == b'\n' {
            let has_cr = self.ends == LineEnds::Lf && held[..line_end].ends_with(b"\r");
            return if has_cr { (line_end - 1, 2) } else { (line_end, 1) };
        }
        let end_bytes = match held[line_end + 1..].first() {
            Some(b'\n') => 2,
            Some(_) => 1,
            None => {
                self.after_cr = true;
                1
            }
        };
        (line_end, end_bytes)
    }
}

/// A line without a byte-order mark at its start. `cat` leaves one within a file.
pub fn without_mark(line: &[u8]) -> &[u8] {
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
    fn a_cr_is_part_of_a_line_that_ends_at_lf() {
        let reader = LineReader::new(b"a\rb\r\nc\r\r\n\rd\r".as_slice(), 9).ending_at(LineEnds::Lf);
        let expected: [&[u8]; 3] = [b"a\rb", b"c\r", b"\rd\r"];
        assert_eq!(texts(&all(reader)), expected);
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
        assert!(lines.buffer.size() <= 1004);
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
            ends in prop::sample::select(vec![LineEnds::Any, LineEnds::Lf]),
        ) {
            let text = pieces.concat().into_bytes();
            let source = Trickle { rest: &text, read_bytes };
            let lines = LineReader::with_buffer_bytes(source, line_bytes_max, buffer_bytes).ending_at(ends);
            prop_assert_eq!(all(lines), naive(&text, line_bytes_max, ends));
        }
    }

    fn naive(text: &[u8], line_bytes_max: usize, ends: LineEnds) -> Vec<Owned> {
        let mut lines = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let is_end = |i: usize| match ends {
                LineEnds::Any => text[i] == b'\n' || text[i] == b'\r',
                LineEnds::Lf => text[i] == b'\n' || text[i..].starts_with(b"\r\n"),
            };
            let end = (at..text.len()).find(|&i| is_end(i)).unwrap_or(text.len());
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
        all(LineReader::with_buffer_bytes(source, line_bytes_max, buffer_bytes))
    }

    fn all(mut reader: LineReader<impl Read>) -> Vec<Owned> {
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

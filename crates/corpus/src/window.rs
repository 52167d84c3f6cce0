//! A stream of bytes that is searched for the end of one piece at a time. Memory is at most the longest piece
//! allowed plus one buffer.

use std::io::{self, Read};

const BUFFER_BYTES: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The unread bytes of a stream, as far as they are in memory.
#[derive(Debug)]
pub struct Window<R> {
    source: R,
    bytes_max: usize,
    buffer: Vec<u8>,
    // The unread bytes are buffer[start..end].
    start: usize,
    end: usize,
    offset: u64,
}

/// A piece of the stream whose end was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The first unread bytes are the piece. `is_ended` is false if the stream ended first.
    Held { bytes: usize, is_ended: bool },
    /// The piece has more bytes than allowed. It is not read yet: the first unread bytes are its beginning.
    TooLong,
}

impl<R: Read> Window<R> {
    /// Searches `source` for pieces of at most `bytes_max` bytes.
    pub fn new(source: R, bytes_max: usize) -> Self {
        Self::with_buffer_bytes(source, bytes_max, BUFFER_BYTES)
    }

    /// A window with this initial buffer size. The buffer grows for longer pieces.
    pub fn with_buffer_bytes(source: R, bytes_max: usize, buffer_bytes: usize) -> Self {
        Self { source, bytes_max, buffer: vec![0; buffer_bytes.max(1)], start: 0, end: 0, offset: 0 }
    }

    /// Maximum length of a piece.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes: at least one, or none at the end of the stream.
    pub fn unread(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.fill()?;
        }
        Ok(self.held())
    }

    /// The unread bytes that are in memory.
    pub fn held(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks the first bytes as read and returns them.
    pub fn take(&mut self, bytes: usize) -> &[u8] {
        let from = self.start;
        self.start += bytes;
        self.offset += bytes as u64;
        &self.buffer[from..from + bytes]
    }

    /// Skips a UTF-8 byte-order mark. Returns whether there was one.
    pub fn skip_mark(&mut self) -> io::Result<bool> {
        while self.held().len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(self.held()) {
            if self.fill()? == 0 {
                break;
            }
        }
        let is_marked = self.held().starts_with(BYTE_ORDER_MARK);
        if is_marked {
            self.take(BYTE_ORDER_MARK.len());
        }
        Ok(is_marked)
    }

    /// Searches the end of the piece that starts at the first unread byte. `scan` gets all bytes in order, and returns
    /// the number of bytes of its argument that precede the end of the piece, once it sees the end.
    pub fn piece(&mut self, mut scan: impl FnMut(&[u8]) -> Option<usize>) -> io::Result<Piece> {
        let mut scanned = 0;
        loop {
            if let Some(more) = scan(&self.held()[scanned..]) {
                let bytes = scanned + more;
                let is_within = bytes <= self.bytes_max;
                return Ok(if is_within { Piece::Held { bytes, is_ended: true } } else { Piece::TooLong });
            }
            scanned = self.held().len();
            if scanned > self.bytes_max {
                return Ok(Piece::TooLong);
            }
            if self.fill()? == 0 {
                return Ok(Piece::Held { bytes: scanned, is_ended: false });
            }
        }
    }

    /// Reads past a piece without holding it. `scan` is as for [`Self::piece`]. Returns the length of the piece, and
    /// whether its end was found.
    pub fn read_past(&mut self, mut scan: impl FnMut(&[u8]) -> Option<usize>) -> io::Result<(u64, bool)> {
        let from = self.offset;
        loop {
            let found = scan(self.held());
            let bytes = found.unwrap_or(self.held().len());
            self.take(bytes);
            if found.is_some() || self.fill()? == 0 {
                return Ok((self.offset - from, found.is_some()));
            }
        }
    }

    /// Reads once after the unread bytes. 0 is the end of the stream.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // Just enough to detect that a piece is too long.
            let largest = self.bytes_max.saturating_add(1);
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

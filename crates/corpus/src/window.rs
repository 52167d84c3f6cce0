//! A stream of bytes that is searched for the end of one piece at a time. Memory is at most the longest piece
//! allowed plus one buffer.

use std::io::{self, Read};

use crate::buffer::{BUFFER_BYTES, BYTE_ORDER_MARK, Buffer};

/// A stream that is read piece by piece.
#[derive(Debug)]
pub struct Window<R> {
    bytes_max: usize,
    buffer: Buffer<R>,
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
        // One byte more than allowed shows that a piece is too long.
        Self { bytes_max, buffer: Buffer::new(source, buffer_bytes, bytes_max.saturating_add(1)) }
    }

    /// Maximum length of a piece.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// The next bytes: at least one, or none at the end of the stream.
    pub fn unread(&mut self) -> io::Result<&[u8]> {
        if self.held().is_empty() {
            self.buffer.fill()?;
        }
        Ok(self.held())
    }

    /// The unread bytes that are in memory.
    pub fn held(&self) -> &[u8] {
        self.buffer.held()
    }

    /// Marks the first bytes as read and returns them.
    pub fn take(&mut self, bytes: usize) -> &[u8] {
        self.buffer.take(bytes)
    }

    /// Skips a UTF-8 byte-order mark. Returns whether there was one.
    pub fn skip_mark(&mut self) -> io::Result<bool> {
        while self.held().len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(self.held()) {
            if self.buffer.fill()? == 0 {
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
            if self.buffer.fill()? == 0 {
                return Ok(Piece::Held { bytes: scanned, is_ended: false });
            }
        }
    }

    /// Reads past a piece without holding it. `scan` is as for [`Self::piece`]. Returns the length of the piece, and
    /// whether its end was found.
    pub fn read_past(&mut self, mut scan: impl FnMut(&[u8]) -> Option<usize>) -> io::Result<(u64, bool)> {
        let from = self.offset();
        loop {
            let found = scan(self.held());
            let bytes = found.unwrap_or(self.held().len());
            self.take(bytes);
            if found.is_some() || self.buffer.fill()? == 0 {
                return Ok((self.offset() - from, found.is_some()));
            }
        }
    }
}

//! The unread bytes of a stream, as far as they are in memory. They are one slice, so nothing is copied.

use std::io::{self, Read};

/// Initial size. It is large enough that the cost of reads and of moving the last incomplete piece to the front is
/// negligible, and small enough for the cache of one processor core, together with the tables in which words are looked
/// up.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// A UTF-8 byte-order mark.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug)]
pub(crate) struct Buffer<R> {
    source: R,
    bytes_max: usize,
    bytes: Vec<u8>,
    // The unread bytes are bytes[start..end].
    start: usize,
    end: usize,
    offset: u64,
}

impl<R: Read> Buffer<R> {
    /// An empty buffer of this size, at least 1. It grows to at most `bytes_max`, unless it is larger.
    pub fn new(source: R, bytes: usize, bytes_max: usize) -> Self {
        Self { source, bytes_max, bytes: vec![0; bytes.max(1)], start: 0, end: 0, offset: 0 }
    }

    /// Number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The unread bytes that are in memory.
    pub fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Marks the first bytes as read and returns them.
    pub fn take(&mut self, bytes: usize) -> &[u8] {
        let from = self.start;
        self.start += bytes;
        self.offset += bytes as u64;
        &self.bytes[from..self.start]
    }

    /// Reads once after the unread bytes and makes space for that. 0 is the end of the stream.
    pub fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            let grown = (self.bytes.len() * 2).min(self.bytes_max).max(self.bytes.len() + 1);
            self.bytes.resize(grown, 0);
        }
        loop {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Size of the memory.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

//! A buffered reader with look-ahead, which counts the bytes consumed.

use std::io::{self, BufRead, Read};

const BUFFER_BYTES: usize = 256 << 10;
/// A read of at least this size bypasses the buffer and goes directly into the caller's.
const DIRECT_BYTES: usize = 32 << 10;

/// A reader and its buffer.
#[derive(Debug)]
pub struct Source<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    offset: u64,
    has_failed: bool,
}

impl<R: Read> Source<R> {
    pub(crate) fn of(reader: R) -> Self {
        Self::at(reader, 0)
    }

    /// Wraps a reader of which `offset` bytes have already been read.
    pub(crate) fn at(reader: R, offset: u64) -> Self {
        Self { reader, buffer: vec![0; BUFFER_BYTES].into(), start: 0, end: 0, offset, has_failed: false }
    }

    /// Number of bytes consumed, including those read before.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the underlying reader has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns the next `bytes` bytes, or fewer at the end, without consuming them.
    pub(crate) fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        debug_assert!(bytes <= self.buffer.len());
        if self.end - self.start < bytes {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            while self.end < bytes && self.read_more()? > 0 {}
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + bytes)])
    }

    /// Returns the next `bytes` bytes without consuming them, or fewer: reading stops as soon as `is_open`
    /// returns false for the bytes so far.
    pub(crate) fn peek_while(&mut self, bytes: usize, is_open: impl Fn(&[u8]) -> bool) -> io::Result<&[u8]> {
        let mut n = 0;
        loop {
            let seen = self.peek(n + 1)?.len();
            if seen == n {
                break;
            }
            n = seen.max(self.end - self.start).min(bytes);
            if n == bytes || !is_open(&self.buffer[self.start..self.start + n]) {
                break;
            }
        }
        Ok(&self.buffer[self.start..self.start + n])
    }

    fn read_more(&mut self) -> io::Result<usize> {
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_failed = true;
                    return Err(error);
                }
            }
        }
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.read_more()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && buffer.len() >= DIRECT_BYTES {
            let bytes = self.reader.read(buffer)?;
            self.offset += bytes as u64;
            return Ok(bytes);
        }
        let bytes = self.fill_buf()?.read(buffer)?;
        self.consume(bytes);
        Ok(bytes)
    }
}

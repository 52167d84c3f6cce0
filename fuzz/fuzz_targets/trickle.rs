//! A source that returns its bytes in pieces and is sometimes interrupted.

use std::io::{self, ErrorKind, Read};

/// Reads of these sizes in turn. A size of 0 is an interruption; the next read then has size 1.
pub struct Trickle<'a> {
    rest: &'a [u8],
    read_bytes: [u8; 8],
    at: usize,
}

impl<'a> Trickle<'a> {
    pub fn new(stream: &'a [u8], read_bytes: [u8; 8]) -> Self {
        Self { rest: stream, read_bytes, at: 0 }
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = &mut self.read_bytes[self.at % 8];
        self.at += 1;
        if *size == 0 {
            *size = 1;
            return Err(ErrorKind::Interrupted.into());
        }
        let most = buffer.len().min(usize::from(*size));
        self.rest.read(&mut buffer[..most])
    }
}

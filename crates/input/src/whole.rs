//! A file that must not become shorter while it is read.

use std::fs::File;
use std::io::{self, Read, Seek};

/// Reads a file from its position to its end. An end before the size that the file had at the beginning is an error. Other
/// files than regular ones have no size.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    at: u64,
    /// The size at the beginning.
    bytes: u64,
}

impl WholeFile {
    /// Reads a file from its position.
    pub fn of(mut file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let (at, bytes) = match metadata.is_file() {
            true => (file.stream_position()?, metadata.len()),
            false => (0, 0),
        };
        Ok(Self { file, at, bytes })
    }
}

impl Read for WholeFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        if n == 0 && !buffer.is_empty() && self.at < self.bytes {
            return Err(shorter(&self.file, self.bytes));
        }
        self.at += n as u64;
        Ok(n)
    }
}

/// The error of a file that ended before its size at the beginning.
pub fn shorter(file: &File, expected: u64) -> io::Error {
    match file.metadata() {
        Ok(metadata) => {
            let found = metadata.len();
            let found =
                format!("found {found} bytes, expected {expected}; do not change the file while it is read");
            io::Error::new(io::ErrorKind::UnexpectedEof, found)
        }
        Err(error) => error,
    }
}

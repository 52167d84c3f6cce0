//! Streams with a digest of the bytes that pass, and the rows of tables in them.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use crate::simd::Table;

/// A stream with the XXH3 digest of all bytes written to it or read from it.
pub struct Digested<S> {
    stream: S,
    digest: Xxh3,
}

impl<S> Digested<S> {
    /// A stream from its current position on.
    pub fn new(stream: S) -> Self {
        Self { stream, digest: Xxh3::new() }
    }
}

impl<S: Write> Digested<S> {
    /// Writes bytes.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.stream.write_all(bytes)
    }

    /// Writes all parts of a row: little-endian floats.
    pub fn write_row(&mut self, table: &Table, row: u32) -> io::Result<()> {
        let mut values = vec![0.0; table.dim()];
        for part in 0..table.parts() {
            table.read(row, part, &mut values);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Ends the stream with the digest, which is not part of it, and flushes.
    pub fn finish(mut self) -> io::Result<()> {
        let digest = self.digest.digest();
        self.stream.write_all(&digest.to_le_bytes())?;
        self.stream.flush()
    }
}

impl<S: Read> Digested<S> {
    /// Reads `N` bytes.
    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Fills a slice.
    pub fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(bytes)?;
        self.digest.update(bytes);
        Ok(())
    }

    /// Reads all parts of a row.
    pub fn read_row(&mut self, table: &Table, row: u32) -> io::Result<()> {
        let mut bytes = vec![0; 4 * table.dim()];
        for part in 0..table.parts() {
            self.read_exact(&mut bytes)?;
            let values: Vec<f32> =
                bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            table.write(row, part, &values);
        }
        Ok(())
    }

    /// Reads the digest. Returns whether it is that of all bytes, and the stream ends behind it.
    pub fn is_whole(mut self) -> io::Result<bool> {
        let mut bytes = [0; 8];
        self.stream.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes) == self.digest.digest() && self.stream.read(&mut [0])? == 0)
    }
}

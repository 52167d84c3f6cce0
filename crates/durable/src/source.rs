//! Reads little-endian fields of a file whose length is known, so that no field exceeds the file.

use std::fmt::Display;
use std::io::{self, BufRead};
use std::path::Path;

use crate::error::{At, Error, Result};

/// Bytes that are converted at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The unread rest of a file.
#[derive(Debug)]
pub struct Source<'a, R> {
    from: R,
    /// Unread bytes.
    left: u64,
    path: &'a Path,
    remedy: &'static str,
}

impl<'a, R: BufRead> Source<'a, R> {
    /// Reads `n_bytes` from `from`. Errors name `path` and `remedy`.
    pub fn new(from: R, n_bytes: u64, path: &'a Path, remedy: &'static str) -> Self {
        Self { from, left: n_bytes, path, remedy }
    }

    /// The number of unread bytes.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, field: impl Display) -> Result<i32> {
        self.array(field).map(i32::from_le_bytes)
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, field: impl Display) -> Result<i64> {
        self.array(field).map(i64::from_le_bytes)
    }

    /// A 64-bit float.
    pub fn f64(&mut self, field: impl Display) -> Result<f64> {
        self.array(field).map(f64::from_le_bytes)
    }

    /// A byte.
    pub fn u8(&mut self, field: impl Display) -> Result<u8> {
        self.array(field).map(u8::from_le_bytes)
    }

    /// A byte that is 0 or 1.
    pub fn bool(&mut self, field: impl Display + Copy) -> Result<bool> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.unexpected(field, other, "0 or 1")),
        }
    }

    /// An `i32` that is a size.
    pub fn size_i32(&mut self, field: impl Display + Copy, largest: u32) -> Result<usize> {
        let found = self.i32(field)?;
        let size = u32::try_from(found).ok().filter(|&size| size <= largest);
        let size = size.ok_or_else(|| self.unexpected(field, found, format_args!("0 to {largest}")))?;
        Ok(size as usize)
    }

    /// Appends the bytes up to the next NUL to `bytes`. The NUL is read too.
    pub fn until_nul(&mut self, field: impl Display, bytes: &mut Vec<u8>) -> Result<()> {
        match self.until(0, bytes)? {
            true => Ok(()),
            false => Err(self.unexpected(field, "not terminated", "a word that ends with a NUL byte")),
        }
    }

    /// Appends the bytes up to the next delimiter to `bytes`, and returns whether there is one. It is read too.
    pub fn until(&mut self, delimiter: u8, bytes: &mut Vec<u8>) -> Result<bool> {
        let before = bytes.len();
        let mut from = io::Read::take(&mut self.from, self.left);
        let read = from.read_until(delimiter, bytes).at(self.path, "read it")?;
        self.left -= read as u64;
        let is_found = bytes.len() > before && bytes.last() == Some(&delimiter);
        if is_found {
            bytes.pop();
        }
        Ok(is_found)
    }

    /// `n` bytes.
    pub fn bytes(&mut self, field: impl Display, n: u64) -> Result<Vec<u8>> {
        let n = self.take(field, n)?;
        let mut bytes = vec![0; n];
        self.from.read_exact(&mut bytes).at(self.path, "read it")?;
        Ok(bytes)
    }

    /// `n` floats, each finite and of a magnitude below `limit`.
    pub fn floats(&mut self, field: impl Display + Copy, n: u64, limit: f32) -> Result<Vec<f32>> {
        let n_bytes = self.take(field, n.saturating_mul(4))?;
        let mut floats = Vec::with_capacity(n_bytes / 4);
        let mut piece = vec![0; PIECE_BYTES.min(n_bytes)];
        while floats.len() < n_bytes / 4 {
            let bytes = (n_bytes - floats.len() * 4).min(PIECE_BYTES);
            self.from.read_exact(&mut piece[..bytes]).at(self.path, "read it")?;
            let first = floats.len();
            floats.extend(piece[..bytes].as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            // The comparison is false for NaN.
            let is_sound = |value: &f32| value.abs() < limit;
            if !floats[first..].iter().all(is_sound) {
                let at = first + floats[first..].iter().take_while(|value| is_sound(value)).count();
                let expected = format!("a finite value of a magnitude below {limit:e}");
                return Err(self.unexpected(format_args!("value {at} of {field}"), floats[at], expected));
            }
        }
        Ok(floats)
    }

    /// Refuses bytes after the last field.
    pub fn end(self, after: &str) -> Result<()> {
        match self.left {
            0 => Ok(()),
            n => Err(self.unexpected(format_args!("the number of bytes after {after}"), n, 0)),
        }
    }

    /// An error of a field.
    pub fn unexpected(&self, field: impl Display, found: impl Display, expected: impl Display) -> Error {
        Error::unexpected(self.path, field, found, expected, self.remedy)
    }

    fn array<const N: usize>(&mut self, field: impl Display) -> Result<[u8; N]> {
        self.take(field, N as u64)?;
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).at(self.path, "read it")?;
        Ok(bytes)
    }

    /// Counts `n` bytes as read, or refuses a field that exceeds the file.
    fn take(&mut self, field: impl Display, n: u64) -> Result<usize> {
        match (self.left.checked_sub(n), usize::try_from(n)) {
            (Some(left), Ok(n)) => {
                self.left = left;
                Ok(n)
            }
            _ => Err(self.unexpected(
                field,
                format_args!("cut off after {} bytes", self.left),
                format_args!("{n} bytes"),
            )),
        }
    }
}

//! The SHA-256 of files and bytes, by which commit records, manifests and lists identify them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use program::hexadecimal;
use program::progress::Progress;
use sha2::{Digest, Sha256};

/// Size and SHA-256 of a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Number of bytes.
    pub bytes: u64,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// The SHA-256 of a file's bytes, in hexadecimal digits.
pub fn of_file(path: &Path) -> io::Result<String> {
    of_file_reporting(path, &Progress::default())
}

/// The SHA-256 of a file's bytes, in hexadecimal digits. Each byte is a step of `progress`.
pub fn of_file_reporting(path: &Path, progress: &Progress) -> io::Result<String> {
    summary(path, progress).map(|summary| summary.sha256)
}

/// The size and the SHA-256 of a file. Each byte is a step of `progress`.
pub fn summary(path: &Path, progress: &Progress) -> io::Result<Summary> {
    let mut file = Hashing::new(File::open(path)?);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(file.summary()),
            n => progress.advance(n as u64),
        }
    }
}

/// Computes the SHA-256 of what is read from a stream.
#[derive(Debug)]
pub struct Hashing<R> {
    stream: R,
    hasher: Sha256,
    bytes: u64,
}

impl<R> Hashing<R> {
    /// Nothing is read yet.
    pub fn new(stream: R) -> Self {
        Self { stream, hasher: Sha256::new(), bytes: 0 }
    }

    /// The size and the SHA-256 of what was read.
    pub fn summary(self) -> Summary {
        Summary { bytes: self.bytes, sha256: hexadecimal::encode(&self.hasher.finalize()) }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
}

/// The SHA-256 of these bytes, in hexadecimal digits.
pub fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal::encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_published_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_file(&path).unwrap(), expected);
        assert_eq!(of_bytes(b"abc"), expected);
    }

    #[test]
    fn each_byte_is_a_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        std::fs::write(&path, vec![7; 600_000]).unwrap();
        let progress = Progress::default();
        assert_eq!(of_file_reporting(&path, &progress).unwrap(), of_file(&path).unwrap());
        assert_eq!(progress.steps(), 600_000);
    }
}

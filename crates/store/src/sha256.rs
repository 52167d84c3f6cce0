//! SHA-256 of files, and its hexadecimal form.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 and the size of a file.
pub(crate) fn of_file(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((hex(&hasher.finalize()), bytes)),
            n => {
                hasher.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
}

/// A digest in lower-case hexadecimal digits.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

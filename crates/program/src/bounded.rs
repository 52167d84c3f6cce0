//! Reads small files that a user names, whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file, or a stream such as `/dev/stdin`.
///
/// # Errors
/// If it cannot be read, or has more than this number of bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let more = || io::Error::other(format!("it has more than {bytes_max} bytes; check the path"));
    read_up_to(path, bytes_max)?.ok_or_else(more)
}

/// As [`read`]; `None` if there are more bytes.
///
/// # Errors
/// If it cannot be read.
pub fn read_up_to(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

/// As [`read`], of UTF-8.
///
/// # Errors
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| io::Error::other("it is not UTF-8; check the path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused_by_its_size() {
        let error = read(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1000 bytes; check the path");
        assert!(read(Path::new("/dev/null"), 0).unwrap().is_empty());
    }
}

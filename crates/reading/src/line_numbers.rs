//! Determines the line numbers of a few bad lines of a file. The file is read again, up to the last of these
//! lines.
//!
//! This is necessary because threads read parts of files, so the number of preceding lines is unknown to a
//! thread.

use std::io::{self, Read};

use corpus::lines::LineReader;

/// Maximum number of bytes to read again.
const BYTES_MAX: u64 = 256 << 20;

/// The line numbers, from 1, of the lines that contain these ascending offsets; `None` if reading the file again would
/// take too long. An offset is a number of bytes before a line, a record or an element; in a compressed file, the number
/// of decompressed bytes.
pub(crate) fn line_numbers(
    content: impl Read,
    line_bytes_max: usize,
    offsets: &[u64],
) -> io::Result<Option<Vec<u64>>> {
    if offsets.last().is_none_or(|&last| last > BYTES_MAX) {
        return Ok(None);
    }
    let mut lines = LineReader::new(content.take(BYTES_MAX), line_bytes_max);
    let (mut numbers, mut n_lines) = (Vec::new(), 0);
    while numbers.len() < offsets.len() {
        if lines.next_line()?.is_none() {
            return Ok(None);
        }
        n_lines += 1;
        // Several elements of an array may be on one line.
        while offsets.get(numbers.len()).is_some_and(|&offset| offset < lines.offset()) {
            numbers.push(n_lines);
        }
    }
    Ok(Some(numbers))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_numbered_by_their_offsets_whatever_ends_them() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a\r\nb\rc\n\nd").unwrap();
        let numbers = |offsets: &[u64]| line_numbers(file.reopen().unwrap(), 100, offsets).unwrap();
        assert_eq!(numbers(&[0, 3, 5, 7, 8]), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(numbers(&[1, 3, 3, 4, 8]), Some(vec![1, 2, 2, 2, 5]), "within lines");
        assert_eq!(numbers(&[8]), Some(vec![5]));
        assert_eq!(numbers(&[9]), None, "the file became shorter");
        assert_eq!(numbers(&[BYTES_MAX + 1]), None);
    }
}

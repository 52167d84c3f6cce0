//! The file `words.txt` of a model folder: the words in order of their numbers, one per line, each with a space and its
//! count. A word may contain spaces, but no line break.

use std::io::{self, Write};
use std::path::Path;

use durable::sums::content;
use durable::{Error, Output, REMEDY, Result, Summary};

use super::COUNT_MAX;
use crate::{Dictionary, Names};

/// Writes the words of a dictionary.
///
/// # Errors
/// If the file cannot be written.
pub fn write(dictionary: &Dictionary, out: &mut Output<'_>) -> io::Result<()> {
    let mut line = Vec::new();
    for (word, number) in dictionary.words().iter().zip(0..) {
        line.clear();
        line.extend_from_slice(word);
        writeln!(line, " {}", dictionary.count(number))?;
        out.write_all(&line)?;
    }
    Ok(())
}

/// Reads words and counts from a file that matches its summary.
pub fn read(path: &Path, expected: &Summary) -> Result<(Names, Vec<u64>)> {
    let bytes = content(path, expected)?;
    let (mut words, mut counts) = (Names::default(), Vec::new());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let refused = || {
            let field = format!("line {}", counts.len() + 1);
            let found = format!("{:?}", String::from_utf8_lossy(line));
            let expected = format_args!("a word, a space and its count of at most {COUNT_MAX}");
            Error::unexpected(path, field, found, expected, REMEDY)
        };
        let line = line.strip_suffix(b"\n").ok_or_else(refused)?;
        let space = line.iter().rposition(|&byte| byte == b' ').filter(|&at| at > 0).ok_or_else(refused)?;
        let count = std::str::from_utf8(&line[space + 1..]).ok().and_then(|digits| digits.parse().ok());
        words.push(&line[..space]);
        counts.push(count.filter(|count| *count <= COUNT_MAX).ok_or_else(refused)?);
    }
    Ok((words, counts))
}

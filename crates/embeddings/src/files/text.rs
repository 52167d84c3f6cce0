//! Text: the format of word2vec and of fastText's `.vec`, and that of GloVe, which has no first line of sizes.
//!
//! ```text
//! 2 3
//! the 0.01 -1.25 0.5
//! film 1e-05 2 -0.125
//! ```
//!
//! The first line has the number of words and the dimension D. The last D fields of a line are the vector, and the rest is
//! the word, which may have spaces (`. . . 0.4 0.5 0.6`). Spaces at the end of a line have no meaning. Of equal words only
//! the first is found. Without the first line, D is the most frequent number of values at the end of the first lines, and
//! the last line must have a line break: otherwise a file that was cut off could not be told from a whole one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufWriter, Cursor, Read, Write};
use std::path::Path;

use classifiers::Names;
use classifiers::files::vectors;
use durable::new_file;

use super::content::unread;
use super::{Content, check_sizes, sizes};
use crate::array::is_sound;
use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::folder::DIM_MAX;

/// A value has at least a digit and a space.
const VALUE_BYTES_MIN: u64 = 2;
const LINE_BYTES_MAX: u64 = 64 << 20;
const BUFFER_BYTES: usize = 1 << 20;
/// Lines by which the dimension is judged. Further ones are not, from this number of bytes on.
const FIRST_LINES: usize = 100;
const FIRST_BYTES: usize = 1 << 20;
/// A word has fewer numbers in a row: more of them are the values of a line that has lost its break.
const NUMBERS_MAX: usize = 10;
const OTHER_SIZES: &str = "copy the file again, or correct the number of words on the first line";
const CUT_OFF: &str = "the file was cut off: copy it again";
pub(crate) const DECIMAL_COMMAS: &str =
    r"replace the commas: sed -E 's/([[:space:]][-+]?[0-9]*),([0-9])/\1.\2/g' FILE > NEW";

/// Writes values with five significant digits, as fastText does.
pub(super) fn write_short(path: &Path, embedding: &Embedding) -> Result<()> {
    let names = embedding.words.words().iter();
    let copy = |word: usize, vector: &mut [f32]| vector.copy_from_slice(embedding.vector(word as u32));
    Ok(vectors::write(path, embedding.dim, names, copy)?)
}

/// Writes the shortest digits of which the same values are read.
pub(super) fn write(path: &Path, embedding: &Embedding) -> Result<()> {
    let vectors = embedding.vectors.chunks_exact(embedding.dim);
    Ok(new_file(path, |file| {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        writeln!(out, "{} {}", embedding.n_words(), embedding.dim)?;
        for (word, vector) in embedding.words.words().iter().zip(vectors) {
            out.write_all(word)?;
            vector.iter().try_for_each(|value| write!(out, " {value}"))?;
            out.write_all(b"\n")?;
        }
        out.flush()
    })?)
}

/// Reads vectors.
pub(super) fn read(content: Content<'_>) -> Result<Embedding> {
    let (path, n_bytes) = (content.path, content.n_bytes);
    let mut from = content.into_reader();
    let mut first = Vec::new();
    for _ in 0..FIRST_LINES {
        let line = Read::take(&mut from, LINE_BYTES_MAX).read_until(b'\n', &mut first);
        let n = line.map_err(|error| unread(path, error))?;
        if n == 0 || first.len() >= FIRST_BYTES {
            break;
        }
    }
    let from = Cursor::new(&first).chain(from);
    let mut lines = Lines { from, path, line: Vec::new(), ended: false, at: 0 };
    lines.next()?;
    match sizes(&lines.line) {
        Some(found) => {
            let sizes = check_sizes(path, found, n_bytes, VALUE_BYTES_MIN, OTHER_SIZES)?;
            check_dim(path, &first, sizes[1])?;
            read_counted(&mut lines, sizes, n_bytes)
        }
        None => read_to_the_end(&mut lines, usual_n_values(&first)),
    }
}

/// Whether a line ends with a number, perhaps with a decimal comma.
pub(super) fn ends_with_value(line: &[u8]) -> bool {
    let (_, field) = last_field(line);
    std::str::from_utf8(field).is_ok_and(|field| field.replace(',', ".").parse::<f32>().is_ok())
}

/// Refuses a first line whose dimension is not that of most of the next lines: if theirs is greater, values would be read as
/// words.
fn check_dim(path: &Path, first: &[u8], dim: usize) -> Result<()> {
    let lines = || first.split(|&byte| byte == b'\n').zip(1..).skip(1);
    let n_equal = lines().filter(|(line, _)| n_values(line) == dim).count();
    let mut others = lines().filter(|(line, _)| ![0, dim].contains(&n_values(line)));
    match others.next() {
        Some((line, at)) if 1 + others.count() > n_equal => {
            let expected = format!("a word and {dim} finite values");
            let remedy = "correct the dimension on the first line, or write the file again";
            Err(Error::line(path, at, line, &expected, remedy))
        }
        _ => Ok(()),
    }
}

/// The most frequent number of values at the end of lines, of equally frequent ones the largest: with the smaller one, a
/// line that was cut off could be read.
fn usual_n_values(first: &[u8]) -> Option<usize> {
    let mut counts = BTreeMap::<usize, usize>::new();
    for line in first.split(|&byte| byte == b'\n') {
        *counts.entry(n_values(line)).or_default() += 1;
    }
    counts.remove(&0);
    counts.into_iter().max_by_key(|&(n, count)| (count, n)).map(|(n, _)| n)
}

/// Reads the vectors after a line of sizes.
fn read_counted<R: BufRead>(
    lines: &mut Lines<'_, R>,
    [n_words, dim]: [usize; 2],
    n_bytes: Option<u64>,
) -> Result<Embedding> {
    let mut words = Names::default();
    // The number of words is checked by the bytes of the file, if they are known.
    let mut values = Vec::with_capacity(n_bytes.map_or(0, |_| n_words * dim));
    for at in 1..=n_words {
        if !lines.next()? {
            return Err(Error::Line {
                path: lines.path.to_owned(),
                line: lines.at,
                found: "the end of the file".to_owned(),
                expected: format!("word {at} of {n_words}"),
                remedy: OTHER_SIZES,
            });
        }
        lines.parse(dim, &mut words, &mut values)?;
    }
    while lines.next()? {
        if !lines.line.trim_ascii().is_empty() {
            let expected = format!("the end of the file after {n_words} words");
            return Err(lines.refused(&expected, "correct the number of words on the first line"));
        }
    }
    Ok(Embedding::new(words, None, dim, values))
}

/// Reads the file without sizes whose first line was read.
fn read_to_the_end<R: BufRead>(lines: &mut Lines<'_, R>, dim: Option<usize>) -> Result<Embedding> {
    let Some(dim) = dim.filter(|&dim| dim <= DIM_MAX) else {
        if has_decimal_commas(&lines.line) {
            return Err(no_vector(lines.path, lines.at, &lines.line, None));
        }
        let expected = "two numbers, of the words and of the dimension, or a word and its values";
        return Err(lines.refused(expected, "pass a file of word vectors"));
    };
    let (mut words, mut values) = (Names::default(), Vec::new());
    loop {
        lines.parse(dim, &mut words, &mut values)?;
        if !lines.ended {
            return Err(lines.refused("a line break at the end of the file", CUT_OFF));
        }
        if !lines.next()? {
            return Ok(Embedding::new(words, None, dim, values));
        }
    }
}

/// The lines of a file, one at a time.
struct Lines<'a, R> {
    from: R,
    path: &'a Path,
    line: Vec<u8>,
    /// Whether the line had a line break.
    ended: bool,
    /// The number of the line.
    at: usize,
}

impl<R: BufRead> Lines<'_, R> {
    /// Reads the next line, without line break. `false` at the end.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.at += 1;
        let read = Read::take(&mut self.from, LINE_BYTES_MAX).read_until(b'\n', &mut self.line);
        let n = read.map_err(|error| unread(self.path, error))?;
        if n as u64 == LINE_BYTES_MAX {
            return Err(self.refused(&format!("at most {LINE_BYTES_MAX} bytes"), "check the file"));
        }
        self.ended = self.line.pop_if(|byte| *byte == b'\n').is_some();
        Ok(n > 0)
    }

    /// Appends the word and the values of the line.
    fn parse(&self, dim: usize, words: &mut Names, values: &mut Vec<f32>) -> Result<()> {
        let before = values.len();
        let mut word = &self.line[..];
        for _ in 0..dim {
            let (rest, field) = last_field(word);
            let value = value(field).ok_or_else(|| no_vector(self.path, self.at, &self.line, Some(dim)))?;
            values.push(value);
            word = rest;
        }
        if word.first().is_none_or(is_space) || has_values(word, dim) {
            return Err(no_vector(self.path, self.at, &self.line, Some(dim)));
        }
        values[before..].reverse();
        words.push(word);
        Ok(())
    }

    fn refused(&self, expected: &str, remedy: &'static str) -> Error {
        Error::line(self.path, self.at, &self.line, expected, remedy)
    }
}

/// The error of a line without a word and `dim` values, or without values if the dimension is unknown.
fn no_vector(path: &Path, at: usize, line: &[u8], dim: Option<usize>) -> Error {
    let expected = match dim {
        Some(dim) => format!("a word and {dim} finite values"),
        None => "a word and its values".to_owned(),
    };
    if has_decimal_commas(line) {
        let expected = format!("{expected} with decimal points, found decimal commas");
        return Error::line(path, at, line, &expected, DECIMAL_COMMAS);
    }
    Error::line(path, at, line, &expected, "write the file again")
}

/// Number of values at the end of a line, behind its first field.
fn n_values(line: &[u8]) -> usize {
    let (mut rest, mut n) = (line, 0);
    loop {
        let (before, field) = last_field(rest);
        if before.is_empty() || value(field).is_none() {
            return n;
        }
        (rest, n) = (before, n + 1);
    }
}

/// Whether a word has as many numbers in a row as another line has values.
fn has_values(word: &[u8], dim: usize) -> bool {
    let mut n = 0;
    word.split(is_space).skip(1).filter(|field| !field.is_empty()).any(|field| {
        n = if value(field).is_some() { n + 1 } else { 0 };
        n >= dim.min(NUMBERS_MAX)
    })
}

pub(crate) fn has_decimal_commas(line: &[u8]) -> bool {
    let (before, field) = last_field(line);
    let points: Vec<u8> = field.iter().map(|&byte| if byte == b',' { b'.' } else { byte }).collect();
    !before.is_empty() && value(field).is_none() && value(&points).is_some()
}

/// A line without its last field, and this field. Spaces around them are removed.
fn last_field(line: &[u8]) -> (&[u8], &[u8]) {
    let trimmed = |bytes: &'_ [u8]| bytes.iter().rposition(|byte| !is_space(byte)).map_or(0, |at| at + 1);
    let line = &line[..trimmed(line)];
    let (before, field) = line.split_at(line.iter().rposition(is_space).map_or(0, |at| at + 1));
    (&before[..trimmed(before)], field)
}

/// A finite value that is not too large.
fn value(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok().filter(is_sound)
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

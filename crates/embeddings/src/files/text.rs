//! Text: the format of word2vec and of fastText's `.vec`, and that of GloVe, which has no first line of sizes.
//!
//! ```text
//! 2 3
//! the 0.01 -1.25 0.5
//! film 1e-05 2 -0.125
//! ```
//!
//! The first line has the number of words and the dimension. A word has no spaces. Spaces at the end of a line have no
//! meaning. Of equal words only the first is found. Without the first line, the first word has the dimension, and the last
//! line must have a line break: otherwise a file that was cut off could not be told from a whole one.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use durable::{At, new_file};
use ngrams::Names;
use ngrams::files::vectors;

use super::{check_sizes, sizes};
use crate::array::is_sound;
use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::folder::DIM_MAX;

/// A value has at least a digit and a space.
const VALUE_BYTES_MIN: u64 = 2;
const LINE_BYTES_MAX: u64 = 64 << 20;
const BUFFER_BYTES: usize = 1 << 20;
const CUT_OFF: &str = "the file was cut off: copy it again";

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
pub(super) fn read(path: &Path) -> Result<Embedding> {
    let file = File::open(path).at(path, "open it")?;
    let n_bytes = file.metadata().at(path, "read its metadata")?.len();
    let mut lines = Lines {
        from: BufReader::with_capacity(BUFFER_BYTES, file),
        path,
        line: Vec::new(),
        ended: false,
        at: 0,
    };
    lines.next()?;
    match sizes(&lines.line) {
        Some(found) => read_counted(&mut lines, check_sizes(path, found, n_bytes, VALUE_BYTES_MIN)?),
        None => read_to_the_end(&mut lines),
    }
}

/// Reads the vectors after a line of sizes.
fn read_counted<R: BufRead>(lines: &mut Lines<'_, R>, [n_words, dim]: [usize; 2]) -> Result<Embedding> {
    let mut words = Names::default();
    let mut values = Vec::with_capacity(n_words * dim);
    for _ in 0..n_words {
        if !lines.next()? {
            let expected = format!("a word and {dim} values");
            return Err(lines.refused(&expected, CUT_OFF));
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

/// Reads the vectors of a file without sizes, whose first line was read.
fn read_to_the_end<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Embedding> {
    let dim = lines.fields().count() - 1;
    if !(1..=DIM_MAX).contains(&dim) {
        let expected = "two numbers, of the words and of the dimension, or a word and its values";
        return Err(lines.refused(expected, "pass a file of word vectors"));
    }
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
        let n = read.at(self.path, "read it")?;
        if n as u64 == LINE_BYTES_MAX {
            return Err(self.refused(&format!("at most {LINE_BYTES_MAX} bytes"), "check the file"));
        }
        self.ended = self.line.pop_if(|byte| *byte == b'\n').is_some();
        Ok(n > 0)
    }

    /// Appends the word and the values of the line.
    fn parse(&self, dim: usize, words: &mut Names, values: &mut Vec<f32>) -> Result<()> {
        let expected = || format!("a word and {dim} finite values");
        let before = values.len();
        let mut fields = self.fields();
        let word = fields.next().unwrap_or_default();
        let parsed = fields.map(|field| {
            let value = std::str::from_utf8(field).ok().and_then(|digits| digits.parse().ok());
            value.filter(is_sound)
        });
        for value in parsed {
            // A line with too many values is refused before it fills the memory.
            match value {
                Some(value) if values.len() < before + dim => values.push(value),
                _ => return Err(self.refused(&expected(), "write the file again")),
            }
        }
        if word.is_empty() || values.len() != before + dim {
            return Err(self.refused(&expected(), "write the file again"));
        }
        words.push(word);
        Ok(())
    }

    /// The word, which may be empty, and the fields after it.
    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let mut fields = self.line.split(|&byte| matches!(byte, b' ' | b'\t' | b'\r'));
        fields.next().into_iter().chain(fields.filter(|field| !field.is_empty()))
    }

    fn refused(&self, expected: &str, remedy: &'static str) -> Error {
        Error::line(self.path, self.at, &self.line, expected, remedy)
    }
}

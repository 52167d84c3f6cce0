//! The binary format of word2vec.
//!
//! ```text
//! text   the number of words, a space, the dimension D, LF
//! words  V × (the word, a space, D × f32 little-endian, LF)
//! ```
//!
//! Some programs omit the LF behind a vector, so it is optional.

use std::io::{BufWriter, Write};
use std::path::Path;

use classifiers::Names;
use durable::{Source, new_file};

use super::{Content, REMEDY, check_sizes, sizes, text};
use crate::array::VALUE_LIMIT;
use crate::embedding::Embedding;
use crate::error::Result;

const VALUE_BYTES: u64 = 4;
const BUFFER_BYTES: usize = 1 << 20;

/// Whether a file begins with the line of sizes, and then neither with a line of text that ends with a value nor with
/// printable text.
pub(super) fn is_binary(beginning: &[u8]) -> bool {
    let Some(end) = beginning.iter().position(|&byte| byte == b'\n') else { return false };
    if sizes(&beginning[..end]).is_none() {
        return false;
    }
    let rest = &beginning[end + 1..];
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_printable = |text: &str| !text.chars().any(|c| c.is_ascii_control() && !c.is_ascii_whitespace());
    !text::ends_with_value(line) && !std::str::from_utf8(rest).is_ok_and(is_printable)
}

/// Writes vectors.
pub(super) fn write(path: &Path, embedding: &Embedding) -> Result<()> {
    let vectors = embedding.vectors.chunks_exact(embedding.dim);
    Ok(new_file(path, |file| {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        writeln!(out, "{} {}", embedding.n_words(), embedding.dim)?;
        for (word, vector) in embedding.words.words().iter().zip(vectors) {
            out.write_all(word)?;
            out.write_all(b" ")?;
            vector.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))?;
            out.write_all(b"\n")?;
        }
        out.flush()
    })?)
}

/// Reads vectors.
pub(super) fn read(content: Content<'_>) -> Result<Embedding> {
    let path = content.path;
    let (file, n_bytes) = content.into_file()?;
    let mut source = Source::new(file, n_bytes, path, REMEDY);
    let mut word = Vec::new();
    source.until(b'\n', &mut word)?;
    let Some(found) = sizes(&word) else {
        let found = format!("{:?}", String::from_utf8_lossy(&word));
        return Err(source.unexpected("the first line", found, "two numbers").into());
    };
    let [n_words, dim] = check_sizes(path, found, Some(n_bytes), VALUE_BYTES, REMEDY)?;
    let mut words = Names::default();
    let mut vectors = Vec::with_capacity(n_words * dim);
    for at in 0..n_words {
        word.clear();
        let is_terminated = source.until(b' ', &mut word)?;
        let name = word.trim_ascii_start();
        if !is_terminated || name.is_empty() {
            let found = if is_terminated { "empty" } else { "not terminated" };
            return Err(source.unexpected(format_args!("word {at}"), found, "a word and a space").into());
        }
        words.push(name);
        vectors.extend(source.floats(format_args!("vector {at}"), dim as u64, VALUE_LIMIT)?);
    }
    let (left, mut rest) = (source.left(), Vec::new());
    source.until(b'\n', &mut rest)?;
    if !rest.is_empty() {
        return Err(source.unexpected("the number of bytes after the last vector", left, 0).into());
    }
    source.end("the last vector")?;
    Ok(Embedding::new(words, None, dim, vectors))
}

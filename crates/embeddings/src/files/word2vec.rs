//! The binary format of word2vec.
//!
//! ```text
//! text   the number of words, a space, the dimension D, LF
//! words  V × (the word, a space, D × f32 little-endian, LF)
//! ```
//!
//! Some programs omit the LF behind a vector, so it is optional.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use durable::{At, Source, new_file};
use ngrams::Names;

use super::{REMEDY, check_sizes, sizes};
use crate::array::VALUE_LIMIT;
use crate::embedding::Embedding;
use crate::error::Result;

const VALUE_BYTES: u64 = 4;
const BUFFER_BYTES: usize = 1 << 20;

/// Whether a file begins with the first line, a word and bytes that are not the digits of a number.
pub(super) fn is_binary(beginning: &[u8]) -> bool {
    let Some(end) = beginning.iter().position(|&byte| byte == b'\n') else { return false };
    let Some([_, dim]) = sizes(&beginning[..end]) else { return false };
    let rest = &beginning[end + 1..];
    let Some(space) = rest.iter().position(|&byte| byte == b' ') else { return false };
    let is_of_text =
        |byte: &u8| byte.is_ascii_digit() || b" \t\r\n+-.eEnaifty".contains(&byte.to_ascii_lowercase());
    let values = &rest[space + 1..];
    let n = values.len().min(usize::try_from(dim.saturating_mul(VALUE_BYTES)).unwrap_or(usize::MAX));
    !values[..n].iter().take_while(|&&byte| byte != b'\n').all(is_of_text)
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
pub(super) fn read(path: &Path) -> Result<Embedding> {
    let file = File::open(path).at(path, "open it")?;
    let n_bytes = file.metadata().at(path, "read its metadata")?.len();
    let mut source = Source::new(BufReader::with_capacity(BUFFER_BYTES, file), n_bytes, path, REMEDY);
    let mut word = Vec::new();
    source.until(b'\n', &mut word)?;
    let Some(found) = sizes(&word) else {
        let found = format!("{:?}", String::from_utf8_lossy(&word));
        return Err(source.unexpected("the first line", found, "two numbers").into());
    };
    let [n_words, dim] = check_sizes(path, found, n_bytes, VALUE_BYTES)?;
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
    let mut rest = Vec::new();
    source.until(b'\n', &mut rest)?;
    source.end("the last vector")?;
    Ok(Embedding::new(words, None, dim, vectors))
}

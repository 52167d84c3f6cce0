//! An array of NumPy `[V, D]`, and the words in a text file of the same name with the extension `.txt`, one per line.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use classifiers::Names;
use durable::{Error, npy};

use super::{Content, REMEDY};
use crate::array;
use crate::embedding::Embedding;
use crate::error::Result;

const WORDS_BYTES_MAX: u64 = 4 << 30;

/// Writes the words, then the array. If the array cannot be written, the words are removed.
pub(super) fn write(path: &Path, embedding: &Embedding) -> Result<()> {
    durable::check_free(path)?;
    let list = path.with_extension("txt");
    durable::new_file(&list, |file| {
        let mut out = BufWriter::new(file);
        embedding
            .words
            .words()
            .iter()
            .try_for_each(|word| out.write_all(word).and_then(|()| out.write_all(b"\n")))?;
        out.flush()
    })?;
    let written = durable::new_file(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&npy::header(embedding.n_words(), embedding.dim))?;
        embedding.vectors.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))?;
        out.flush()
    });
    if written.is_err() {
        // The repeated command would be refused because of them.
        let _ = fs::remove_file(&list);
    }
    Ok(written?)
}

/// Reads the words and the array.
pub(super) fn read(content: &Content<'_>) -> Result<Embedding> {
    let path = content.path;
    if content.n_bytes.is_none() {
        let (found, expected) = ("a compressed array of NumPy", "an array that is not compressed");
        return Err(Error::unexpected(path, "the file", found, expected, "decompress it first").into());
    }
    let ([n_words, dim], vectors) = array::read(path, REMEDY)?;
    let list = path.with_extension("txt");
    let bytes = match Content::open(&list) {
        Err(crate::Error::File(Error::Missing { path, .. })) => {
            return Err(Error::Missing { path, expected: "the words of the array, one per line" }.into());
        }
        opened => opened?.into_bytes(WORDS_BYTES_MAX)?,
    };
    let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|&byte| byte == b'\n');
    let words: Names = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
    if words.len() != n_words {
        let expected = format!("{n_words}, the rows of {}", path.display());
        return Err(Error::unexpected(&list, "the number of words", words.len(), expected, REMEDY).into());
    }
    Ok(Embedding::new(words, None, dim, vectors))
}

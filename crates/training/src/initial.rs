//! Initial weights: word vectors of some words, and the digest that identifies what they were read from.

use std::path::Path;

use durable::sha256;
use durable::sums::SUMS;
use program::exit::{Exit, Failed};
use report::whole;
use runs::training::MODEL;

use crate::error::{Error, Result};
use crate::tell::tell;

/// The vectors of words, one after the other.
#[derive(Debug)]
pub struct WordVectors {
    /// The numbers of the words that have a vector.
    pub numbers: Vec<u32>,
    /// `[numbers, dim]`
    pub values: Vec<f32>,
}

/// Reads the vectors of words, by their numbers, from a path of any format. `flag` is that of the path, and `dim_flag` that
/// of the dimension. `of` is what has the words. Words may lack a vector, but not all of them.
pub fn word_vectors<'w>(
    path: &Path,
    words: impl ExactSizeIterator<Item = &'w [u8]>,
    dim: usize,
    [flag, dim_flag, of]: [&str; 3],
) -> Result<WordVectors> {
    let vectors = embeddings::files::read(path)?;
    if vectors.dim != dim {
        return Err(Error::setting(
            flag,
            format!("{}, vectors of {} dimensions", path.display(), vectors.dim),
            format!("vectors of {dim} dimensions, or {dim_flag} {}", vectors.dim),
        ));
    }
    let n_words = words.len() as u64;
    let (mut numbers, mut values) = (Vec::new(), Vec::new());
    for (word, number) in words.zip(0..) {
        if let Some(vector) = vectors.vector_of(word) {
            numbers.push(number);
            values.extend_from_slice(&vector);
        }
    }
    if numbers.is_empty() {
        let found = format!("{flag} has no vector for any word of the {of}");
        let message = format!("{}: {found}; check that they are of the same language", path.display());
        return Err(Failed::new(Exit::BadInput, message).into());
    }
    let (n_found, n_words) = (whole(numbers.len() as u64), whole(n_words));
    tell(&format!("{n_found} of {n_words} words of the vocabulary have a vector in {}", path.display()));
    Ok(WordVectors { numbers, values })
}

/// The SHA-256 of a file, or of the list of digests of a model folder or of the one in a training folder.
pub fn digest(path: &Path) -> Result<String> {
    let sums = [path.join(SUMS), path.join(MODEL).join(SUMS)].into_iter().find(|sums| sums.is_file());
    let file = sums.unwrap_or_else(|| path.to_owned());
    sha256::of_file(&file).map_err(|source| Error::io(&file, source))
}

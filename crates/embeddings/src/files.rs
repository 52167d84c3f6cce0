//! Files of word vectors of this program and of others. The content of a file selects the format in which it is read,
//! and its extension the one in which it is written.
//!
//! | written as | format | read by |
//! |---|---|---|
//! | no extension | the folder of [`crate::folder`] | this program |
//! | `.vec` | text, five significant digits | fastText, gensim |
//! | `.txt` | text of word2vec, digits that give the same values | gensim: `load_word2vec_format(F)` |
//! | `.w2v` | binary format of word2vec | gensim: `load_word2vec_format(F, binary=True)` |
//! | `.bin` | model of fastText, with character n-grams | fastText, gensim: `load_facebook_vectors(F)` |
//! | `.npy` | array of NumPy, and the words as `.txt` beside it | `numpy.load` |
//!
//! A binary file of word2vec is also read under the name `.bin`. Files that are compressed are decompressed, except `.npy`.

mod content;
mod fasttext;
mod numpy;
#[cfg(test)]
mod tests;
mod text;
mod word2vec;

use std::path::{Path, PathBuf};

use classifiers::Dictionary;
use classifiers::files::{ModelKind, bin};
use durable::npy;
use serde_json::{Value, json};

pub(crate) use self::content::Content;
pub(crate) use self::text::{DECIMAL_COMMAS, has_decimal_commas};
use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::folder;

/// A file that only the folder of an LSTM has.
const OF_LSTM: &str = "vocabulary.txt";
const REMEDY: &str = "check that this is a file of word vectors, and copy it again";

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The folder of a model.
    Folder,
    /// Text with five significant digits, as fastText writes it.
    Vec,
    /// Text with all digits.
    Text,
    /// The binary format of word2vec.
    Word2Vec,
    /// A model of fastText.
    FastText,
    /// An array of NumPy with a list of words.
    Numpy,
}

impl Format {
    /// The extensions of [`Format::of_name`], for messages.
    pub const EXTENSIONS: &str = ".vec, .txt, .w2v, .bin or .npy, or a new folder without an extension";

    /// The format in which a file of this name is written.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension() {
            None => Some(Self::Folder),
            Some(extension) => match extension.to_str()? {
                "vec" => Some(Self::Vec),
                "txt" => Some(Self::Text),
                "w2v" => Some(Self::Word2Vec),
                "bin" => Some(Self::FastText),
                "npy" => Some(Self::Numpy),
                _ => None,
            },
        }
    }

    /// The format of a file that begins with these bytes.
    fn of_beginning(beginning: &[u8]) -> Self {
        if beginning.starts_with(&bin::MAGIC.to_le_bytes()) {
            Self::FastText
        } else if beginning.starts_with(npy::MAGIC) {
            Self::Numpy
        } else if word2vec::is_binary(beginning) {
            Self::Word2Vec
        } else {
            Self::Text
        }
    }
}

/// Reads word vectors from a model folder, a training folder that contains it, or a file of any format.
pub fn read(path: &Path) -> Result<Embedding> {
    match path.is_dir() {
        true => folder::read(&word_vectors_folder(path)?),
        false => Ok(read_with_outputs(path)?.0),
    }
}

/// Reads word vectors and, if the format has them, output vectors `[V, D]`.
pub fn read_with_outputs(path: &Path) -> Result<(Embedding, Option<Vec<f32>>)> {
    if path.is_dir() {
        return folder::read_with_outputs(&word_vectors_folder(path)?);
    }
    let content = Content::open(path)?;
    match Format::of_beginning(&content.beginning) {
        Format::FastText => fasttext::read(content),
        Format::Numpy => Ok((numpy::read(&content)?, None)),
        Format::Word2Vec => Ok((word2vec::read(content)?, None)),
        Format::Vec | Format::Text | Format::Folder => Ok((text::read(content)?, None)),
    }
}

/// Whether a path is a folder of word vectors, or a training folder that contains one.
pub fn is_folder(path: &Path) -> bool {
    folder::is_folder(&model_folder(path))
}

/// Writes word vectors in a format. An existing path is refused. On return, the file is durable.
///
/// # Errors
/// If the format has no place for a word.
pub fn write(path: &Path, format: Format, embedding: &Embedding, outputs: Option<&[f32]>) -> Result<()> {
    if format != Format::Folder {
        check_words(path, &embedding.words, format)?;
    }
    match format {
        Format::Folder => folder::write_embedding(path, embedding, outputs, settings()),
        Format::Vec => text::write_short(path, embedding),
        Format::Text => text::write(path, embedding),
        Format::Word2Vec => word2vec::write(path, embedding),
        Format::FastText => fasttext::write(path, embedding, outputs),
        Format::Numpy => numpy::write(path, embedding),
    }
}

/// The settings of vectors whose training is unknown.
fn settings() -> Value {
    json!({})
}

/// The model folder of a training folder; any other folder itself.
fn model_folder(path: &Path) -> PathBuf {
    let of_training = path.join("model");
    if !path.join(folder::CONFIG).exists() && of_training.is_dir() { of_training } else { path.to_owned() }
}

/// The model folder, which is not of a classifier.
fn word_vectors_folder(path: &Path) -> Result<PathBuf> {
    let folder = model_folder(path);
    let train = "train word vectors with `vectors train`";
    let (found, remedy) = match classifiers::files::kind(&folder) {
        Some(ModelKind::FastText) => {
            let export = format!("export its words with `ngrams export {} --out WORDS.vec`", path.display());
            ("an n-gram model", export)
        }
        Some(ModelKind::Linear) => (
            "a linear n-gram model, which has no word vectors",
            format!("{train}, or a model that has some with `ngrams train --model fasttext`"),
        ),
        None if folder.join(OF_LSTM).is_file() => ("an LSTM model", train.to_owned()),
        None => return Ok(folder),
    };
    Err(Error::OtherModel { path: path.to_owned(), found, remedy })
}

/// Refuses words that a file of this format cannot separate.
fn check_words(path: &Path, words: &Dictionary, format: Format) -> Result<()> {
    let separates = |byte: u8| match format {
        Format::Numpy => matches!(byte, b'\n' | b'\r'),
        _ => matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c | 0),
    };
    match words.words().iter().find(|word| word.is_empty() || word.iter().copied().any(separates)) {
        None => Ok(()),
        Some(word) => Err(durable::Error::Unstorable {
            path: path.to_owned(),
            field: "a word",
            found: format!("{:?}", String::from_utf8_lossy(word)),
            allowed: "words of at least one byte without white space and NUL".to_owned(),
            remedy: "write a model folder: omit the extension",
        }
        .into()),
    }
}

/// The number of words and the dimension, if a file of `n_bytes` has room for them; it is unknown of a compressed one. A
/// vector has at least `vector_bytes` per value, and a word at least two bytes.
fn check_sizes(
    path: &Path,
    [n_words, dim]: [u64; 2],
    n_bytes: Option<u64>,
    vector_bytes: u64,
    remedy: &'static str,
) -> Result<[usize; 2]> {
    let refused = |field: &str, found: u64, expected: String| {
        Err(durable::Error::unexpected(path, field, found, expected, remedy).into())
    };
    let (words_max, dim_max) = (u64::from(u32::MAX) - 2, folder::DIM_MAX as u64);
    if !(1..=dim_max).contains(&dim) {
        return refused("the dimension", dim, format!("1 to {dim_max}"));
    }
    // The last word may lack its line break.
    let fits = |n_bytes: u64| words_max.min((n_bytes + 1) / (dim * vector_bytes + 2));
    let n_max = n_bytes.map_or(words_max, fits);
    if !(1..=n_max).contains(&n_words) {
        let reason =
            n_bytes.map_or_else(String::new, |n_bytes| format!(", because the file has {n_bytes} bytes"));
        return refused("the number of words", n_words, format!("1 to {n_max}{reason}"));
    }
    Ok([n_words as usize, dim as usize])
}

/// The number of words and the dimension of a first line.
fn sizes(line: &[u8]) -> Option<[u64; 2]> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let sizes = [fields.next()?.parse().ok()?, fields.next()?.parse().ok()?];
    fields.next().is_none().then_some(sizes)
}

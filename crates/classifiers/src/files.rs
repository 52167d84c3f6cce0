//! Files of n-gram models: the folder of a model of this crate ([`folder`]), and the files of the fastText program
//! ([`bin`], [`vectors`]), also of word vectors.
//!
//! Files are hostile: a size is compared with the bytes of the file before memory is allocated for it, and an error
//! states the file, the field, the value found and the expected ones.

pub mod bin;
mod fasttext;
pub mod folder;
mod linear;
mod npz;
#[doc(hidden)]
pub mod tensors;
#[cfg(test)]
mod tests;
pub mod vectors;
pub mod words_file;

pub use durable::{Error, Result};
pub use fasttext::{to_program, write_bin};
pub use folder::{ModelKind, check_place, family, is_folder, kind};

use std::path::Path;

use durable::NewFolder;

use crate::linear::LinearModel;
use crate::{Dictionary, Features, Model};

/// Maximum count of a word or label; larger ones are damage. The count of a node of the label tree that is not built
/// yet is larger.
const COUNT_MAX: u64 = 1_000_000_000_000;
/// Bounds the memory for the character n-grams of all words: 4 GiB.
const N_SUBWORDS_MAX: usize = 1 << 30;

/// A model to be written.
#[derive(Clone, Copy, Debug)]
pub enum ModelRef<'a> {
    /// The mean of embeddings with a linear layer.
    FastText(&'a crate::fasttext::FastTextModel),
    /// Weighted n-grams.
    Linear(&'a LinearModel),
}

impl<'a> ModelRef<'a> {
    fn written(self) -> folder::Written<'a> {
        match self {
            Self::FastText(model) => fasttext::written(model),
            Self::Linear(model) => linear::written(model),
        }
    }
}

/// Writes the folder of a model. An existing path is refused. On return, the folder is durable.
pub fn write(folder: &Path, model: ModelRef<'_>) -> Result<()> {
    folder::write(folder, model.written())
}

/// Writes a model as arrays of NumPy into a new file. On return, it is durable.
pub fn write_npz(path: &Path, model: ModelRef<'_>) -> Result<()> {
    npz::write(path, npz::arrays(path, model.written())?)
}

/// Writes a model as arrays of NumPy into a folder.
pub fn add_npz(folder: &mut NewFolder, name: &str, model: ModelRef<'_>) -> Result<()> {
    let arrays = npz::arrays(&folder.named(name), model.written())?;
    folder.put(name, |out| npz::archive(arrays, out))
}

/// The settings of a model as JSON, and its words, one per line, as in [`write_npz`].
pub fn described(model: ModelRef<'_>) -> (String, Vec<u8>) {
    let written = model.written();
    (npz::config(&written), npz::words(&written))
}

/// Writes the files of weighted n-grams into the folder of a model that they are a part of.
pub fn add_part(folder: &mut NewFolder, model: &LinearModel) -> Result<()> {
    linear::add(folder, model)
}

/// Reads the weighted n-grams that are a part of the model in this folder, after verifying the digests of their files;
/// `None` if there are none.
pub fn read_part(folder: &Path) -> Result<Option<LinearModel>> {
    let Some(found) = folder::Folder::open_part(folder)? else { return Ok(None) };
    match found.kind {
        ModelKind::Linear => linear::read(&found).map(Some),
        ModelKind::FastText => Err(found.refused("kind", "fasttext", "linear")),
    }
}

/// Reads the folder of a model, after verifying the digests of its files.
pub fn read(folder: &Path) -> Result<Model> {
    let found = folder::Folder::open(folder)?;
    match found.kind {
        ModelKind::FastText => fasttext::read(found).map(|model| Model::FastText(Box::new(model))),
        ModelKind::Linear => linear::read(&found).map(|model| Model::Linear(Box::new(model))),
    }
}

/// An upper bound of the number of character n-grams of all words.
fn n_subwords(features: Features, dictionary: &Dictionary) -> usize {
    let lengths =
        (features.characters_max as usize + 1).saturating_sub(features.characters_min.max(1) as usize);
    (dictionary.words().n_bytes() + 2 * dictionary.n_words()).saturating_mul(lengths)
}

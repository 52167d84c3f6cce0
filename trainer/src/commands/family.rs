//! Detects the family of a saved model, so that a command runs the code of this family. Flags of the other families are
//! refused.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed};
use program::location::Location;
use store::S3Options;

use super::model;
use crate::arguments::Given;
use crate::error::Result;
use crate::places;

/// Flags that have no effect without an n-gram model.
const OF_NGRAMS: [&str; 17] = [
    "format",
    "preset",
    "text_field",
    "rating_field",
    "class_ratings",
    "rating_scale",
    "unrated",
    "with_title",
    "delimiter",
    "quote",
    "encoding",
    "label_field",
    "positive_from",
    "labels",
    "top",
    "threshold",
    "rows",
];
/// Flags that have no effect with an n-gram model.
const OF_TENSORS: [&str; 6] = ["device", "compute", "batch", "loaders", "local_rank", "force"];

/// The local path of an n-gram model: a model folder or a file of the fastText program. `None` for another model.
/// Errors: a flag that was passed has no effect with the family of the model. `shared` are flags that the command has
/// for all families.
pub(super) fn ngrams(
    model: &Location,
    s3: &S3Options,
    given: &Given,
    shared: &[&str],
) -> Result<Option<PathBuf>> {
    let path = places::weights(model, s3)?;
    let path = if path.is_dir() { model::folder_at(&path, "MODEL")? } else { path };
    if embeddings::files::is_folder(&path) {
        let path = path.display();
        let remedy =
            format!("train one with `trainer fit DATASET --init-from {path}`, or use `trainer vectors`");
        let message = format!("{path}: word vectors, expected a classifier; {remedy}");
        return Err(Failed::new(Exit::Settings, message).into());
    }
    let is_of_ngrams = if path.is_dir() { ::ngrams::files::is_folder(&path) } else { is_of_fasttext(&path) };
    let (foreign, expected): (&[&str], _) = match is_of_ngrams {
        true => (&OF_TENSORS, "an LSTM"),
        false => (&OF_NGRAMS, "an n-gram model"),
    };
    let foreign: Vec<&str> = foreign.iter().copied().filter(|flag| !shared.contains(flag)).collect();
    match given.first_of(&foreign) {
        None => Ok(is_of_ngrams.then_some(path)),
        // What is not there has no family.
        Some(_) if !path.exists() => model::folder_at(&path, "MODEL").map(Some),
        Some(flag) => {
            let message =
                format!("{flag} has no effect with the model {model}, expected {expected}; omit {flag}");
            Err(Failed::new(Exit::Usage, message).into())
        }
    }
}

/// Whether a file begins as the models of the fastText program do.
pub(super) fn is_of_fasttext(path: &Path) -> bool {
    let mut begin = [0; 4];
    // A named pipe must not be opened twice.
    let is_read = path.is_file() && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok();
    is_read && begin == MAGIC.to_le_bytes()
}

/// The magic number of the fastText program.
const MAGIC: i32 = 793_712_314;

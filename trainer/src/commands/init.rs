//! Initial weights from `--init-from`: the weights of a model folder, or word vectors.

use std::path::Path;

use batches::Rows;
use dataset::vocabulary::{FIRST_WORD, Vocabulary};
use program::location::Location;
use runs::saved;
use store::S3Options;
use tch::Tensor;
use training::initial::word_vectors;
use training::places;

use crate::error::Result;
use crate::families::{Model, begin_with};

/// Reads initial weights: a model folder, a training folder, or word vectors in any format.
pub(crate) fn from(
    weights: &Location,
    embedding_std: Option<f64>,
    s3: &S3Options,
    model: &mut Model,
    rows: &Rows,
) -> Result<()> {
    let path = &places::weights(weights, s3, "--init-from")?;
    if !path.exists() {
        return Err(training::Error::unexpected(
            path.display(),
            "--init-from is missing: no such file or folder",
            "a model folder, a training folder, or word vectors",
        )
        .into());
    }
    if embeddings::files::is_folder(path) {
        return from_vectors(path, model, rows.vocabulary());
    }
    if path.is_dir() {
        if let Some(std) = embedding_std {
            let expected = "no --embedding-std: --init-from is a model, which has all embeddings";
            return Err(training::Error::setting("--embedding-std", std, expected).into());
        }
        let path = &training::model::folder_at(path, "--init-from")?;
        if training::model::is_of_ngrams(path) {
            return Err(training::Error::setting(
                "--init-from",
                format!("{}, a model of n-grams", path.display()),
                "a model of `trainer fit` or `pretrain`, or word vectors",
            )
            .into());
        }
        let saved = saved::read(path)?;
        if saved.vocabulary != rows.vocabulary().words {
            let (theirs, ours) = (saved.vocabulary.len(), rows.vocabulary().words.len());
            let dataset = rows.name().display().to_string();
            return Err(training::Error::setting(
                "--init-from",
                format!("{}, a model with another vocabulary ({theirs} words)", path.display()),
                format!(
                    "a model with the vocabulary of {dataset} ({ours} words); make {dataset} with `sentimill \
                     --vocabulary` and the dataset of that model"
                ),
            )
            .into());
        }
        return begin_with(&saved, path, model);
    }
    from_vectors(path, model, rows.vocabulary())
}

/// Reads word vectors. Words of the vocabulary without a vector keep random embeddings.
fn from_vectors(path: &Path, model: &mut Model, vocabulary: &Vocabulary) -> Result<()> {
    let width = model.lstm().settings().embedding as usize;
    let found =
        word_vectors(path, vocabulary.words.iter(), width, ["--init-from", "--embedding", "dataset"])?;
    let rows: Vec<i64> =
        found.numbers.iter().map(|&number| i64::from(number) + i64::from(FIRST_WORD)).collect();
    let embedding = model.lstm().embedding();
    let values = Tensor::from_slice(&found.values)
        .view([rows.len() as i64, width as i64])
        .to_kind(embedding.kind())
        .to_device(embedding.device());
    let rows = Tensor::from_slice(&rows).to_device(embedding.device());
    tch::no_grad(|| embedding.shallow_clone().f_index_copy_(0, &rows, &values).map(drop))?;
    Ok(())
}

//! Initial weights from `--init-from`: the weights of a model folder, or word vectors.

use std::path::Path;

use batches::Rows;
use dataset::vocabulary::{FIRST_WORD, Vocabulary};
use program::exit::{Exit, Failed};
use program::location::Location;
use report::whole;
use runs::saved;
use store::S3Options;
use tch::Tensor;
use training::places;
use training::tell::tell;

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
    let vectors = embeddings::files::read(path)?;
    let width = model.lstm().settings().embedding as usize;
    if vectors.dim != width {
        return Err(training::Error::setting(
            "--init-from",
            format!("{}, vectors of {} dimensions", path.display(), vectors.dim),
            format!("vectors of {width} dimensions, or --embedding {}", vectors.dim),
        )
        .into());
    }
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for (word, id) in vocabulary.words.iter().zip(i64::from(FIRST_WORD)..) {
        if let Some(vector) = vectors.vector_of(word) {
            rows.push(id);
            values.extend_from_slice(&vector);
        }
    }
    if rows.is_empty() {
        let found = "--init-from has no vector for any word of the dataset";
        let message = format!("{}: {found}; check that they are of the same language", path.display());
        return Err(Failed::new(Exit::BadInput, message).into());
    }
    let (n_found, n_words) = (whole(rows.len() as u64), whole(vocabulary.words.len() as u64));
    tell(&format!("{n_found} of {n_words} words of the vocabulary have a vector in {}", path.display()));
    let embedding = model.lstm().embedding();
    let values = Tensor::from_slice(&values)
        .view([rows.len() as i64, width as i64])
        .to_kind(embedding.kind())
        .to_device(embedding.device());
    let rows = Tensor::from_slice(&rows).to_device(embedding.device());
    tch::no_grad(|| embedding.shallow_clone().f_index_copy_(0, &rows, &values).map(drop))?;
    Ok(())
}

//! Initial weights from `--init-from`: the weights of a model folder, or word vectors.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use batches::Rows;
use dataset::vocabulary::{FIRST_WORD, Vocabulary};
use program::location::Location;
use store::S3Options;
use tch::Tensor;

use crate::error::{Error, Result};
use crate::families::{Model, begin_with};
use crate::places;
use runs::saved;

/// Reads initial weights: a model folder, a training folder, or a text file of word vectors.
pub(crate) fn from(weights: &Location, s3: &S3Options, model: &mut Model, rows: &Rows) -> Result<()> {
    let path = &places::weights(weights, s3)?;
    if !path.exists() {
        return Err(Error::Unexpected {
            path: path.to_owned(),
            found: "--init-from is missing: no such file or folder".to_owned(),
            expected: "a model folder, a training folder, or a file of word vectors (.vec)".to_owned(),
        });
    }
    if path.is_dir() {
        let path = &super::model::folder_at(path, "--init-from")?;
        let saved = saved::read(path)?;
        if saved.vocabulary != rows.vocabulary().words {
            let (theirs, ours) = (saved.vocabulary.len(), rows.vocabulary().words.len());
            let dataset = rows.name().display().to_string();
            return Err(Error::Setting {
                setting: "--init-from",
                found: format!("{}, a model with another vocabulary ({theirs} words)", path.display()),
                expected: format!(
                    "a model with the vocabulary of {dataset} ({ours} words); make {dataset} with `sentimill \
                     --vocabulary` and the dataset of that model"
                ),
            });
        }
        return begin_with(&saved, path, model);
    }
    from_vectors(path, model, rows.vocabulary())
}

/// Reads word vectors, one per line: the word and its values, separated by spaces. A first line of two numbers (words and
/// dimension) is skipped. Words outside the vocabulary are skipped; words without a vector keep random embeddings.
fn from_vectors(path: &Path, model: &mut Model, vocabulary: &Vocabulary) -> Result<()> {
    let failed = |source| Error::io(path, source);
    let wrong = |line: usize, found: String| Error::Vectors { path: path.to_owned(), line, found };
    let ids: HashMap<&[u8], i64> = vocabulary.words.iter().zip(i64::from(FIRST_WORD)..).collect();
    let width = model.lstm().settings().embedding as usize;
    let mut rows = Vec::new();
    let mut values: Vec<f64> = Vec::new();
    for (at, line) in BufReader::new(File::open(path).map_err(failed)?).lines().enumerate() {
        let line = line.map_err(failed)?;
        let mut words = line.split_ascii_whitespace();
        let Some(word) = words.next() else { continue };
        let numbers: Vec<&str> = words.collect();
        if at == 0 && numbers.len() == 1 {
            continue;
        }
        if numbers.len() != width {
            let n_values = numbers.len();
            return Err(wrong(
                at + 1,
                format!("{n_values} values, expected {width}, the size of --embedding"),
            ));
        }
        if let Some(&id) = ids.get(word.as_bytes()) {
            rows.push(id);
            for number in numbers {
                let value = number.parse::<f64>().ok().filter(|value| value.is_finite());
                values.push(value.ok_or_else(|| wrong(at + 1, format!("{number:?}, expected a number")))?);
            }
        }
    }
    if rows.is_empty() {
        return Err(Error::NoVectors { path: path.to_owned() });
    }
    let embedding = model.lstm().embedding();
    let values = Tensor::from_slice(&values)
        .view([rows.len() as i64, width as i64])
        .to_kind(embedding.kind())
        .to_device(embedding.device());
    let rows = Tensor::from_slice(&rows).to_device(embedding.device());
    tch::no_grad(|| embedding.shallow_clone().f_index_copy_(0, &rows, &values).map(drop))?;
    Ok(())
}

//! Initial weights from a saved model or from word vectors.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use dataset::vocabulary::{FIRST_WORD, Vocabulary};
use tch::Tensor;

use crate::error::{Error, Result};
use crate::families::{Model, begin_with};
use runs::saved;

/// Initializes a model from `path`: the folder of a saved model, or a .vec text file.
pub(crate) fn from(path: &Path, model: &mut Model, vocabulary: &Vocabulary) -> Result<()> {
    if !path.exists() {
        return Err(Error::Weights {
            path: path.to_owned(),
            found: "no such file or folder".to_owned(),
            expected: "a saved model's folder, or word vectors as .vec text; check --init-from".to_owned(),
        });
    }
    if path.is_dir() {
        let path = &super::model::folder(path);
        let saved = saved::read(path)?;
        if saved.vocabulary != vocabulary.words {
            let (path, of) = (path.to_owned(), "the dataset".into());
            return Err(batches::Error::OtherVocabulary { path, of }.into());
        }
        return begin_with(&saved, path, model);
    }
    from_vectors(path, model, vocabulary)
}

/// Reads word vectors, one per line: a word and its values, separated by spaces. A first line with two numbers (words
/// and dimension) is skipped. Words that are not in the vocabulary are skipped. Words that are not in the file keep
/// their random values.
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
            return Err(wrong(at + 1, format!("{} numbers, expected {width}", numbers.len())));
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
        return Err(wrong(0, "none of the vocabulary's words".to_owned()));
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

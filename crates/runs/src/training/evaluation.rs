//! `evaluation.json`: what the rows that were held back say of the model.

use std::path::Path;

use dataset::Row;
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::FIRST_WORD;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use batches::Part;
use scoring::RowScore;
use scoring::{Metrics, Scoring};

/// Rows that are shown as the most wrong.
const WRONG_MAX: usize = 50;

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRecord {
    /// Of the folder.
    pub version: u32,
    /// The rows.
    pub part: Part,
    /// The dataset that they are of.
    pub dataset: String,
    /// Steps that the training had done.
    pub step: u64,
    /// What the scores mean.
    pub scoring: Scoring,
    /// The first so many tokens of a row were read; 0 for all.
    pub tokens_max: u32,
    /// What was counted.
    pub metrics: Metrics,
    /// The SHA-256 of `scores.npy`.
    pub scores_sha256: String,
    /// The rows that the model was surest of and was wrong, the most wrong first.
    pub wrong: Vec<WrongRow>,
}

/// A row that was called what it is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrongRow {
    /// Its place in the dataset.
    pub row: u64,
    /// Its label.
    pub label: u8,
    /// Its score.
    pub score: f32,
    /// How many reviews gave it each rating.
    pub votes: [u32; 5],
    /// Its words; `None` for one that the vocabulary lacks.
    pub words: Vec<Option<String>>,
}

/// Whether a row is called what it is not.
pub fn is_wrong(scoring: Scoring, row: &RowScore) -> bool {
    scoring.is_positive(row.score) != (row.label == 1)
}

/// The rows of a dataset that were called with the greatest confidence what they are not, with their words.
pub fn most_wrong(dataset: &Path, scoring: Scoring, scores: &[RowScore]) -> Result<Vec<WrongRow>> {
    let mut wrong: Vec<&RowScore> = scores.iter().filter(|row| is_wrong(scoring, row)).collect();
    wrong.sort_by(|one, other| {
        let distance = |row: &RowScore| (row.score - scoring.threshold()).abs();
        distance(other).total_cmp(&distance(one)).then(one.row.cmp(&other.row))
    });
    wrong.truncate(WRONG_MAX);
    if wrong.is_empty() {
        return Ok(Vec::new());
    }
    let reader = DatasetReader::open(dataset)?;
    let words = &reader.vocabulary().words;
    let word = |&id: &u32| {
        let place = id.checked_sub(FIRST_WORD)? as usize;
        (place < words.len()).then(|| String::from_utf8_lossy(words.get(place)).into_owned())
    };
    let (mut rows, mut row) = (reader.rows(), Row::default());
    let described = wrong.into_iter().map(|&RowScore { row: at, label, score }| {
        rows.read(u64::from(at), &mut row)?;
        let words = row.tokens.iter().map(word).collect();
        Ok(WrongRow { row: u64::from(at), label, score, votes: row.votes.0, words })
    });
    described.collect()
}

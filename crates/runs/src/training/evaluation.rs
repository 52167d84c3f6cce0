//! `evaluation.json`: the evaluation of the model on held-out rows, or texts of a model of n-grams.

use std::path::Path;

use corpus::digest::Digest;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::FIRST_WORD;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use batches::Part;
use scoring::{
    Calibrator, Choice, Decision, Intervals, Metrics, ProbabilityQuality, RowScore, Scores, Scoring,
    Threshold,
};

/// Maximum rows listed as most wrong.
pub const WRONG_MAX: usize = 50;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRecord {
    /// Format version of the training folder.
    pub version: u32,
    /// The evaluated split.
    pub part: Part,
    /// The dataset of the rows, or the places of the texts.
    pub dataset: String,
    /// The digest of the texts of the rows and their labels, [`corpus::digest::of_labelled`]. Older versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_digest: Option<Digest>,
    /// Number of training steps.
    pub step: u64,
    /// The meaning of the scores.
    pub scoring: Scoring,
    /// Maximum tokens per row; 0 means no limit.
    pub tokens_max: u32,
    /// The names of the classes if the dataset was made with `--labels`; otherwise none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The calibration of probabilities, if the model has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrator>,
    /// The chosen threshold, if the model has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// The metrics.
    pub metrics: Metrics,
    /// The 95 % confidence intervals of the metrics. Older versions did not write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// The quality of probabilities; `None` if scores have none, or an older version wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<ProbabilityQuality>,
    /// The SHA-256 of `scores.npy`.
    pub scores_sha256: String,
    /// The misclassified rows with the most confident scores, the most confident first.
    pub wrong: Vec<WrongRow>,
}

impl EvaluationRecord {
    /// How the model's scores become probabilities and labels.
    pub fn decision(&self) -> Decision {
        Decision::new(self.scoring, self.calibration, self.threshold)
    }

    /// Whether threshold or calibration were fitted on the evaluated rows. The metrics are then better than on other
    /// rows.
    pub fn is_fitted(&self) -> bool {
        let choice = Choice { calibration: self.calibration, threshold: self.threshold };
        self.part == Part::Validation && choice.is_fitted()
    }
}

/// A misclassified row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrongRow {
    /// The row's index in the dataset, or the text's among the evaluated ones.
    pub row: u64,
    /// Its label.
    pub label: u8,
    /// The predicted class, for three or more classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u8>,
    /// Its score; for three or more classes the probability of the predicted class.
    pub score: f32,
    /// Number of reviews per rating.
    pub votes: [u32; 5],
    /// The hash of the row's text, as 16 hexadecimal digits; `None` in folders of earlier versions.
    #[serde(default)]
    pub hash: Option<String>,
    /// The row's words; `None` for a word that is not in the vocabulary. Long texts of a model of n-grams are cut.
    pub words: Vec<Option<String>>,
}

/// Whether a row is misclassified.
pub fn is_wrong(decision: Decision, row: &RowScore) -> bool {
    decision.is_positive(row.score) != (row.label == 1)
}

/// The misclassified rows with the most confident scores, at most [`WRONG_MAX`], without their words.
pub fn most_wrong(decision: Decision, scores: &Scores) -> Vec<WrongRow> {
    let described = |row, label, predicted, score| WrongRow {
        row: u64::from(row),
        label,
        predicted,
        score,
        votes: [0; 5],
        hash: None,
        words: Vec::new(),
    };
    let mut wrong: Vec<WrongRow> = match scores {
        Scores::Label(scores) => scores
            .iter()
            .filter(|row| is_wrong(decision, row))
            .map(|row| described(row.row, row.label, None, row.score))
            .collect(),
        Scores::Classes(scores) => scores
            .iter()
            .filter(|row| row.probabilities.predicted() != row.label)
            .map(|row| {
                let predicted = row.probabilities.predicted();
                described(row.row, row.label, Some(predicted), row.probabilities.largest())
            })
            .collect(),
    };
    wrong.sort_by(|one, other| {
        let distance = |row: &WrongRow| (row.score - decision.threshold()).abs();
        distance(other).total_cmp(&distance(one)).then(one.row.cmp(&other.row))
    });
    wrong.truncate(WRONG_MAX);
    wrong
}

/// Adds the words, votes and hashes of rows of a dataset.
pub fn with_words(dataset: &Path, wrong: Vec<WrongRow>) -> Result<Vec<WrongRow>> {
    if wrong.is_empty() {
        return Ok(wrong);
    }
    let reader = DatasetReader::open(dataset)?;
    let words = &reader.vocabulary().words;
    let word = |&id: &u32| {
        let place = id.checked_sub(FIRST_WORD)? as usize;
        (place < words.len()).then(|| String::from_utf8_lossy(words.get(place)).into_owned())
    };
    let (mut rows, mut row) = (reader.rows(), Row::default());
    let with_words = wrong.into_iter().map(|wrong| {
        rows.read(wrong.row, &mut row)?;
        let words = row.tokens.iter().map(word).collect();
        let hash = Some(format!("{:016x}", row.hash));
        Ok(WrongRow { votes: row.votes.0, hash, words, ..wrong })
    });
    with_words.collect()
}

//! `ngrams.json`: the n-grams with the largest weights of an n-gram model, for the report.

use serde::{Deserialize, Serialize};

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopNgrams {
    /// Format version of the training folder.
    pub version: u32,
    /// The labels, in the order of their names.
    pub labels: Vec<TopOfLabel>,
}

/// The n-grams that speak most for a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopOfLabel {
    /// Name of the label.
    pub name: String,
    /// The n-grams, the largest weight first.
    pub ngrams: Vec<WeighedNgram>,
}

/// An n-gram and its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeighedNgram {
    /// Its words, separated by spaces.
    pub ngram: String,
    /// Its weight for the label, against the mean of all labels.
    pub weight: f64,
}

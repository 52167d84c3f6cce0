//! `ngrams.json`: the n-grams with the largest weights of an n-gram model, for the report.

use batches::Part;
use corpus::digest::Digest;
use scoring::Intervals;
use serde::{Deserialize, Serialize};

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopNgrams {
    /// Format version of the training folder.
    pub version: u32,
    /// The labels, in their order.
    pub labels: Vec<TopOfLabel>,
    /// Number of n-grams with a weight, of a linear model. Older versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted: Option<u64>,
    /// The evaluated texts. Older versions did not write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<Tested>,
    /// The evaluation of texts with other metrics than two to five classes have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<OfManyLabels>,
}

/// Evaluated texts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The split.
    pub part: Part,
    /// The digest of the texts and their labels, as in an [`super::EvaluationRecord`].
    pub digest: Option<Digest>,
    /// Number of texts.
    pub texts: u64,
    /// Number of distinct texts.
    pub distinct_texts: u64,
}

/// Metrics of texts with many labels, several labels each, or labels that the model does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfManyLabels {
    /// The split.
    pub part: Part,
    /// Number of texts.
    pub texts: u64,
    /// Share of texts whose most probable label is one of their own.
    pub precision_at_1: f64,
    /// Share of labels that are the most probable one of their text.
    pub recall_at_1: f64,
    /// Mean of the F1 of all labels that texts have.
    pub macro_f1: f64,
    /// Further metrics, if each text has one label. Older versions did not write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_one_label: Option<OfOneLabel>,
    /// The texts that are predicted wrongly with the highest probabilities, the highest first. Older versions did not write
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Vec<WrongText>>,
}

/// A text whose most probable label is none of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrongText {
    /// Its index among the evaluated texts.
    pub text: u64,
    /// Its labels.
    pub labels: Vec<String>,
    /// The most probable label.
    pub predicted: String,
    /// Its probability.
    pub probability: f32,
    /// The hash of the text, as 16 hexadecimal digits.
    pub hash: Option<String>,
    /// The words. Long texts are cut.
    pub words: Vec<String>,
}

/// Metrics of texts with one label each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfOneLabel {
    /// Mean loss of a text.
    pub loss: f64,
    /// Mean of the precision of all labels that texts have.
    pub precision: f64,
    /// Mean of their recall.
    pub recall: f64,
    /// The most frequent label.
    pub largest: String,
    /// The share of texts that have it.
    pub baseline: f64,
    /// The 95 % confidence intervals.
    pub intervals: Intervals,
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

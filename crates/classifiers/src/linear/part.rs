//! Hashed n-grams as a part of another model, to whose outputs theirs are added.

use super::model::{LinearModel, LinearScratch, Outputs};
use super::row_index::RowKeys;

/// N-grams that score the classes of another model.
#[derive(Debug)]
pub struct Part {
    ngrams: LinearModel,
    /// The label of the n-grams that each class is.
    labels: Vec<usize>,
}

impl Part {
    /// N-grams for classes with these names. If they are of others, returns what was found and expected.
    pub fn of(ngrams: LinearModel, names: &[&str]) -> std::result::Result<Self, (String, String)> {
        let stored = ngrams.stored();
        let is_fit = match stored.outputs {
            Outputs::Two => names.len() == 2,
            Outputs::OneOf => names.len() == stored.labels.len(),
            Outputs::AnyOf => false,
        };
        let label = |name: &&str| stored.labels.iter().position(|label| label == name.as_bytes());
        let labels: Option<Vec<usize>> = names.iter().map(label).collect();
        match labels.filter(|_| is_fit && matches!(stored.rows, RowKeys::Hashed { .. })) {
            Some(labels) => Ok(Self { ngrams, labels }),
            None => {
                let found: Vec<_> = stored.labels.iter().map(String::from_utf8_lossy).collect();
                let found = format!("n-grams of the labels {}", found.join(", "));
                Err((found, format!("hashed n-grams of the classes {}", names.join(", "))))
            }
        }
    }

    /// The n-grams.
    pub fn ngrams(&self) -> &LinearModel {
        &self.ngrams
    }

    /// The label of the n-grams that each class is.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// Appends the outputs for a text whose words have these hashes: one per class, and of two classes that of the second.
    /// `scores` is memory.
    pub fn outputs(
        &self,
        words: &[u32],
        scratch: &mut LinearScratch,
        scores: &mut Vec<f32>,
        outputs: &mut Vec<f32>,
    ) {
        self.ngrams.scores_of_hashes(words, scratch, scores);
        match self.ngrams.stored().outputs {
            // The score is that of the first label, and the output that of the second class.
            Outputs::Two => outputs.push(if self.labels[1] == 0 { scores[0] } else { -scores[0] }),
            Outputs::OneOf | Outputs::AnyOf => {
                outputs.extend(self.labels.iter().map(|&label| scores[label]));
            }
        }
    }
}

//! The model from which a training starts. Its scores are added to those of the training, and the penalty is that of the
//! difference from its weights.

use super::dual::Trained;
use super::matrix::{NgramMatrix, Row};
use super::model::{LinearModel, Outputs};
use super::row_index::{RowIndex, RowKeys, row_of_hash};
use crate::names::Names;

/// The weights of a model by the rows and the classifiers of a training.
#[derive(Debug)]
pub(super) struct Base {
    pub outputs: Outputs,
    /// `[rows, classifiers]`
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Base {
    /// The weights of a model with the same labels in any order, whose hashed n-grams have rows; `None` for another model.
    pub fn of(model: &LinearModel, rows: &RowIndex, labels: &Names) -> Option<Self> {
        let stored = model.stored();
        let (RowKeys::Hashed { hashes, .. }, RowIndex::Hashed { words, .. }) = (&stored.rows, rows) else {
            return None;
        };
        // By classifier of the training: that of the model, and the sign of its scores.
        let classifier = |label: usize| {
            let name = labels.get(label as u32);
            let of_model = stored.labels.iter().position(|other| other == name)?;
            Some(match (stored.outputs, of_model) {
                (Outputs::Two, 0) => (0, 1.0),
                (Outputs::Two, _) => (0, -1.0),
                (Outputs::OneOf | Outputs::AnyOf, at) => (at, 1.0),
            })
        };
        let n = stored.biases.len();
        let classifiers: Vec<(usize, f32)> = (0..n).map(classifier).collect::<Option<_>>()?;
        let mut weights = vec![0.0; rows.n_rows() * n];
        for (&hash, of_row) in hashes.iter().zip(stored.weights.chunks_exact(n)) {
            let row = row_of_hash(words, hash)? as usize;
            for (to, &(from, sign)) in weights[row * n..][..n].iter_mut().zip(&classifiers) {
                *to = sign * of_row[from];
            }
        }
        let biases = classifiers.iter().map(|&(from, sign)| sign * stored.biases[from]).collect();
        Some(Self { outputs: stored.outputs, weights, biases })
    }

    /// The score of each text by a classifier.
    pub fn scores(&self, matrix: &NgramMatrix, scales: &[f32], classifier: usize) -> Vec<f32> {
        let n = self.biases.len();
        let score = |(text, scale): (Row<'_>, &f32)| {
            let value =
                |(at, &row): (usize, &u32)| text.value(at) * self.weights[row as usize * n + classifier];
            scale * text.rows.iter().enumerate().map(value).sum::<f32>() + self.biases[classifier]
        };
        matrix.texts().zip(scales).map(score).collect()
    }

    /// Adds the weights of a classifier to those that were trained.
    pub fn add_to(&self, trained: &mut Trained, classifier: usize) {
        let of_rows = self.weights.chunks_exact(self.biases.len());
        trained.weights.iter_mut().zip(of_rows).for_each(|(weight, of_row)| *weight += of_row[classifier]);
        trained.bias += self.biases[classifier];
    }
}

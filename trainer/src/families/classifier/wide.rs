//! N-grams as the wide part of a classifier, beside the LSTM, its deep part (Cheng et al. 2016, "Wide & Deep Learning for
//! Recommender Systems").
//!
//! Both parts are trained apart: an LSTM that learns beside n-grams leaves to them what it could learn, and adds less. The
//! [`Head`] adds their outputs, each multiplied by a factor that is fitted on the validation split.
//!
//! B: rows; O: outputs.

use classifiers::linear::{LinearModel, LinearScratch, Outputs, Part};
use dataset::WordList;
use dataset::vocabulary::FIRST_WORD;
use durable::NewFolder;
use kernels::TokenRows;
use runs::onnx::{Attribute, ElementType, Graph, Value};
use scoring::{Scores, factors};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::error::Result;

/// The n-grams of a classifier.
#[derive(Debug)]
pub struct Wide {
    part: Part,
    head: Head,
    /// The hash of each word, from id [`FIRST_WORD`] on.
    hashes: Vec<u32>,
}

/// The factors of both parts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Factor of the outputs of the LSTM.
    pub lstm: f64,
    /// Factor of the outputs of the n-grams.
    pub ngrams: f64,
}

impl Wide {
    /// N-grams of these words for classes with these names. If they are of others, returns what was found and expected.
    pub fn of(
        ngrams: LinearModel,
        head: Head,
        words: &WordList,
        names: &[&str],
    ) -> std::result::Result<Self, (String, String)> {
        let hashes = words.iter().map(classifiers::hash).collect();
        Part::of(ngrams, names).map(|part| Self { part, head, hashes })
    }

    /// Writes the n-grams, without the head, into the folder of the model.
    pub(crate) fn write(&self, folder: &mut NewFolder) -> Result<()> {
        Ok(classifiers::files::add_part(folder, self.part.ngrams())?)
    }

    /// The head.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Replaces the head.
    pub fn set_head(&mut self, head: Head) {
        self.head = head;
    }

    /// The outputs of both parts, `[B, O]`, from those of the LSTM.
    pub(super) fn outputs(&self, rows: TokenRows<'_>, lstm: &Tensor) -> Result<Tensor> {
        let mut added = Vec::with_capacity(lstm.numel());
        let (mut scratch, mut scores) = (LinearScratch::default(), Vec::new());
        self.each_text(rows, |words| self.part.outputs(words, &mut scratch, &mut scores, &mut added));
        let added = Tensor::f_from_slice(&added)?.f_view(&lstm.size()[..])?;
        let added = added.f_to_kind(lstm.kind())?.f_to_device(lstm.device())?;
        Ok(lstm.f_mul_scalar(self.head.lstm)?.f_add(&added.f_mul_scalar(self.head.ngrams)?)?)
    }

    /// Adds the outputs of the n-grams, multiplied by their factor, `[B, O]`, to the graph of the classifier. Its inputs are
    /// `rows`, the numbers of the n-grams of a text, and `values`, their factors, which are 0 after the last.
    pub(super) fn graph(&self, graph: &mut Graph) -> Value {
        let (stored, labels) = (self.part.ngrams().stored(), self.part.labels());
        let n = stored.biases.len();
        let rows = graph.input("rows", ElementType::I64, &["batch", "ngrams"]);
        let values = graph.input("values", ElementType::F32, &["batch", "ngrams"]);
        let biases = graph.floats(&[n], &stored.biases);
        let sums = graph.weighted_rows(n, &stored.weights, &rows, &values);
        let scores = graph.node("Add", &[&sums, &biases], &[]);
        // To the order of the classes, and of two labels to the output of the second class.
        let (order, factor) = match stored.outputs {
            Outputs::Two if labels[1] == 0 => (vec![0], self.head.ngrams),
            Outputs::Two => (vec![0], -self.head.ngrams),
            Outputs::OneOf | Outputs::AnyOf => {
                (labels.iter().map(|&label| label as i64).collect(), self.head.ngrams)
            }
        };
        let (order, factor) = (graph.integers(&order), graph.number(factor));
        let scores = graph.node("Gather", &[&scores, &order], &[Attribute::integer("axis", 1)]);
        graph.node("Mul", &[&scores, &factor], &[])
    }

    /// The probability of each class by the n-grams alone, for each row.
    pub fn probabilities(&self, rows: TokenRows<'_>) -> Vec<Vec<f32>> {
        let mut all = Vec::with_capacity(rows.lengths.len());
        let (ngrams, mut scratch, mut scores) = (self.part.ngrams(), LinearScratch::default(), Vec::new());
        self.each_text(rows, |words| {
            ngrams.scores_of_hashes(words, &mut scratch, &mut scores);
            ngrams.convert(&mut scores);
            all.push(self.part.labels().iter().map(|&label| scores[label]).collect());
        });
        all
    }

    /// Calls `each` with the hashes of the words of each row. Unknown words belong to no n-gram: the words around them are
    /// neighbours.
    fn each_text(&self, rows: TokenRows<'_>, mut each: impl FnMut(&[u32])) {
        let mut hashes = Vec::new();
        for tokens in rows.iter() {
            hashes.clear();
            let words = tokens.iter().filter_map(|id| usize::try_from(id - i64::from(FIRST_WORD)).ok());
            hashes.extend(words.map(|word| self.hashes[word]));
            each(&hashes);
        }
    }
}

impl Head {
    /// The outputs of the LSTM alone.
    pub const LSTM: Self = Self { lstm: 1.0, ngrams: 0.0 };
    /// The outputs of the n-grams alone.
    pub const NGRAMS: Self = Self { lstm: 0.0, ngrams: 1.0 };

    /// The head that fits the scores of both parts on the same rows best. `weight` is the weight of a label in the loss.
    pub fn fitted(lstm: &Scores, ngrams: &Scores, weight: impl Fn(u8) -> f64) -> Self {
        let [lstm, ngrams] = factors(lstm, ngrams, weight);
        Self { lstm, ngrams }
    }

    /// Whether both factors are finite. A file may contain any.
    pub fn is_finite(self) -> bool {
        self.lstm.is_finite() && self.ngrams.is_finite()
    }
}

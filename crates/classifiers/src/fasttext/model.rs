//! A trained model and its answers.

use std::sync::Arc;

use kernels::simd::{Processor, Table};
use scoring::Choice;

use super::kernel;
use super::listing::to_positions;
use super::program::{self, logistic};
use super::row_set::RowSet;
use super::settings::{FastTextSettings, Loss};
use crate::dictionary::Dictionary;
use crate::features::{self, FeatureRows, Features};
use crate::tree::{Paths, Tree};
use crate::words::Words;

/// A classifier: the mean of the rows of a text's words and n-grams, and a linear layer.
#[derive(Debug)]
pub struct FastTextModel {
    words: Words,
    loss: Loss,
    dictionary: Dictionary,
    rows: FeatureRows,
    input: Arc<Table>,
    output: Arc<Table>,
    met: RowSet,
    counted: Counted,
    choice: Choice,
    /// Of hierarchical softmax.
    tree: Option<Tree>,
    processor: Processor,
}

/// Which rows of a text the mean counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All rows. A row without weights is a row of zeros.
    All,
    /// Rows with weights, as in a model of fastText whose rows were pruned.
    Met,
}

/// Reusable memory of answers.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    rows: Vec<u32>,
    scratch: features::FeatureScratch,
    mean: Vec<f32>,
    probabilities: Vec<f32>,
}

impl FastTextModel {
    /// A model with these weights. `input` has the rows of `met` in increasing order, and `output` has one row per label.
    ///
    /// # Panics
    /// If the sizes do not match.
    pub fn with_weights(
        words: Words,
        loss: Loss,
        dictionary: Dictionary,
        rows: FeatureRows,
        [input, output]: [Arc<Table>; 2],
        met: RowSet,
        counted: Counted,
    ) -> Self {
        assert_eq!(met.n_numbers(), rows.n_rows(), "one number per word and bucket");
        assert_eq!(input.n_rows(), met.len(), "one row per number of the set");
        assert_eq!(output.n_rows(), dictionary.labels().len(), "one row per label");
        assert_eq!(input.dim(), output.dim(), "one dimension");
        let processor = Processor::best();
        let choice = Choice::default();
        let tree = (loss == Loss::HierarchicalSoftmax).then(|| Tree::new(dictionary.label_counts()));
        Self { words, loss, dictionary, rows, input, output, met, counted, choice, tree, processor }
    }

    pub(super) fn new(
        settings: &FastTextSettings,
        dictionary: Dictionary,
        rows: FeatureRows,
        tables: [Arc<Table>; 2],
        met: RowSet,
    ) -> Self {
        Self::with_weights(settings.words, settings.loss, dictionary, rows, tables, met, Counted::All)
    }

    /// Sets how probabilities become those of answers, and labels.
    pub fn choose(&mut self, choice: Choice) {
        self.choice = choice;
    }

    /// How probabilities become those of answers, and labels.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Words and labels.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// How lines are split.
    pub fn words(&self) -> Words {
        self.words
    }

    /// The output layer.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Which words and n-grams have a row.
    pub fn features(&self) -> Features {
        self.rows.features()
    }

    /// Embedding dimension.
    pub fn dim(&self) -> usize {
        self.input.dim()
    }

    /// The rows of [`FastTextModel::met`] in increasing order; part 0 has the weights.
    pub fn input(&self) -> &Table {
        &self.input
    }

    /// Rows of labels, or of the inner nodes of their tree; part 0 has the weights.
    pub fn output(&self) -> &Table {
        &self.output
    }

    /// The paths to labels, of hierarchical softmax.
    pub fn paths(&self) -> Option<Paths> {
        self.tree.as_ref().map(Tree::paths)
    }

    /// The numbers of the rows of words and buckets that have weights.
    pub fn met(&self) -> &RowSet {
        &self.met
    }

    /// Which rows of a text the mean counts.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// Numbers the rows of texts.
    pub fn rows(&self) -> &FeatureRows {
        &self.rows
    }

    /// The probability of each label for a line, by number of the label. If words are split as the fastText program splits
    /// them, independent probabilities are those of the program, which looks up the logistic function in a table. A line without known words and n-grams has the
    /// probabilities of a zero vector: equal ones.
    pub fn scores<'s>(&self, line: &[u8], scores: &'s mut Scores) -> &'s [f32] {
        scores.rows.clear();
        self.rows.of_line(&self.dictionary, self.words, line, &mut scores.scratch, &mut scores.rows);
        self.scores_of_rows(scores)
    }

    /// The probability of each label for a text whose tokens are numbers of the model's dictionary.
    pub fn scores_of_tokens<'s>(&self, tokens: &[u32], scores: &'s mut Scores) -> &'s [f32] {
        scores.rows.clear();
        self.rows.of_tokens(&self.dictionary, tokens, &mut scores.scratch, &mut scores.rows);
        self.scores_of_rows(scores)
    }

    /// How much each word and n-gram of a line raises the score of a label: its share of the label's logit, minus its mean share of
    /// the logits of all other labels if probabilities sum to 1. Shares of equal words and n-grams are summed. The order
    /// is that of first occurrence. With hierarchical softmax, the score is the sum of the log-odds of the inner nodes
    /// above the label, each for the side of the label.
    ///
    /// # Panics
    /// If the label does not exist.
    pub fn explain(&self, line: &[u8], label: u32) -> Vec<(String, f32)> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        self.words.each(line, &mut Vec::new(), |word| words.push(word.to_vec()));
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut spans = Vec::new();
        self.rows.each_of_words(&self.dictionary, &words, |row, span| spans.push((row, span)));
        let direction = self.direction(label);
        let n_rows = match self.counted {
            Counted::All => spans.len(),
            Counted::Met => spans.iter().filter(|(row, _)| self.met.position(*row).is_some()).count(),
        };
        let mut shares: Vec<(String, f32)> = Vec::new();
        let mut positions = std::collections::HashMap::new();
        for (row, span) in spans {
            let Some(position) = self.met.position(row) else { continue };
            let share = kernel::dot_on(self.processor, &self.input, position, &direction) / n_rows as f32;
            let text = String::from_utf8_lossy(&words[span].join(&b' ')).into_owned();
            let at = *positions.entry(text.clone()).or_insert(shares.len());
            if at == shares.len() {
                shares.push((text, 0.0));
            }
            shares[at].1 += share;
        }
        shares
    }

    /// The direction in which a mean raises the score of [`Self::explain`] of a label.
    pub(super) fn direction(&self, label: u32) -> Vec<f32> {
        let n_labels = self.output.n_rows();
        let mut direction = vec![0.0; self.input.stride()];
        if let Some(paths) = self.paths() {
            for &(inner, is_right) in paths.of(label) {
                let sign = if is_right { 1.0 } else { -1.0 };
                kernel::add_scaled_on(self.processor, &self.output, inner, sign, &mut direction);
            }
            return direction;
        }
        kernel::add_scaled_on(self.processor, &self.output, label, 1.0, &mut direction);
        if self.loss == Loss::Softmax && n_labels > 1 {
            let share = -1.0 / (n_labels - 1) as f32;
            for other in (0..n_labels as u32).filter(|&other| other != label) {
                kernel::add_scaled_on(self.processor, &self.output, other, share, &mut direction);
            }
        }
        direction
    }

    pub(super) fn processor(&self) -> Processor {
        self.processor
    }

    fn scores_of_rows<'s>(&self, scores: &'s mut Scores) -> &'s [f32] {
        let Scores { rows, mean, probabilities, .. } = scores;
        mean.resize(self.input.stride(), 0.0);
        let n_all = rows.len();
        to_positions(&self.met, rows);
        let n_rows = if self.counted == Counted::All { n_all } else { rows.len() };
        probabilities.clear();
        let labels = 0..self.output.n_rows() as u32;
        if self.loss == Loss::Bce && self.words == Words::Spaces {
            let mean = &mut mean[..self.input.dim()];
            program::mean(&self.input, rows, n_rows, mean);
            probabilities.extend(labels.map(|label| logistic(program::dot(&self.output, label, mean))));
            return probabilities;
        }
        kernel::mean_on(self.processor, &self.input, rows, n_rows, mean);
        if let Some(tree) = &self.tree {
            tree.probabilities(
                |inner| kernel::dot_on(self.processor, &self.output, inner as u32, mean),
                probabilities,
            );
            return probabilities;
        }
        probabilities.extend(labels.map(|label| kernel::dot_on(self.processor, &self.output, label, mean)));
        match self.loss {
            Loss::Softmax | Loss::HierarchicalSoftmax => {
                let max = probabilities.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                probabilities.iter_mut().for_each(|logit| *logit = (*logit - max).exp());
                let sum: f32 = probabilities.iter().sum();
                probabilities.iter_mut().for_each(|value| *value /= sum);
            }
            Loss::Bce => probabilities.iter_mut().for_each(|logit| *logit = 1.0 / (1.0 + (-*logit).exp())),
        }
        probabilities
    }
}

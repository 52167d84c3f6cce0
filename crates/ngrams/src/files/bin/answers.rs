//! The answers of the program: labels and probabilities of a line.
//!
//! Sums are computed in the order and the precision of the program, so that a logistic function, which the program
//! looks up in a table of 513 values, gives the same entry.

use std::cmp::Ordering;

use super::{Loss, Model};
use crate::END;
use crate::words::is_space;

/// The logistic function is looked up between these limits, in steps of 1/32.
const LOGISTIC_LIMIT: f32 = 8.0;
const LOGISTIC_STEPS: f32 = 512.0;
/// The program adds this to a probability before it takes the logarithm, and does not subtract it again.
pub const ADDED: f64 = 1e-5;

/// Buffers of an answer, for reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    rows: Vec<u32>,
    hidden: Vec<f32>,
    scores: Vec<f32>,
}

impl Model {
    /// The scores of all labels for a line without its line end: the logarithm of the probability to which the program
    /// added [`ADDED`]. `None` if no row of the model occurs in the line; the program then predicts no label.
    pub fn scores<'a>(&self, line: &[u8], scratch: &'a mut Scratch) -> Option<&'a [f32]> {
        let Scratch { rows, hidden, scores } = scratch;
        self.rows_of_line(line, rows);
        if rows.is_empty() {
            return None;
        }
        hidden.clear();
        hidden.resize(self.args.dim, 0.0);
        self.add_mean(rows, hidden);
        scores.clear();
        match self.args.loss {
            Loss::HierarchicalSoftmax => self.scores_by_tree(hidden, scores),
            Loss::Softmax => {
                scores.extend((0..self.output.rows()).map(|label| self.output.dot_row(label, hidden)));
                softmax(scores);
                scores.iter_mut().for_each(|score| *score = logarithm(*score));
            }
            Loss::OneVersusAll | Loss::NegativeSampling => scores.extend(
                (0..self.output.rows()).map(|label| logarithm(logistic(self.output.dot_row(label, hidden)))),
            ),
        }
        Some(scores)
    }

    /// The probabilities of all labels for a line, as the program reports them: [`ADDED`] more than the probability.
    pub fn probabilities<'a>(&self, line: &[u8], scratch: &'a mut Scratch) -> Option<&'a [f32]> {
        self.scores(line, scratch)?;
        scratch.scores.iter_mut().for_each(|score| *score = score.exp());
        Some(&scratch.scores)
    }

    /// The vector of a word of the dictionary: the mean of its row and those of its character n-grams. `vector` is zero.
    pub fn add_vector(&self, word: u32, vector: &mut [f32]) {
        let dictionary = self.entries.dictionary();
        let mut rows = Vec::new();
        self.rows.each_of_words(dictionary, &[dictionary.name(word)], |row, _| rows.push(row));
        self.prune(&mut rows);
        self.add_mean(&rows, vector);
    }

    /// The rows of the input matrix that occur in a line, in the order of the program: words, each followed by its
    /// character n-grams, then word n-grams. A word `</s>` ends the line.
    fn rows_of_line(&self, line: &[u8], rows: &mut Vec<u32>) {
        let words = line.split(|&byte| is_space(byte)).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words
            .take_while(|&word| word != END)
            .chain([END])
            .filter(|word| !self.entries.is_label(word))
            .collect();
        rows.clear();
        self.rows.each_of_words(self.entries.dictionary(), &words, |row, _| rows.push(row));
        self.prune(rows);
    }

    /// Replaces buckets by their rows, and removes those without.
    fn prune(&self, rows: &mut Vec<u32>) {
        let Some(pruned) = self.entries.pruned() else { return };
        let n_words = self.entries.dictionary().n_words() as u32;
        rows.retain_mut(|row| {
            let Some(bucket) = row.checked_sub(n_words) else { return true };
            let found = pruned.binary_search_by_key(&bucket, |&(bucket, _)| bucket);
            found.map(|at| *row = n_words + pruned[at].1).is_ok()
        });
    }

    fn add_mean(&self, rows: &[u32], mean: &mut [f32]) {
        rows.iter().for_each(|&row| self.input.add_row(row as usize, mean));
        let share = (1.0 / rows.len() as f64) as f32;
        mean.iter_mut().for_each(|value| *value *= share);
    }

    fn scores_by_tree(&self, hidden: &[f32], scores: &mut Vec<f32>) {
        let Some(tree) = &self.tree else { return };
        scores.resize(tree.n_nodes(), 0.0);
        for (inner, (left, right)) in tree.down() {
            let above = scores[tree.node(inner)];
            let output = self.output.dot_row(inner, hidden);
            let share = (1.0 / f64::from(1.0 + (-output).exp())) as f32;
            scores[left] = above + logarithm((1.0 - f64::from(share)) as f32);
            scores[right] = above + logarithm(share);
        }
        scores.truncate(self.output.rows());
    }
}

/// The `n` best labels of these scores, best first. Of two labels with equal scores the program prefers the later one.
pub fn best(scores: &[f32], n: usize) -> Vec<usize> {
    let mut labels: Vec<usize> = (0..scores.len()).collect();
    labels.sort_by(|&a, &b| scores[b].partial_cmp(&scores[a]).unwrap_or(Ordering::Equal).then(b.cmp(&a)));
    labels.truncate(n);
    labels
}

fn softmax(outputs: &mut [f32]) {
    let max = outputs.iter().copied().fold(outputs[0], f32::max);
    let mut sum = 0.0;
    for output in outputs.iter_mut() {
        *output = (*output - max).exp();
        sum += *output;
    }
    outputs.iter_mut().for_each(|output| *output /= sum);
}

fn logistic(output: f32) -> f32 {
    if output < -LOGISTIC_LIMIT {
        0.0
    } else if output > LOGISTIC_LIMIT {
        1.0
    } else {
        let at = ((output + LOGISTIC_LIMIT) * LOGISTIC_STEPS / LOGISTIC_LIMIT / 2.0).trunc();
        let x = at * 2.0 * LOGISTIC_LIMIT / LOGISTIC_STEPS - LOGISTIC_LIMIT;
        (1.0 / (1.0 + f64::from((-x).exp()))) as f32
    }
}

fn logarithm(probability: f32) -> f32 {
    (f64::from(probability) + ADDED).ln() as f32
}

//! The answers of the program: labels and probabilities of a line.
//!
//! Sums are computed in the order and the precision of the program, so that a logistic function, which the program
//! looks up in a table of 513 values, gives the same entry.

use super::{BinLoss, BinModel};
use crate::END;
use crate::fasttext::logistic;
use crate::words::is_space;

/// The program adds this to a probability before it takes the logarithm, and does not subtract it again.
pub const ADDED: f64 = 1e-5;

/// Buffers of an answer, for reuse.
#[derive(Debug, Default)]
pub struct BinScratch {
    rows: Vec<u32>,
    hidden: Vec<f32>,
    scores: Vec<f32>,
}

impl BinModel {
    /// The scores of all labels for a line without its line end: the logarithm of the probability to which the program
    /// added [`ADDED`]. `None` if no row of the model occurs in the line; the program then predicts no label.
    pub fn scores<'a>(&self, line: &[u8], scratch: &'a mut BinScratch) -> Option<&'a [f32]> {
        let BinScratch { rows, hidden, scores } = scratch;
        self.rows_of_line(line, rows);
        if rows.is_empty() {
            return None;
        }
        hidden.clear();
        hidden.resize(self.args.dim, 0.0);
        self.add_mean(rows, hidden);
        scores.clear();
        match self.args.loss {
            BinLoss::HierarchicalSoftmax => self.scores_by_tree(hidden, scores),
            BinLoss::Softmax => {
                scores.extend((0..self.output.rows()).map(|label| self.output.dot_row(label, hidden)));
                softmax(scores);
                scores.iter_mut().for_each(|score| *score = logarithm(*score));
            }
            BinLoss::OneVersusAll | BinLoss::NegativeSampling => scores.extend(
                (0..self.output.rows()).map(|label| logarithm(logistic(self.output.dot_row(label, hidden)))),
            ),
        }
        Some(scores)
    }

    /// The probabilities of all labels for a line, as the program reports them: [`ADDED`] more than the probability.
    pub fn probabilities<'a>(&self, line: &[u8], scratch: &'a mut BinScratch) -> Option<&'a [f32]> {
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

/// The `n` best labels of these scores, best first. Labels with equal scores have the order in which the program's heap
/// returns them.
pub fn best(scores: &[f32], n: usize) -> Vec<usize> {
    // The worst label is the first element; an element is worse than its children, two at twice its position.
    let mut heap: Vec<usize> = Vec::new();
    for label in 0..scores.len() {
        if heap.len() == n && heap.first().is_none_or(|&worst| scores[label] < scores[worst]) {
            continue;
        }
        heap.push(label);
        let last = heap.len() - 1;
        rise(&mut heap, last, label, scores);
        if heap.len() > n {
            pop(&mut heap, scores);
            heap.pop();
        }
    }
    for length in (2..=heap.len()).rev() {
        pop(&mut heap[..length], scores);
    }
    heap
}

/// Moves the first element of a heap to the end. The other elements are a heap again.
fn pop(heap: &mut [usize], scores: &[f32]) {
    let Some((last, rest)) = heap.split_last_mut() else { return };
    if rest.is_empty() {
        return;
    }
    let label = std::mem::replace(last, rest[0]);
    let mut hole = 0;
    loop {
        let (left, right) = (2 * hole + 1, 2 * hole + 2);
        let child = match () {
            () if right < rest.len() && scores[rest[right]] <= scores[rest[left]] => right,
            () if left < rest.len() => left,
            () => break,
        };
        rest[hole] = rest[child];
        hole = child;
    }
    rise(rest, hole, label, scores);
}

/// Inserts a label at the first position above `hole` whose parent is not better.
fn rise(heap: &mut [usize], mut hole: usize, label: usize, scores: &[f32]) {
    while let Some(parent) = hole.checked_sub(1).map(|before| before / 2)
        && scores[heap[parent]] > scores[label]
    {
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = label;
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

fn logarithm(probability: f32) -> f32 {
    (f64::from(probability) + ADDED).ln() as f32
}

//! One step: a text's mean, its probabilities, and the gradients.

use kernels::simd::{Processor, Table};
use program::random::Random;

use super::kernel::{self, Rule};
use super::listing::{Listing, to_positions};
use super::order::Window;
use super::settings::{FastTextSettings, Loss};
use crate::dictionary::Dictionary;
use crate::features::{FeatureRows, FeatureScratch};
use crate::texts::weight_of;
use crate::tree::Paths;

/// Purposes of random numbers: the first element of each key.
const DROPOUT: u64 = 3;
const SUBSAMPLING: u64 = 4;

/// What all threads share.
pub(crate) struct Shared<'a> {
    pub settings: &'a FastTextSettings,
    pub dictionary: &'a Dictionary,
    pub rows: &'a FeatureRows,
    pub input: &'a Table,
    pub output: &'a Table,
    pub processor: Processor,
    pub listing: &'a Listing,
    /// The paths to labels, of hierarchical softmax.
    pub paths: Option<&'a Paths>,
    /// Probability to keep each word, if words are sampled.
    pub keeps: &'a [f32],
}

/// The values of one text, reused for the next one.
pub(crate) struct Step {
    /// The mean of the rows, after dropout.
    pub mean: Vec<f32>,
    /// Probability of each row of the output minus its target, times the weight of the text.
    pub errors: Vec<f32>,
    /// The row of each error; empty if each row has one.
    pub nodes: Vec<u32>,
    /// The inner nodes above the labels of the text, and whether a label is to their right.
    passed: Vec<(u32, bool)>,
    /// The gradient of the loss with respect to the mean before dropout.
    pub gradient: Vec<f32>,
    mask: Vec<f32>,
    scratch: FeatureScratch,
    distinct: RowCounts,
}

impl Step {
    pub fn new(shared: &Shared<'_>) -> Self {
        let stride = shared.input.stride();
        Self {
            mean: vec![0.0; stride],
            errors: vec![0.0; if shared.paths.is_some() { 0 } else { shared.output.n_rows() }],
            nodes: Vec::new(),
            passed: Vec::new(),
            gradient: vec![0.0; stride],
            mask: vec![1.0; stride],
            scratch: FeatureScratch::default(),
            distinct: RowCounts::default(),
        }
    }

    /// Finds the rows of a text, as positions in the table. Returns the list if there is one; otherwise `rows` holds them.
    #[inline]
    pub fn list_rows<'s>(
        &mut self,
        shared: &Shared<'s>,
        window: &Window<'_>,
        position: usize,
        step: u64,
        rows: &mut Vec<u32>,
    ) -> Option<&'s [u32]> {
        let Shared { dictionary, keeps, settings, listing, .. } = *shared;
        if !keeps.is_empty() {
            let mut random = Random::of(&[SUBSAMPLING, settings.seed, step]);
            let keeps = |word: u32| random.uniform() < keeps[word as usize];
            rows.clear();
            shared.rows.of_sampled(dictionary, window.text(position).tokens, keeps, &mut self.scratch, rows);
            to_positions(&listing.met, rows);
            return None;
        }
        if let Some(lists) = &listing.lists {
            let (block, text) = window.place(position);
            return Some(lists[block].of(text));
        }
        rows.clear();
        shared.rows.of_tokens(dictionary, window.text(position).tokens, &mut self.scratch, rows);
        to_positions(&listing.met, rows);
        None
    }

    /// Computes the loss and the gradients. `rows` is not empty.
    #[inline]
    pub fn forward(&mut self, shared: &Shared<'_>, rows: &[u32], labels: &[u32], number: u64) -> f32 {
        let Shared { settings, output, processor, .. } = *shared;
        kernel::mean_on(processor, shared.input, rows, rows.len(), &mut self.mean);
        if settings.dropout > 0.0 {
            self.drop_elements(settings, number);
        }
        let loss = match shared.paths {
            Some(paths) => self.tree_errors(shared, paths, labels),
            None => {
                for (label, logit) in (0..).zip(&mut self.errors) {
                    *logit = kernel::dot_on(processor, output, label, &self.mean);
                }
                match settings.loss {
                    Loss::Softmax | Loss::HierarchicalSoftmax => softmax_errors(&mut self.errors, labels),
                    Loss::Bce => bce_errors(&mut self.errors, labels),
                }
            }
        };
        let weight = weight_of(labels, &settings.label_weights);
        if !settings.label_weights.is_empty() {
            self.errors.iter_mut().for_each(|error| *error *= weight);
        }
        self.gradient.fill(0.0);
        for (at, &error) in self.errors.iter().enumerate() {
            kernel::add_scaled_on(processor, output, row_of(&self.nodes, at), error, &mut self.gradient);
        }
        if settings.dropout > 0.0 {
            self.gradient.iter_mut().zip(&self.mask).for_each(|(gradient, mask)| *gradient *= mask);
        }
        weight * loss
    }

    /// Updates the output layer.
    #[inline]
    pub fn update_output(&self, shared: &Shared<'_>, rule: &Rule) {
        for (at, &error) in self.errors.iter().enumerate() {
            let row = row_of(&self.nodes, at);
            kernel::update_row_on(shared.processor, shared.output, row, &self.mean, error, rule);
        }
    }

    /// Lists the error of each inner node above the labels: the sum of its errors for those below it. Returns the loss.
    fn tree_errors(&mut self, shared: &Shared<'_>, paths: &Paths, labels: &[u32]) -> f32 {
        self.nodes.clear();
        self.errors.clear();
        self.passed.clear();
        self.passed.extend(labels.iter().flat_map(|&label| paths.of(label)));
        // Paths share their upper nodes, and an optimizer has one step per node.
        if labels.len() > 1 {
            self.passed.sort_unstable();
        }
        let (mut loss, share) = (0.0, 1.0 / labels.len() as f32);
        for passed in self.passed.chunk_by(|one, other| one.0 == other.0) {
            let (node, n) = (passed[0].0, passed.len() as f32);
            let n_right = passed.iter().filter(|(_, is_right)| *is_right).count() as f32;
            let logit = kernel::dot_on(shared.processor, shared.output, node, &self.mean);
            loss += share * (n * softplus(logit) - n_right * logit);
            self.nodes.push(node);
            self.errors.push(share * (n / (1.0 + (-logit).exp()) - n_right));
        }
        loss
    }

    /// Updates the rows of the text, and loads those of the next one.
    #[inline]
    pub fn update_rows(&mut self, shared: &Shared<'_>, rows: &[u32], rule: &Rule, next: &[u32]) {
        let Shared { input, processor, .. } = *shared;
        let share = 1.0 / rows.len() as f32;
        if let Some(rate) = plain_rate(rule) {
            self.gradient.iter_mut().for_each(|gradient| *gradient *= -rate * share);
            kernel::add_to_rows_on(processor, input, rows, &self.gradient, next);
        } else {
            for &(row, count) in self.distinct.of(rows) {
                kernel::update_row_on(processor, input, row, &self.gradient, count as f32 * share, rule);
            }
        }
    }

    fn drop_elements(&mut self, settings: &FastTextSettings, step: u64) {
        let mut random = Random::of(&[DROPOUT, settings.seed, step]);
        let kept = 1.0 / (1.0 - settings.dropout);
        for (mask, mean) in self.mask.iter_mut().zip(&mut self.mean).take(settings.dim) {
            *mask = if random.uniform() < settings.dropout { 0.0 } else { kept };
            *mean *= *mask;
        }
    }
}

/// The rate of an update that adds the same vector for each occurrence of a row.
pub(crate) fn plain_rate(rule: &Rule) -> Option<f32> {
    match *rule {
        Rule::Sgd { rate, l2: 0.0 } => Some(rate),
        _ => None,
    }
}

/// Replaces logits by errors. Returns the loss.
fn softmax_errors(logits: &mut [f32], labels: &[u32]) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let target = 1.0 / labels.len() as f32;
    let of_labels: f32 = labels.iter().map(|&label| logits[label as usize] - max).sum();
    let mut sum = 0.0;
    for logit in logits.iter_mut() {
        *logit = (*logit - max).exp();
        sum += *logit;
    }
    logits.iter_mut().for_each(|logit| *logit /= sum);
    labels.iter().for_each(|&label| logits[label as usize] -= target);
    sum.ln() - target * of_labels
}

/// Replaces logits by errors. Returns the loss.
fn bce_errors(logits: &mut [f32], labels: &[u32]) -> f32 {
    let mut loss = 0.0;
    for (label, logit) in (0..).zip(logits.iter_mut()) {
        let is_label = labels.contains(&label);
        loss += softplus(*logit) - if is_label { *logit } else { 0.0 };
        *logit = 1.0 / (1.0 + (-*logit).exp()) - f32::from(u8::from(is_label));
    }
    loss
}

/// ln(1 + e^x) without overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The row of the output of an error.
#[inline]
pub(crate) fn row_of(nodes: &[u32], at: usize) -> u32 {
    nodes.get(at).copied().unwrap_or(at as u32)
}

/// The distinct rows of a text with their numbers of occurrences.
#[derive(Default)]
pub(crate) struct RowCounts {
    rows: Vec<(u32, u32)>,
    /// Open addressing: positions in `rows`, each valid if its mark is the current one.
    slots: Vec<(u32, u32)>,
    mark: u32,
}

impl RowCounts {
    /// The distinct rows in order of first occurrence.
    pub fn of(&mut self, rows: &[u32]) -> &[(u32, u32)] {
        self.rows.clear();
        let n_slots = (2 * rows.len()).next_power_of_two().max(64);
        if self.slots.len() < n_slots || self.mark == u32::MAX {
            self.slots = vec![(0, 0); n_slots.max(self.slots.len())];
            self.mark = 0;
        }
        self.mark += 1;
        let shift = 32 - self.slots.len().trailing_zeros();
        for &row in rows {
            let mut at = (row.wrapping_mul(0x9e37_79b1) >> shift) as usize;
            loop {
                let (mark, position) = self.slots[at];
                if mark != self.mark {
                    self.slots[at] = (self.mark, self.rows.len() as u32);
                    self.rows.push((row, 1));
                    break;
                }
                let (found, count) = &mut self.rows[position as usize];
                if *found == row {
                    *count += 1;
                    break;
                }
                at = (at + 1) & (self.slots.len() - 1);
            }
        }
        &self.rows
    }
}

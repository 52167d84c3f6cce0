//! Settings of a model and its training.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::kernel::Rule;
use crate::features::Features;
use crate::words::Words;

/// The output layer and its loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// Probabilities that sum to 1. The loss is the cross-entropy; each of the n labels of a text has probability 1/n.
    Softmax,
    /// Probabilities that sum to 1, as products along the paths of a tree of labels. The loss is the mean cross-entropy of the
    /// labels of a text. A step takes time by the logarithm of the number of labels.
    #[serde(rename = "hierarchical-softmax")]
    HierarchicalSoftmax,
    /// An independent probability per label. The loss is the sum of the binary cross-entropies.
    Bce,
}

/// How weights are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// AdaGrad (Duchi et al. 2011).
    Adagrad,
    /// Adam (Kingma & Ba 2015), whose moments change only for the rows of the text.
    #[serde(rename = "adam")]
    #[value(name = "adam")]
    LazyAdam,
}

impl Optimizer {
    /// Parts of a row: weights and moments.
    pub(crate) fn parts(self) -> usize {
        match self {
            Self::Sgd => 1,
            Self::Adagrad => 2,
            Self::LazyAdam => 3,
        }
    }
}

/// The learning rate over a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// From the rate to 0.
    Linear,
    /// Always the rate.
    Constant,
}

/// Settings of a model and its training.
#[derive(Clone, Debug, PartialEq)]
pub struct FastTextSettings {
    /// How lines are split.
    pub words: Words,
    /// Which words and n-grams have a row.
    pub features: Features,
    /// Embedding dimension.
    pub dim: usize,
    /// The loss.
    pub loss: Loss,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The schedule of the learning rate.
    pub schedule: Schedule,
    /// Learning rate of the first step.
    pub rate: f32,
    /// Number of epochs.
    pub epochs: u32,
    /// Factor of the squared weights in the loss: λ/2 · w² for each weight of the output layer and of the text's rows.
    /// With hierarchical softmax, of the output layer only for the inner nodes above the labels of the text.
    pub l2: f32,
    /// Factors of the losses of texts by their label, whose mean a text with several labels has; empty if all are 1.
    pub label_weights: Vec<f32>,
    /// Probability with which an element of the mean is 0 in a step. The others are divided by 1 - dropout.
    pub dropout: f32,
    /// Threshold t of word subsampling: a word of relative frequency f is kept with probability √(t/f) + t/f, as in
    /// word2vec. A dropped word has no part in n-grams. 0 keeps all words.
    pub subsampling: f32,
    /// Number of threads.
    pub threads: usize,
    /// Whether two trainings with the same number of threads give the same bits.
    pub is_deterministic: bool,
    /// Seed of weights, order, dropout and subsampling.
    pub seed: u64,
    /// Maximum memory of all tables in bytes.
    pub memory_bytes: u64,
    /// Maximum memory of the rows of all texts in bytes. If they exceed it, or exceed `memory_bytes` together with the
    /// texts and the tables, the rows of a text are computed in each epoch.
    pub lists_bytes: usize,
}

impl Default for FastTextSettings {
    /// fastText's settings for classification, except the dimension.
    fn default() -> Self {
        Self {
            words: Words::Spaces,
            features: Features::default(),
            dim: 10,
            loss: Loss::Softmax,
            optimizer: Optimizer::Sgd,
            schedule: Schedule::Linear,
            rate: 0.1,
            epochs: 5,
            l2: 0.0,
            label_weights: Vec::new(),
            dropout: 0.0,
            subsampling: 0.0,
            threads: 1,
            is_deterministic: false,
            seed: 0,
            memory_bytes: u64::MAX,
            lists_bytes: 2 << 30,
        }
    }
}

impl FastTextSettings {
    /// The learning rate after `n_done` of `n_total` texts of all epochs.
    pub(crate) fn rate_at(&self, n_done: u64, n_total: u64) -> f32 {
        match self.schedule {
            Schedule::Linear => self.rate * (1.0 - n_done as f64 / n_total.max(1) as f64) as f32,
            Schedule::Constant => self.rate,
        }
    }

    /// The update of a step. `step` counts from 1.
    pub(crate) fn rule(&self, rate: f32, step: u64) -> Rule {
        let l2 = self.l2;
        match self.optimizer {
            Optimizer::Sgd => Rule::Sgd { rate, l2 },
            // PyTorch's defaults.
            Optimizer::Adagrad => Rule::Adagrad { rate, l2, epsilon: 1e-10 },
            Optimizer::LazyAdam => {
                let (beta_1, beta_2) = (0.9_f32, 0.999_f32);
                let correction = |beta: f32| 1.0 - f64::from(beta).powf(step as f64);
                let rate = (f64::from(rate) / correction(beta_1)) as f32;
                Rule::Adam { rate, l2, beta_1, beta_2, epsilon: 1e-8, root: correction(beta_2).sqrt() as f32 }
            }
        }
    }
}

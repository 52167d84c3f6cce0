//! Trains a model on texts.

use scoring::Choice;

use super::base::Base;
use super::calibration::{Scored, Sigmoid};
use super::descent::Threads;
use super::dual::{self, Problem, Trained};
use super::matrix::{NgramMatrix, Row};
use super::model::{LinearModel, Outputs, StoredModel};
use super::row_index::RowIndex;
use super::settings::{LinearSettings, MarginLoss, NgramTable, Penalty, Weighting};
use super::{named, parallel, sparse, weights};
use crate::error::{Error, Result};
use crate::names::Names;
use crate::texts::{Texts, weight_of};
use crate::words::Words;

/// A step of the training that is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearProgress {
    /// The n-grams of all texts are numbered.
    Numbered {
        /// Number of n-grams with a row.
        n_rows: usize,
    },
    /// All classifiers are trained.
    Trained {
        /// Number of classifiers.
        n_classifiers: usize,
    },
}

/// Trains a model on texts that were split as `words`.
///
/// Two labels, of which each text has one, have one classifier. Otherwise each label has a classifier that distinguishes
/// its texts from all others. Several classifiers are trained at the same time, by one thread each. A single classifier
/// is trained by all threads without locks, or by one if [`LinearSettings::is_deterministic`].
///
/// # Errors
/// If a setting is out of range, there are no texts, the n-grams do not fit into memory, or the temporary file of the
/// texts fails.
pub fn train(
    texts: &Texts,
    words: Words,
    settings: &LinearSettings,
    progress: impl FnMut(LinearProgress),
) -> Result<LinearModel> {
    Numbered::of(texts, settings, None)?.train(texts, words, settings, &[], progress, &|| false)
}

/// The numbered n-grams of all texts, for several trainings with other weights and losses.
#[derive(Debug)]
pub struct Numbered {
    matrix: NgramMatrix,
    rows: RowIndex,
    settings: LinearSettings,
    base: Option<Base>,
}

impl Numbered {
    /// Numbers the n-grams of all texts, and those of the model from which trainings start, if there is one. It has hashed
    /// n-grams of the same settings, and the labels of the texts.
    ///
    /// # Errors
    /// As of [`train`], and if the model has other labels, or exact n-grams.
    pub fn of(texts: &Texts, settings: &LinearSettings, model: Option<&LinearModel>) -> Result<Self> {
        settings.check()?;
        if texts.n_texts() == 0 {
            return Err(Error::NoTexts { n_unlabelled: texts.counts().n_unlabelled });
        }
        let (matrix, rows) = NgramMatrix::of(texts, settings, model)?;
        let of = |model| {
            Base::of(model, &rows, texts.dictionary.labels())
                .ok_or_else(|| other_model("other labels or n-grams"))
        };
        Ok(Self { base: model.map(of).transpose()?, matrix, rows, settings: *settings })
    }

    /// Whether n-grams are numbered in the same way with these settings.
    pub fn is_for(&self, settings: &LinearSettings) -> bool {
        let key = |of: &LinearSettings| (of.ngrams, of.gap, of.ending, of.table, of.texts_min, of.counting);
        key(&self.settings) == key(settings)
    }

    /// Trains a model on the texts that were numbered, as [`train`] does. `label_weights` are the factors of the losses of
    /// texts by their label, whose mean a text with several labels has; empty if all are 1. All threads call `is_stopped`
    /// often; if it returns true, the training ends with an error.
    ///
    /// # Errors
    /// As of [`train`], and if the training was stopped.
    ///
    /// # Panics
    /// If the n-grams are not numbered for these settings.
    pub fn train(
        &self,
        texts: &Texts,
        words: Words,
        settings: &LinearSettings,
        label_weights: &[f32],
        progress: impl FnMut(LinearProgress),
        is_stopped: &(impl Fn() -> bool + Sync),
    ) -> Result<LinearModel> {
        settings.check()?;
        assert!(self.is_for(settings), "n-grams that are numbered for these settings");
        classifiers(self, texts, words, settings, label_weights, progress, is_stopped)
    }
}

fn other_model(found: &str) -> Error {
    let expected = "a model of the labels of the texts, with hashed n-grams of the same settings";
    Error::Setting { name: "the initial model", found: found.to_owned(), expected }
}

fn classifiers(
    numbered: &Numbered,
    texts: &Texts,
    words: Words,
    settings: &LinearSettings,
    label_weights: &[f32],
    mut progress: impl FnMut(LinearProgress),
    is_stopped: &(impl Fn() -> bool + Sync),
) -> Result<LinearModel> {
    let Numbered { matrix, rows, base, .. } = numbered;
    progress(LinearProgress::Numbered { n_rows: matrix.n_rows });
    let labels = texts.dictionary.labels().clone();
    let outputs = Outputs::of(texts);
    if base.as_ref().is_some_and(|base| base.outputs != outputs) {
        return Err(other_model("one of another number of labels per text"));
    }
    let n = outputs.n_classifiers(labels.len());
    let needed = 4 * n as u64 * matrix.n_rows as u64;
    if needed > settings.memory_bytes {
        return Err(Error::Memory { needed, max: settings.memory_bytes });
    }

    let shared = SharedFactors::of(matrix, settings, label_weights);
    let (at_once, n_threads) =
        if n > 1 || settings.is_deterministic { (settings.threads, 1) } else { (1, settings.threads) };
    let threads = Threads { n: n_threads, is_stopped };
    let of = |label: usize| {
        (!is_stopped()).then(|| classifier(numbered, &shared, label as u32, settings, threads))
    };
    let trained: Option<Vec<_>> = parallel::map(at_once, n, of).into_iter().collect();
    let Some(trained) = trained.filter(|_| !is_stopped()) else {
        return Err(Error::Stopped);
    };
    progress(LinearProgress::Trained { n_classifiers: n });

    let mut stored = StoredModel {
        settings: *settings,
        words,
        label_counts: texts.dictionary.label_counts(),
        labels,
        classes: texts.dictionary.classes().clone(),
        outputs,
        rows: rows.keys(),
        vocabulary: if settings.table == NgramTable::Exact {
            texts.dictionary.words().clone()
        } else {
            Names::default()
        },
        frequencies: Vec::new(),
        weights: vec![0.0; n * matrix.n_rows],
        biases: trained.iter().map(|(trained, _)| trained.bias).collect(),
        sigmoids: trained.iter().map(|(_, sigmoid)| *sigmoid).collect(),
        choice: Choice::default(),
        named: Vec::new(),
    };
    for (classifier, (trained, _)) in trained.iter().enumerate() {
        for (to, weight) in stored.weights.chunks_exact_mut(n).zip(&trained.weights) {
            to[classifier] = *weight;
        }
    }
    if settings.is_normalized && settings.weighting == Weighting::TfIdf {
        stored.frequencies = shared.factors;
    }
    stored.named = named::strongest(texts, matrix, &stored, rows, settings.n_named)?;
    Ok(LinearModel { dictionary: stored.dictionary(), stored, rows: rows.clone() })
}

/// What all classifiers share.
struct SharedFactors {
    /// Number of texts of each row; empty if it is not used.
    counts: Vec<u32>,
    /// Factors of rows that do not depend on the label.
    factors: Vec<f32>,
    /// Factors of texts.
    scales: Vec<f32>,
    /// Factors of the losses of texts: C times the weight of the text.
    costs: Vec<f32>,
}

impl SharedFactors {
    fn of(matrix: &NgramMatrix, settings: &LinearSettings, label_weights: &[f32]) -> Self {
        let counts = match settings.weighting {
            Weighting::None => Vec::new(),
            Weighting::NaiveBayes { .. } | Weighting::TfIdf => matrix.count_texts(settings.threads, |_| true),
        };
        let factors = match settings.weighting {
            Weighting::TfIdf => weights::inverse_frequencies(&counts, matrix.n_texts()),
            Weighting::NaiveBayes { .. } | Weighting::None => vec![1.0; matrix.n_rows],
        };
        let scale = |text: Row<'_>| {
            if !settings.is_normalized {
                return 1.0;
            }
            let square = |(at, row): (usize, &u32)| (text.value(at) * factors[*row as usize]).powi(2);
            let squares: f32 = text.rows.iter().enumerate().map(square).sum();
            if squares > 0.0 { squares.sqrt().recip() } else { 1.0 }
        };
        let scales = matrix.texts().map(scale).collect();
        let costs =
            matrix.texts().map(|text| settings.cost * weight_of(text.labels, label_weights)).collect();
        Self { counts, factors, scales, costs }
    }
}

/// Trains the classifier of a label.
fn classifier(
    Numbered { matrix, base, .. }: &Numbered,
    shared: &SharedFactors,
    label: u32,
    settings: &LinearSettings,
    threads: Threads<'_>,
) -> (Trained, Sigmoid) {
    let is_positive = |text: Row<'_>| text.labels.contains(&label);
    let ratios = match settings.weighting {
        Weighting::NaiveBayes { smoothing } => {
            let with = matrix.count_texts(threads.n, is_positive);
            Some(weights::naive_bayes(&with, &shared.counts, smoothing))
        }
        Weighting::TfIdf | Weighting::None => None,
    };
    let factors = ratios.as_deref().unwrap_or(&shared.factors);
    let SharedFactors { scales, costs, .. } = shared;
    let bases = base.as_ref().map(|base| base.scores(matrix, scales, label as usize)).unwrap_or_default();
    let problem = Problem { matrix, factors, scales, costs, bases: &bases };
    let (mut trained, own) = match settings.penalty {
        Penalty::L2 => dual::train(&problem, &is_positive, settings, threads),
        Penalty::L1 => {
            let trained = sparse::train(&problem, &is_positive, settings, threads);
            (trained, vec![0.0; matrix.n_texts()])
        }
    };
    if let Some(base) = base {
        base.add_to(&mut trained, label as usize);
    }
    let sigmoid = match settings.loss {
        MarginLoss::Logistic => Sigmoid::LOGISTIC,
        MarginLoss::SquaredHinge => {
            let of_texts = matrix.texts().zip(scales).zip(costs).zip(own);
            let scores = of_texts.map(|(((text, scale), cost), own)| {
                let value = |(at, row): (usize, &u32)| text.value(at) * trained.weights[*row as usize];
                let score = scale * text.rows.iter().enumerate().map(value).sum::<f32>() + trained.bias;
                let is_positive = is_positive(text);
                let score = if is_positive { score - own } else { score + own };
                Scored { score, is_positive, weight: cost / settings.cost }
            });
            Sigmoid::fitted(&scores.collect::<Vec<_>>())
        }
    };
    (trained, sigmoid)
}

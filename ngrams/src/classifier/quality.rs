//! Converts the labels and the predictions of texts into metrics.
//!
//! Texts with one label each, of at most five labels, have the metrics of `fit`, from crate `scoring`. Texts with more
//! labels, or with several each, have the accuracy and the macro metrics. In both cases there are precision and recall of the most probable
//! label, as the fastText program computes them: a text counts as right if its most probable label is one of its labels.

use std::collections::HashMap;

use classifiers::Labels;
use runs::training::{WRONG_MAX, WrongText};
use scoring::{
    CLASSES_MAX, Choice, Counted, Decision, Intervals, Measured, Metrics, OfClass, ProbabilityQuality,
    RowTexts, Scores, Scoring, class_intervals, intervals, label_intervals, metrics_of, scores_of,
};
use serde::Serialize;
use training::Result;

/// The smallest probability whose logarithm is used, so that the loss of a wrong and certain prediction is finite.
const PROBABILITY_MIN: f64 = 1e-12;

/// In place of a label that the model does not have.
const UNKNOWN: u32 = u32::MAX;

/// Counts of evaluated texts.
#[derive(Debug)]
pub struct Quality<'a> {
    labels: &'a Labels,
    /// Number of labels of the texts that the model does not have.
    n_unknown: usize,
    rows: u64,
    /// Texts with a probability that is not finite. No other count includes them.
    not_finite: u64,
    /// Texts whose most probable label is one of their own labels.
    right: u64,
    /// Labels of all texts, with those that the model does not have.
    gold: u64,
    loss: f64,
    of_labels: Vec<OfLabel>,
    /// The key of each text. Copies of a text have the same one.
    keys: Vec<u64>,
    /// Copies of each text, and how many of them are right, by key.
    copies: HashMap<u64, (u64, u64)>,
    /// Results of texts with one label each, if the labels are few.
    few: Option<Few>,
    /// The label and the most probable label of texts with one label each, and the losses of all texts; `None` if a text has
    /// several labels.
    single: Option<Vec<(u32, u32)>>,
    losses: Vec<f64>,
    /// The texts whose most probable label is none of their own: its probability, their index, and the label.
    wrong: Vec<(f32, u64, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfLabel {
    rows: u64,
    predicted: u64,
    right: u64,
}

#[derive(Debug)]
struct Few {
    decision: Decision,
    counted: Counted,
    losses: Vec<f64>,
}

/// The intervals, the quality of probabilities and the scores of texts with one label each.
type OfFew = (Option<Intervals>, Option<ProbabilityQuality>, Option<(Decision, Scores)>);

/// The metrics of texts.
#[derive(Debug, Serialize)]
pub struct Evaluated {
    /// Metrics that depend on the number of labels.
    #[serde(flatten)]
    pub metrics: Measured,
    /// Precision at 1: the share of texts whose most probable label is one of their own labels.
    pub precision_at_1: f64,
    /// The same texts, divided by the labels of all texts.
    pub recall_at_1: f64,
    /// Number of distinct texts: texts that are equal after cleaning count once.
    pub distinct_texts: u64,
    /// Accuracy if each distinct text counts once: the mean over texts of the share of their copies that are right.
    pub distinct_accuracy: f64,
    /// Number of copies of the text that has the most.
    #[serde(skip)]
    pub most_copies: u64,
    /// The most frequent label, and the share of texts that have it.
    #[serde(skip)]
    pub largest: (String, f64),
    /// Metrics of each label.
    pub classes: Vec<Named>,
    /// The 95 % confidence intervals, from resamples of distinct texts; `null` if a text has several labels.
    pub intervals: Option<Intervals>,
    /// The quality of probabilities; `null` for more than five labels.
    pub probabilities: Option<ProbabilityQuality>,
    /// The calibration and the threshold of the model, if it has them.
    #[serde(flatten)]
    pub choice: Choice,
    /// The scores of all texts, and how they become labels, if each text has one label, of at most five.
    #[serde(skip)]
    pub scores: Option<(Decision, Scores)>,
    /// Without scores, the texts that are predicted wrongly with the highest probabilities.
    #[serde(skip)]
    pub wrong: Vec<WrongText>,
}

/// Metrics of a label.
#[derive(Debug, Serialize)]
pub struct Named {
    /// The label.
    pub name: String,
    #[serde(flatten)]
    metrics: OfClass,
}

impl<'a> Quality<'a> {
    /// No texts. They will have `n_unknown` labels that the model does not have.
    pub fn new(labels: &'a Labels, n_unknown: usize) -> Self {
        let scoring = match labels.n_labels() {
            2 => Some(Scoring::Logit),
            n @ 3..=CLASSES_MAX => Some(Scoring::Classes { classes: n as u8 }),
            _ => None,
        };
        let decision = scoring.map(|scoring| labels.choice().decision(scoring));
        let few =
            decision.map(|decision| Few { decision, counted: Counted::new(decision), losses: Vec::new() });
        let of_labels = vec![OfLabel::default(); labels.n_labels()];
        Self {
            labels,
            n_unknown,
            rows: 0,
            not_finite: 0,
            right: 0,
            gold: 0,
            loss: 0.0,
            of_labels,
            keys: Vec::new(),
            copies: HashMap::new(),
            few,
            single: Some(Vec::new()),
            losses: Vec::new(),
            wrong: Vec::new(),
        }
    }

    /// Adds a text: the probability of each label before the calibration, the labels that it has, the number of its
    /// labels that the model does not have, and its key.
    pub fn add(&mut self, probabilities: &[f32], labels: &[u32], n_unknown: usize, key: u64) {
        if !probabilities.iter().all(|probability| probability.is_finite()) {
            self.not_finite += 1;
            return;
        }
        let predicted = self.labels.predicted(probabilities);
        let is_right = labels.contains(&predicted);
        self.rows += 1;
        self.right += u64::from(is_right);
        self.keys.push(key);
        let (n_copies, n_right) = self.copies.entry(key).or_default();
        *n_copies += 1;
        *n_right += u64::from(is_right);
        self.gold += (labels.len() + n_unknown) as u64;
        let of_predicted = &mut self.of_labels[predicted as usize];
        of_predicted.predicted += 1;
        of_predicted.right += u64::from(is_right);
        labels.iter().for_each(|&label| self.of_labels[label as usize].rows += 1);
        let calibrated = self.labels.calibrated(probabilities);
        if !is_right {
            self.wrong.push((calibrated[predicted as usize], self.rows - 1, predicted));
        }
        let loss = loss(&calibrated, labels, n_unknown);
        self.loss += loss;
        self.losses.push(loss);
        match (labels, n_unknown, &mut self.single) {
            (&[label], 0, Some(single)) => single.push((label, predicted)),
            ([], 1, Some(single)) => single.push((UNKNOWN, predicted)),
            _ => self.single = None,
        }
        match (labels, n_unknown, &mut self.few) {
            (&[label], 0, Some(few)) => {
                few.counted.add(&self.labels.outputs(probabilities), self.labels.place(label) as u8, loss);
                few.losses.push(loss);
            }
            _ => self.few = None,
        }
    }

    /// The metrics, their intervals, and the quality of probabilities. Errors: as of [`Self::measured`].
    pub fn finish(self) -> Result<Evaluated> {
        let metrics = self.measured()?;
        let classes = self
            .labels
            .in_order()
            .map(|label| Named {
                name: self.labels.name(label).to_owned(),
                metrics: self.of_labels[label as usize].metrics(),
            })
            .collect();
        let recall_at_1 = self.right as f64 / (self.gold as f64).max(1.0);
        let precision_at_1 = self.precision_at_1();
        let (distinct_texts, most_copies) =
            (self.copies.len() as u64, self.copies.values().map(|(copies, _)| *copies).max().unwrap_or(0));
        // The order of a map is random, and so would be the last bits of a sum of fractions.
        let mut shares: Vec<f64> = self.copies.values().map(|&(n, right)| right as f64 / n as f64).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let distinct_accuracy = shares.iter().sum::<f64>() / distinct_texts as f64;
        let largest = self.largest();
        let (intervals, probabilities, scores) = match (self.few, &self.single) {
            (Some(few), _) => few.finish(&self.keys),
            // The rows of each label must be known.
            (None, Some(single)) if self.n_unknown < 2 => {
                (Some(label_intervals(single, &self.losses, RowTexts::Keys(&self.keys))), None, None)
            }
            (None, _) => (None, None, None),
        };
        Ok(Evaluated {
            metrics,
            precision_at_1,
            recall_at_1,
            distinct_texts,
            distinct_accuracy,
            most_copies,
            largest,
            classes,
            intervals,
            probabilities,
            choice: self.labels.choice(),
            wrong: if scores.is_some() { Vec::new() } else { most_wrong(self.labels, self.wrong) },
            scores,
        })
    }

    /// The metrics alone, which take less time. Errors: there are no texts, or a probability is not finite.
    pub fn measured(&self) -> Result<Measured> {
        if self.not_finite > 0 {
            let (found, rows) = (self.not_finite, self.rows + self.not_finite);
            return Err(scoring::Error::NotFinite { found, rows }.into());
        }
        if self.rows == 0 {
            return Err(scoring::Error::NothingEvaluated.into());
        }
        if let Some(few) = &self.few {
            return Ok(Measured::Few(few.metrics()?));
        }
        let all = self.of_labels.iter().map(OfLabel::metrics);
        let present: Vec<OfClass> = all.filter(|of| of.rows > 0).collect();
        let mean = |value: fn(&OfClass) -> f64| {
            // All metrics of a label that the model does not have are 0.
            let n = present.len() + self.n_unknown;
            present.iter().fold(0.0, |sum, of| sum + value(of)) / (n as f64).max(1.0)
        };
        Ok(Measured::Many {
            loss: self.loss / self.rows as f64,
            accuracy: self.precision_at_1(),
            f1: mean(|of| of.f1),
            precision: mean(|of| of.precision),
            recall: mean(|of| of.recall),
            rows: self.rows,
        })
    }

    /// The most frequent label, and the share of texts that have it.
    fn largest(&self) -> (String, f64) {
        let rows = |label: u32| self.of_labels[label as usize].rows;
        // The first of equally frequent ones.
        let largest =
            self.labels.in_order().reduce(|one, other| if rows(other) > rows(one) { other } else { one });
        largest.map_or((String::new(), 0.0), |label| {
            (self.labels.name(label).to_owned(), rows(label) as f64 / self.rows as f64)
        })
    }

    fn precision_at_1(&self) -> f64 {
        self.right as f64 / self.rows as f64
    }
}

impl OfLabel {
    fn metrics(&self) -> OfClass {
        let ratio = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
        OfClass {
            precision: ratio(self.right, self.predicted),
            recall: ratio(self.right, self.rows),
            f1: ratio(2 * self.right, self.predicted + self.rows),
            rows: self.rows,
        }
    }
}

impl Few {
    fn metrics(&self) -> Result<Metrics> {
        let Self { decision, counted, .. } = self;
        Ok(metrics_of(decision.scoring(), &counted.sums(), &mut counted.ranked().to_vec())?)
    }

    fn finish(self, keys: &[u64]) -> OfFew {
        let Self { decision, counted, losses } = self;
        let places: Vec<i64> = (0..losses.len() as i64).collect();
        let scores = scores_of(decision.scoring(), &places, counted.ranked());
        let (intervals, probabilities) = match &scores {
            Scores::Label(scores) => (
                intervals(decision, scores, &losses, RowTexts::Keys(keys)),
                ProbabilityQuality::of(decision, scores),
            ),
            Scores::Classes(scores) => (
                class_intervals(decision.calibrator(), scores, &losses, RowTexts::Keys(keys)),
                Some(ProbabilityQuality::of_classes(decision.calibrator(), scores)),
            ),
        };
        (Some(intervals), probabilities, Some((decision, scores)))
    }
}

/// The texts that are predicted wrongly with the highest probabilities, without their labels and words.
fn most_wrong(labels: &Labels, mut wrong: Vec<(f32, u64, u32)>) -> Vec<WrongText> {
    // Of equal probabilities, the first text is the first.
    wrong.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    wrong.truncate(WRONG_MAX);
    let described = |(probability, text, predicted)| WrongText {
        text,
        labels: Vec::new(),
        predicted: labels.name(predicted).to_owned(),
        probability,
        hash: None,
        words: Vec::new(),
    };
    wrong.into_iter().map(described).collect()
}

/// The mean negative logarithm of the probability of the labels. A label that the model does not have has the smallest
/// probability.
fn loss(probabilities: &[f32], labels: &[u32], n_unknown: usize) -> f64 {
    let of_label = |&label: &u32| -f64::from(probabilities[label as usize]).max(PROBABILITY_MIN).ln();
    let known: f64 = labels.iter().map(of_label).sum();
    let unknown = -PROBABILITY_MIN.ln() * n_unknown as f64;
    (known + unknown) / (labels.len() + n_unknown).max(1) as f64
}

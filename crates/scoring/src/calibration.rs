//! Fits and applies the calibration of probabilities.
//!
//! A calibration changes the log-odds x of a prediction to a x + b, with a > 0, so it keeps the order of rows.
//!
//! - Temperature (Guo et al. 2017, "On Calibration of Modern Neural Networks"): a = 1 / temperature, b = 0. It has the
//!   highest likelihood on the validation split. With several classes, it divides each class's logit, the logarithm of its
//!   probability. It changes no predicted class.
//! - Platt (Platt 1999, "Probabilistic Outputs for Support Vector Machines", with the corrections of Lin, Lin and Weng
//!   2007): a and b have the highest likelihood for the targets (P + 1) / (P + 2) and 1 / (N + 2) in place of 1 and 0,
//!   where P and N are the numbers of positive and negative rows.
//!
//! Both are fitted by Newton's method in 64-bit floats, over the rows in the order of the dataset.

use serde::{Deserialize, Serialize};

use crate::scoring::{ClassScore, Probabilities, RowScore, Scoring, sigmoid};

/// Limits of a temperature. If the validation split is separated without an error, the likelihood has its maximum at
/// temperature 0.
const TEMPERATURE_MIN: f64 = 0.05;
const TEMPERATURE_MAX: f64 = 20.0;

/// Maximum number of steps. Newton's method needs about ten.
pub(crate) const STEPS_MAX: usize = 100;

/// The smallest probability whose logarithm is used.
const PROBABILITY_MIN: f32 = f32::MIN_POSITIVE;

/// The method of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One number: the temperature.
    Temperature,
    /// Two numbers: slope and intercept.
    Platt,
}

/// A calibration of log-odds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Calibrator {
    /// Divides log-odds, or the logits of classes.
    Temperature(f64),
    /// Multiplies log-odds by the slope and adds the intercept.
    Platt {
        /// Above 0.
        slope: f64,
        /// Any finite number.
        intercept: f64,
    },
}

impl Calibrator {
    /// Calibrated log-odds.
    pub fn log_odds(self, log_odds: f64) -> f64 {
        match self {
            Self::Temperature(temperature) => log_odds / temperature,
            Self::Platt { slope, intercept } => slope * log_odds + intercept,
        }
    }

    /// The slope and the intercept of calibrated log-odds, for graphs that compute them.
    pub fn line(self) -> (f64, f64) {
        match self {
            Self::Temperature(temperature) => (1.0 / temperature, 0.0),
            Self::Platt { slope, intercept } => (slope, intercept),
        }
    }

    /// Calibrated probabilities of three or more classes, for which there is only a temperature.
    pub fn classes(self, probabilities: &Probabilities) -> Probabilities {
        let Self::Temperature(temperature) = self else { return *probabilities };
        let logits: Vec<f64> = logits(probabilities).map(|logit| logit / temperature).collect();
        Probabilities::of_logits(&logits)
    }

    /// Refuses numbers that no calibration has. A file may contain any. Returns the name, the value and the valid values.
    pub fn check(self) -> Result<(), (&'static str, f64, &'static str)> {
        let is_positive = |number: f64| number.is_finite() && number >= f64::MIN_POSITIVE;
        match self {
            Self::Temperature(found) if !is_positive(found) => {
                Err(("temperature", found, "a number above 0"))
            }
            Self::Platt { slope: found, .. } if !is_positive(found) => {
                Err(("slope", found, "a number above 0"))
            }
            Self::Platt { intercept: found, .. } if !found.is_finite() => {
                Err(("intercept", found, "a finite number"))
            }
            _ => Ok(()),
        }
    }
}

/// Fits a calibration to the scores of the validation split, in the order of the dataset. `None` if scores have no
/// probability, or if higher scores do not go with label 1, so that no calibration keeps the order of rows.
pub fn calibrate(method: Method, scoring: Scoring, scores: &[RowScore]) -> Option<Calibrator> {
    let log_odds: Vec<f64> = scores.iter().map(|row| scoring.log_odds(row.score)).collect::<Option<_>>()?;
    match method {
        Method::Temperature => {
            let logits: Vec<f64> = log_odds.iter().flat_map(|&log_odds| [0.0, log_odds]).collect();
            let labels: Vec<usize> = scores.iter().map(|row| usize::from(row.label)).collect();
            Some(calibrate_logits(2, &logits, &labels))
        }
        Method::Platt => {
            let (slope, intercept) = platt(&log_odds, scores);
            let platt = Calibrator::Platt { slope: rounded(slope), intercept: rounded(intercept) };
            platt.check().is_ok().then_some(platt)
        }
    }
}

/// Fits a temperature to the probabilities of the validation split, in the order of the dataset.
pub fn calibrate_classes(scores: &[ClassScore]) -> Calibrator {
    let n_classes = scores.first().map_or(1, |row| row.probabilities.all().len());
    let logits: Vec<f64> = scores.iter().flat_map(|row| logits(&row.probabilities)).collect();
    let labels: Vec<usize> = scores.iter().map(|row| usize::from(row.label)).collect();
    calibrate_logits(n_classes, &logits, &labels)
}

/// Fits a temperature to the validation split, from `n_classes` logits and the class of each row.
pub fn calibrate_logits(n_classes: usize, logits: &[f64], labels: &[usize]) -> Calibrator {
    Calibrator::Temperature(rounded(temperature(n_classes, logits, labels)))
}

/// The logarithm of each probability.
pub(crate) fn logits(probabilities: &Probabilities) -> impl Iterator<Item = f64> + '_ {
    probabilities.all().iter().map(|&probability| f64::from(probability.max(PROBABILITY_MIN)).ln())
}

/// A number with ten digits, which a JSON file keeps exactly.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

/// The temperature with the highest likelihood of the labels, for `n_classes` logits per row.
fn temperature(n_classes: usize, logits: &[f64], labels: &[usize]) -> f64 {
    // The negative log-likelihood is convex in 1 / temperature. Its slope at a row is the mean logit under the model's
    // probabilities minus the logit of the label, and its curvature the variance of the logit.
    let derivatives = |inverse: f64| {
        let (mut slope, mut curvature) = (0.0, 0.0);
        for (logits, &label) in logits.chunks_exact(n_classes).zip(labels) {
            let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
            for logit in logits {
                let weight = (inverse * (logit - largest)).exp();
                sum += weight;
                first += weight * (logit - largest);
                second += weight * (logit - largest) * (logit - largest);
            }
            let mean = first / sum;
            slope += mean - (logits[label] - largest);
            curvature += second / sum - mean * mean;
        }
        (slope, curvature)
    };
    // Newton's method between two bounds that enclose the root of the slope. A step that leaves them is replaced by
    // bisection.
    let (mut low, mut high) = (1.0 / TEMPERATURE_MAX, 1.0 / TEMPERATURE_MIN);
    let mut inverse = 1.0;
    for _ in 0..STEPS_MAX {
        let (slope, curvature) = derivatives(inverse);
        if slope > 0.0 {
            high = inverse;
        } else {
            low = inverse;
        }
        let step = inverse - slope / curvature;
        let next = if step > low && step < high { step } else { (low + high) / 2.0 };
        if slope == 0.0 || (next - inverse).abs() <= 1e-12 * inverse {
            break;
        }
        inverse = next;
    }
    1.0 / inverse
}

/// Platt's slope and intercept.
fn platt(log_odds: &[f64], scores: &[RowScore]) -> (f64, f64) {
    let positive = scores.iter().filter(|row| row.label == 1).count() as f64;
    let negative = scores.len() as f64 - positive;
    let targets = [1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)];
    let target = |row: &RowScore| targets[usize::from(row.label == 1)];
    let loss = |slope: f64, intercept: f64| {
        let of_row = |(x, row): (&f64, &RowScore)| {
            let z = slope * x + intercept;
            z.max(0.0) + (-z.abs()).exp().ln_1p() - target(row) * z
        };
        log_odds.iter().zip(scores).map(of_row).sum::<f64>()
    };
    let (mut slope, mut intercept) = (0.0, ((positive + 1.0) / (negative + 1.0)).ln());
    let mut lowest = loss(slope, intercept);
    for _ in 0..STEPS_MAX {
        // Gradient and Hessian matrix. The ridge keeps the matrix positive definite.
        let (mut g, mut h) = ([0.0; 2], [1e-12, 0.0, 1e-12]);
        for (&x, row) in log_odds.iter().zip(scores) {
            let probability = sigmoid(slope * x + intercept);
            let (difference, variance) = (probability - target(row), probability * (1.0 - probability));
            g = [g[0] + difference * x, g[1] + difference];
            h = [h[0] + variance * x * x, h[1] + variance * x, h[2] + variance];
        }
        let determinant = h[0] * h[2] - h[1] * h[1];
        let step = [(h[2] * g[0] - h[1] * g[1]) / determinant, (h[0] * g[1] - h[1] * g[0]) / determinant];
        // The step is halved until the loss falls. If it never does, the minimum is reached.
        let found = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(60).find_map(|share| {
            let (slope, intercept) = (slope - share * step[0], intercept - share * step[1]);
            let found = loss(slope, intercept);
            (found < lowest).then_some((slope, intercept, found))
        });
        let Some(found) = found else { break };
        (slope, intercept, lowest) = found;
    }
    (slope, intercept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Decision;
    use crate::quality::{ProbabilityQuality, Quality};

    /// Scores for evenly spaced quantiles of log-odds, and of labels with these log-odds after `change`.
    fn rows(change: impl Fn(f64) -> f64) -> Vec<RowScore> {
        let mut rows = Vec::new();
        for at in 0..200 {
            let log_odds = (f64::from(at) - 99.5) / 25.0;
            let positive = (50.0 * sigmoid(change(log_odds))).round() as usize;
            rows.extend((0..50).map(|n| RowScore {
                row: 0,
                label: u8::from(n < positive),
                score: log_odds as f32,
            }));
        }
        rows
    }

    fn likelihood(decision: Decision, rows: &[RowScore]) -> f64 {
        let of_row = |row: &RowScore| {
            let probability = decision.probability(row.score).unwrap();
            if row.label == 1 { probability.ln() } else { (1.0 - probability).ln() }
        };
        rows.iter().map(of_row).sum()
    }

    #[test]
    fn the_temperature_that_made_the_labels_is_found() {
        for expected in [0.5, 1.0, 2.5] {
            let rows = rows(|log_odds| log_odds / expected);
            let Some(Calibrator::Temperature(found)) = calibrate(Method::Temperature, Scoring::Logit, &rows)
            else {
                panic!("no temperature");
            };
            assert!((found / expected - 1.0).abs() < 0.03, "{found}, expected {expected}");
            let of =
                |temperature| Decision::new(Scoring::Logit, Some(Calibrator::Temperature(temperature)), None);
            let best = likelihood(of(found), &rows);
            assert!(
                best >= likelihood(of(found * 1.001), &rows) && best >= likelihood(of(found / 1.001), &rows)
            );
        }
    }

    #[test]
    fn the_slope_and_the_intercept_that_made_the_labels_are_found() {
        let rows = rows(|log_odds| 0.6 * log_odds - 0.8);
        let Some(Calibrator::Platt { slope, intercept }) = calibrate(Method::Platt, Scoring::Logit, &rows)
        else {
            panic!("no calibration");
        };
        assert!((slope - 0.6).abs() < 0.02 && (intercept + 0.8).abs() < 0.02, "{slope} {intercept}");
    }

    #[test]
    fn a_calibration_lowers_the_error_of_probabilities() {
        let rows = rows(|log_odds| 0.4 * log_odds + 0.5);
        for method in [Method::Temperature, Method::Platt] {
            let before = Decision::from(Scoring::Logit);
            let after = Decision::new(Scoring::Logit, calibrate(method, Scoring::Logit, &rows), None);
            let found = ProbabilityQuality::of(after, &rows).unwrap();
            let before =
                found.uncalibrated.filter(|found| Some(*found) == Quality::of(before, &rows)).unwrap();
            assert!(found.quality.calibration_error < before.calibration_error, "{method:?}: {found:?}");
            assert!(found.quality.brier < before.brier, "{method:?}: {found:?}");
        }
    }

    #[test]
    fn the_temperature_of_several_classes_has_the_highest_likelihood() {
        let (mut logits, mut labels) = (Vec::new(), Vec::new());
        for at in 0..300u32 {
            let row = [f64::from(at % 7), f64::from(at % 5) * 0.7, f64::from(at % 3)];
            // Half of the labels are those of the largest logit.
            let largest = (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            labels.push(if at % 2 == 0 { largest } else { (at / 2 % 3) as usize });
            logits.extend(row);
        }
        let loss = |temperature: f64| {
            let of_row = |(row, &label): (&[f64], &usize)| {
                let sum: f64 = row.iter().map(|logit| (logit / temperature).exp()).sum();
                sum.ln() - row[label] / temperature
            };
            logits.chunks(3).zip(&labels).map(of_row).sum::<f64>()
        };
        let found = temperature(3, &logits, &labels);
        assert!((TEMPERATURE_MIN..TEMPERATURE_MAX).contains(&found));
        assert!(loss(found) <= loss(found * 1.001) && loss(found) <= loss(found / 1.001), "{found}");
    }

    #[test]
    fn scores_without_an_error_have_the_lowest_temperature() {
        let rows: Vec<RowScore> =
            [(-1.0, 0), (1.0, 1)].map(|(score, label)| RowScore { row: 0, label, score }).to_vec();
        let Some(Calibrator::Temperature(found)) = calibrate(Method::Temperature, Scoring::Logit, &rows)
        else {
            panic!("no temperature");
        };
        assert!((found - TEMPERATURE_MIN).abs() < 1e-6, "{found}");
        // Platt's targets keep the slope finite.
        let Some(Calibrator::Platt { slope, .. }) = calibrate(Method::Platt, Scoring::Logit, &rows) else {
            panic!("no calibration");
        };
        assert!((slope - 2.0f64.ln()).abs() < 1e-6, "{slope}");
    }

    #[test]
    fn scores_that_fall_with_the_label_have_no_platt_calibration() {
        assert_eq!(calibrate(Method::Platt, Scoring::Logit, &rows(|log_odds| -log_odds)), None);
        assert_eq!(calibrate(Method::Temperature, Scoring::Rating { positive_from: 4 }, &rows(|x| x)), None);
    }

    #[test]
    fn hostile_numbers_are_refused() {
        for hostile in [0.0, -1.0, f64::NAN, f64::INFINITY, 5e-324] {
            assert!(Calibrator::Temperature(hostile).check().is_err(), "{hostile}");
            assert!(Calibrator::Platt { slope: hostile, intercept: 0.0 }.check().is_err(), "{hostile}");
        }
        assert!(Calibrator::Platt { slope: 1.0, intercept: f64::INFINITY }.check().is_err());
        assert!(Calibrator::Platt { slope: 1.0, intercept: -1e300 }.check().is_ok());
    }
}

//! Quality of probabilities and confidence intervals for three or more classes.
//!
//! The Brier score is the sum over classes of the squared difference between probability and label (Brier 1950). The
//! calibration error compares the probability of the predicted class with the frequency at which it is right.
//!
//! The AUC of several classes is a mean of AUCs over the same rows, so they have to be resampled together. To first
//! order, a resample changes the mean by the mean of each row's influence (Efron 1982, "The Jackknife, the Bootstrap and
//! Other Resampling Plans"; for one AUC it gives the variance of DeLong, DeLong and Clarke-Pearson 1988). The interval is
//! that of the mean of these influences.

use crate::calibration::Calibrator;
use crate::curves::BINS;
use crate::intervals::{Interval, Intervals, RowTexts, of_confusion, of_mean};
use crate::quality::{ProbabilityQuality, Quality};
use crate::scoring::ClassScore;

impl ProbabilityQuality {
    /// The quality of the probabilities of three or more classes, which are not calibrated yet.
    pub fn of_classes(calibrator: Option<Calibrator>, scores: &[ClassScore]) -> Self {
        let before = quality(scores);
        match calibrator {
            None => Self { quality: before, uncalibrated: None },
            Some(calibrator) => {
                Self { quality: quality(&calibrated(calibrator, scores)), uncalibrated: Some(before) }
            }
        }
    }
}

fn calibrated(calibrator: Calibrator, scores: &[ClassScore]) -> Vec<ClassScore> {
    let of_row =
        |row: &ClassScore| ClassScore { probabilities: calibrator.classes(&row.probabilities), ..*row };
    scores.iter().map(of_row).collect()
}

fn quality(scores: &[ClassScore]) -> Quality {
    let n = scores.len().max(1) as f64;
    let brier = squared_errors(scores).iter().sum::<f64>() / n;
    // Rows, probabilities and right predictions per bin.
    let mut bins = [(0.0, 0.0); BINS];
    for row in scores {
        let probability = f64::from(row.probabilities.largest());
        let bin = &mut bins[((probability * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += probability;
        bin.1 += f64::from(u8::from(row.probabilities.predicted() == row.label));
    }
    let calibration_error =
        bins.iter().map(|(probability, right)| (probability - right).abs()).sum::<f64>() / n;
    Quality { brier, calibration_error }
}

fn squared_errors(scores: &[ClassScore]) -> Vec<f64> {
    let of_row = |row: &ClassScore| {
        let of_class = |(class, &probability): (usize, &f32)| {
            let label = f64::from(u8::from(class == usize::from(row.label)));
            (f64::from(probability) - label).powi(2)
        };
        row.probabilities.all().iter().enumerate().map(of_class).sum()
    };
    scores.iter().map(of_row).collect()
}

/// The intervals of an evaluation of three or more classes, as [`crate::intervals()`] for two.
pub fn class_intervals(
    calibrator: Option<Calibrator>,
    scores: &[ClassScore],
    losses: &[f64],
    texts: RowTexts<'_>,
) -> Intervals {
    let n_classes = scores.first().map_or(1, |row| row.probabilities.all().len());
    let cell =
        |row: &ClassScore| n_classes * usize::from(row.label) + usize::from(row.probabilities.predicted());
    let cells: Vec<usize> = scores.iter().map(cell).collect();
    let [accuracy, f1, precision, recall] = of_confusion(&cells, n_classes, texts);
    let errors = match calibrator {
        None => squared_errors(scores),
        Some(calibrator) => squared_errors(&calibrated(calibrator, scores)),
    };
    let auc = influences(scores).map(|influences| of_mean(&influences, texts));
    let auc = auc.map(|Interval(low, high)| Interval(low.max(0.0), high.min(1.0)));
    let (loss, brier) = (of_mean(losses, texts), Some(of_mean(&errors, texts)));
    Intervals { loss, accuracy, f1, precision, recall, auc, brier }
}

/// Per row, the mean AUC plus the row's influence on it; `None` if a class has no rows, or all.
fn influences(scores: &[ClassScore]) -> Option<Vec<f64>> {
    let n_classes = scores.first()?.probabilities.all().len();
    let n = scores.len() as f64;
    let mut influences = vec![0.0; scores.len()];
    let mut order: Vec<usize> = (0..scores.len()).collect();
    for class in 0..n_classes {
        let probability = |row: usize| scores[row].probabilities.all()[class];
        let has = |row: usize| usize::from(scores[row].label) == class;
        order.sort_by(|&one, &other| probability(one).total_cmp(&probability(other)));
        let with = order.iter().filter(|&&row| has(row)).count() as f64;
        let without = n - with;
        if with == 0.0 || without == 0.0 {
            return None;
        }
        // Per row, the fraction of the rows of the other kind that are in order with it, ties half.
        let mut shares = vec![0.0; scores.len()];
        let (mut with_below, mut without_below) = (0.0, 0.0);
        for equal in order.chunk_by(|&one, &other| probability(one) == probability(other)) {
            let with_here = equal.iter().filter(|&&row| has(row)).count() as f64;
            let without_here = equal.len() as f64 - with_here;
            for &row in equal {
                shares[row] = match has(row) {
                    true => (without_below + 0.5 * without_here) / without,
                    false => (with - with_below - 0.5 * with_here) / with,
                };
            }
            with_below += with_here;
            without_below += without_here;
        }
        let auc = (0..scores.len()).filter(|&row| has(row)).map(|row| shares[row]).sum::<f64>() / with;
        for (row, influence) in influences.iter_mut().enumerate() {
            let of_kind = if has(row) { with } else { without };
            *influence += (auc + n / of_kind * (shares[row] - auc)) / n_classes as f64;
        }
    }
    Some(influences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::calibrate_classes;
    use crate::classes::{ClassAccumulator, class_metrics};
    use crate::metrics::Metrics;
    use crate::scoring::Probabilities;

    /// Rows of three classes with random logits. The labels have their softmax as probabilities; the rows have the
    /// logits times `sharpness`.
    fn rows(n: u32, sharpness: f64) -> Vec<ClassScore> {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        let of_row = |row: u32| {
            let logits = [(); 3].map(|()| 4.0 * random());
            let truth = Probabilities::of_logits(&logits);
            let (draw, mut sum, mut label) = (random(), 0.0, 0);
            for &probability in &truth.all()[..2] {
                sum += f64::from(probability);
                label += u8::from(draw > sum);
            }
            ClassScore {
                row,
                label,
                probabilities: Probabilities::of_logits(&logits.map(|of| of * sharpness)),
            }
        };
        (0..n).map(of_row).collect()
    }

    fn metrics(rows: &[ClassScore]) -> Metrics {
        let mut accumulator = ClassAccumulator::new(3);
        rows.iter().for_each(|row| accumulator.add(&row.probabilities, row.label, 0.0));
        class_metrics(3, &accumulator.sums(), accumulator.ranked()).unwrap()
    }

    #[test]
    fn a_temperature_makes_probabilities_better_and_changes_no_class() {
        for sharpness in [0.3, 6.0] {
            let rows = rows(3_000, sharpness);
            let calibrator = calibrate_classes(&rows);
            let Calibrator::Temperature(found) = calibrator else { panic!("{calibrator:?}") };
            assert!((found / sharpness - 1.0).abs() < 0.1, "{found}, expected {sharpness}");
            let found = ProbabilityQuality::of_classes(Some(calibrator), &rows);
            let before = found.uncalibrated.unwrap();
            assert!(found.quality.brier < before.brier, "{found:?}");
            assert!(found.quality.calibration_error < before.calibration_error, "{found:?}");
            for (row, other) in rows.iter().zip(calibrated(calibrator, &rows)) {
                assert_eq!(row.probabilities.predicted(), other.probabilities.predicted());
            }
        }
    }

    #[test]
    fn the_mean_influence_is_the_mean_auc() {
        let rows = rows(500, 1.0);
        let influences = influences(&rows).unwrap();
        let mean = influences.iter().sum::<f64>() / influences.len() as f64;
        assert!((mean - metrics(&rows).auc.unwrap()).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn the_interval_of_the_auc_is_that_of_resampled_rows() {
        let rows = rows(300, 1.0);
        let mut state = 1u64;
        let mut aucs: Vec<f64> = (0..400)
            .map(|_| {
                let draw = |_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    rows[(state >> 33) as usize % rows.len()]
                };
                metrics(&(0..rows.len()).map(draw).collect::<Vec<_>>()).auc.unwrap()
            })
            .collect();
        aucs.sort_unstable_by(f64::total_cmp);
        let Interval(low, high) = class_intervals(None, &rows, &[1.0], RowTexts::Distinct).auc.unwrap();
        let width = aucs[389] - aucs[10];
        assert!(
            (low - aucs[10]).abs() < 0.15 * width && (high - aucs[389]).abs() < 0.15 * width,
            "{low} {high}"
        );
    }
}

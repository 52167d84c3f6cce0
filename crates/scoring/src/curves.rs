//! Converts scores into a ROC curve and a calibration curve.

use crate::decision::Decision;
use crate::scoring::RowScore;

/// Maximum points of a drawn ROC curve.
const ROC_POINTS: usize = 200;
/// Number of calibration bins.
pub const BINS: usize = 10;

/// Returns the ROC curve from (0, 0) to (1, 1): points (false positive rate, true positive rate) for falling
/// thresholds. `None` if all rows have the same label.
pub fn roc(scores: &[RowScore]) -> Option<Vec<(f64, f64)>> {
    let mut sorted: Vec<(f32, u8)> = scores.iter().map(|row| (row.score, row.label)).collect();
    sorted.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
    let positive = sorted.iter().filter(|row| row.1 == 1).count();
    let negative = sorted.len() - positive;
    if positive == 0 || negative == 0 {
        return None;
    }
    let (mut called, mut rightly) = (0usize, 0usize);
    let mut points = vec![(0.0, 0.0)];
    let mut drawn = 0;
    for equal in sorted.chunk_by(|one, other| one.0 == other.0) {
        called += equal.len();
        rightly += equal.iter().filter(|row| row.1 == 1).count();
        // At most ROC_POINTS points are kept, evenly spaced in rows, and always the last.
        let due = called * ROC_POINTS / sorted.len();
        if due > drawn || called == sorted.len() {
            drawn = due;
            points.push(((called - rightly) as f64 / negative as f64, rightly as f64 / positive as f64));
        }
    }
    Some(points)
}

/// Rows with similar predicted probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Number of rows.
    pub rows: u64,
    /// Their mean predicted probability.
    pub probability: f64,
    /// The fraction with label 1.
    pub positive: f64,
}

/// Observed frequencies per bin of predicted probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Bins of equal width from probability 0 to 1.
    pub bins: [Bin; BINS],
    /// Expected calibration error: the mean of |probability - fraction| over bins, weighted by rows.
    pub error: f64,
}

/// The calibration of these scores; `None` if scores are not probabilities.
pub fn calibration(decision: impl Into<Decision>, scores: &[RowScore]) -> Option<Calibration> {
    let decision = decision.into();
    let mut sums = [(0u64, 0.0, 0u64); BINS];
    for row in scores {
        let probability = decision.probability(row.score)?;
        let bin = &mut sums[((probability * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += 1;
        bin.1 += probability;
        bin.2 += u64::from(row.label);
    }
    let bins = sums.map(|(rows, probability, positive)| match rows {
        0 => Bin::default(),
        n => Bin { rows, probability: probability / n as f64, positive: positive as f64 / n as f64 },
    });
    let off = |bin: &Bin| (bin.probability - bin.positive).abs() * bin.rows as f64;
    let error = bins.iter().map(off).sum::<f64>() / scores.len().max(1) as f64;
    Some(Calibration { bins, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoring::Scoring;

    fn rows(scores: &[(f32, u8)]) -> Vec<RowScore> {
        scores.iter().map(|&(score, label)| RowScore { row: 0, label, score }).collect()
    }

    #[test]
    fn equal_scores_give_one_point_of_the_curve() {
        let found = roc(&rows(&[(2.0, 1), (1.0, 0), (-1.0, 1), (-1.0, 0), (-3.0, 0)])).unwrap();
        let third = 1.0 / 3.0;
        let expected = [(0.0, 0.0), (0.0, 0.5), (third, 0.5), (2.0 * third, 1.0), (1.0, 1.0)];
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-12,
                "{found:?}"
            );
        }
        assert_eq!(roc(&rows(&[(2.0, 1), (1.0, 1)])), None);
        assert_eq!(roc(&[]), None);
    }

    #[test]
    fn a_thinned_curve_keeps_the_area() {
        let many: Vec<(f32, u8)> =
            (0..50_000u32).map(|at| (at.wrapping_mul(2_654_435_761) as f32, (at % 3 == 0).into())).collect();
        let curve = roc(&rows(&many)).unwrap();
        assert!(curve.len() <= ROC_POINTS + 2);
        let area: f64 = curve.windows(2).map(|at| (at[1].0 - at[0].0) * (at[0].1 + at[1].1) / 2.0).sum();
        let mut accumulator = crate::metrics::Accumulator::default();
        many.iter().for_each(|&(score, label)| accumulator.add(Scoring::Logit, score, label, 0.0));
        assert!((area - accumulator.metrics().unwrap().auc.unwrap()).abs() < 1e-4, "{area}");
    }

    #[test]
    fn calibration_compares_probabilities_with_labels() {
        // Half of the rows with probability 0.75 are positive, and all rows with probability 1.
        let five = Scoring::FiveRatings { positive_from: 4 };
        let found = calibration(five, &rows(&[(0.75, 1), (0.75, 0), (1.0, 1), (0.0, 0)])).unwrap();
        assert_eq!(found.bins[7], Bin { rows: 2, probability: 0.75, positive: 0.5 });
        assert_eq!(found.bins[9], Bin { rows: 1, probability: 1.0, positive: 1.0 });
        assert_eq!(found.bins[0].rows, 1);
        assert_eq!(found.error, 0.125);
        assert_eq!(calibration(Scoring::Rating { positive_from: 4 }, &rows(&[(0.0, 1)])), None);
    }
}

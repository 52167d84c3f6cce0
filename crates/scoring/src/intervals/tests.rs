use super::*;
use crate::metrics::{Accumulator, Metrics};
use crate::scoring::Scoring;

/// A row drawn from known distributions: label 1 with probability 0.6, the score normal with mean 0.7 or -0.7.
fn row(random: &mut Stream) -> (f32, u8) {
    let label = u8::from(random.normal() > -0.253_347_1);
    let mean = if label == 1 { 0.7 } else { -0.7 };
    ((random.normal() + mean) as f32, label)
}

/// The loss of a row: its squared score, whose mean is known.
fn loss(score: f32) -> f64 {
    f64::from(score).powi(2)
}

fn evaluated(rows: &[(f32, u8)]) -> (Metrics, Vec<RowScore>, Vec<f64>) {
    let mut accumulator = Accumulator::default();
    rows.iter().for_each(|&(score, label)| accumulator.add(Scoring::Logit, score, label, loss(score)));
    let scores = rows.iter().map(|&(score, label)| RowScore { row: 0, label, score }).collect();
    (accumulator.metrics().unwrap(), scores, rows.iter().map(|row| loss(row.0)).collect())
}

fn of(rows: &[(f32, u8)]) -> Intervals {
    let (_, scores, losses) = evaluated(rows);
    intervals(Scoring::Logit, &scores, &losses, RowTexts::Distinct)
}

/// The intervals contain the true value in about 95 % of simulated evaluations.
#[test]
fn intervals_cover_the_truth_as_often_as_they_promise() {
    const EVALUATIONS: usize = 300;
    // With scores N(±0.7, 1): P(score > 0) is 0.758036 for label 1, and AUC = P(N(1.4, 2) > 0) = 0.838901.
    let (right, auc, positive) = (0.758_036, 0.838_901, 0.6);
    let precision = positive * right / (positive * right + (1.0 - positive) * (1.0 - right));
    let f1 = 2.0 * precision * right / (precision + right);
    let mut random = Stream::of(7);
    let mut covered = [0; 6];
    for _ in 0..EVALUATIONS {
        let rows: Vec<(f32, u8)> = (0..200).map(|_| row(&mut random)).collect();
        let found = of(&rows);
        let truths = [
            (found.accuracy, right),
            (found.recall, right),
            (found.precision, precision),
            (found.f1, f1),
            (found.auc.unwrap(), auc),
            (found.loss, 1.49),
        ];
        for (covered, (Interval(low, high), truth)) in covered.iter_mut().zip(truths) {
            *covered += usize::from((low..=high).contains(&truth));
        }
    }
    // Four standard deviations of 300 evaluations are 5 %; the percentile interval of 200 rows covers slightly less.
    for covered in covered.map(|covered| covered as f64 / EVALUATIONS as f64) {
        assert!((0.90..0.99).contains(&covered), "{covered}");
    }
}

#[test]
fn intervals_do_not_depend_on_the_order_of_rows() {
    let mut random = Stream::of(3);
    let mut rows: Vec<(f32, u8)> = (0..500).map(|_| row(&mut random)).collect();
    let found = of(&rows);
    rows.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
    assert_eq!(of(&rows), found);
}

#[test]
fn blocks_of_rows_change_an_interval_by_little() {
    // 40,000 rows are joined to blocks of three. The intervals become as narrow as theory predicts.
    let mut random = Stream::of(5);
    let rows: Vec<(f32, u8)> = (0..40_000).map(|_| row(&mut random)).collect();
    let (metrics, scores, losses) = evaluated(&rows);
    let found = intervals(Scoring::Logit, &scores, &losses, RowTexts::Distinct);
    let n = rows.len() as f64;
    let half = |Interval(low, high): Interval| (high - low) / 2.0 / 1.96;
    let deviation = (metrics.accuracy * (1.0 - metrics.accuracy) / n).sqrt();
    assert!((half(found.accuracy) / deviation - 1.0).abs() < 0.1);
    let variance = losses.iter().map(|loss| (loss - metrics.loss).powi(2)).sum::<f64>() / n;
    assert!((half(found.loss) / (variance / n).sqrt() - 1.0).abs() < 0.1);
    assert!((half(found.auc.unwrap()) / delong(&rows) - 1.0).abs() < 0.1);
    let Interval(low, high) = found.auc.unwrap();
    assert!((low..high).contains(&metrics.auc.unwrap()));
}

/// The standard deviation of the AUC by DeLong, DeLong and Clarke-Pearson 1988, without ties.
fn delong(rows: &[(f32, u8)]) -> f64 {
    let mut sorted = rows.to_vec();
    sorted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let n = [0, 1].map(|label| rows.iter().filter(|row| row.1 == label).count() as f64);
    let (mut seen, mut shares) = ([0.0; 2], [Vec::new(), Vec::new()]);
    for (_, label) in sorted {
        let (own, other) = (usize::from(label), usize::from(1 - label));
        let share = seen[other] / n[other];
        shares[own].push(if label == 1 { share } else { 1.0 - share });
        seen[own] += 1.0;
    }
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
    };
    (variance(&shares[0]) / n[0] + variance(&shares[1]) / n[1]).sqrt()
}

#[test]
fn few_rows_have_wide_intervals() {
    let one = of(&[(1.0, 1)]);
    assert_eq!((one.accuracy, one.auc), (Interval(1.0, 1.0), None));
    let four = of(&[(1.0, 1), (2.0, 1), (-1.0, 1), (-1.0, 0)]);
    assert!(four.accuracy.0 <= 0.5 && four.accuracy.1 == 1.0, "{four:?}");
    assert!(four.auc.is_some());
}

#[test]
fn counts_of_several_classes_have_intervals() {
    // Three classes, 30 rows each, of which 27, 24 and 21 are right.
    let counts = [27, 2, 1, 3, 24, 3, 4, 5, 21];
    let cells: Vec<usize> = counts.iter().enumerate().flat_map(|(cell, &n)| vec![cell; n]).collect();
    let [accuracy, ..] = of_confusion(&cells, 3, RowTexts::Distinct);
    let truth: f64 = 72.0 / 90.0;
    let deviation = (truth * (1.0 - truth) / 90.0).sqrt();
    assert!((truth - accuracy.0 - 1.96 * deviation).abs() < 0.02, "{accuracy:?}");
    assert!((accuracy.1 - truth - 1.96 * deviation).abs() < 0.02, "{accuracy:?}");
}

/// All intervals of rows, each of which has this number of copies.
fn of_copies(rows: &[(f32, u8)], n_copies: usize, texts: RowTexts<'_>) -> [Interval; 6] {
    let rows: Vec<(f32, u8)> = rows.iter().flat_map(|&row| vec![row; n_copies]).collect();
    let (_, scores, losses) = evaluated(&rows);
    let found = intervals(Scoring::Logit, &scores, &losses, texts);
    [found.accuracy, found.f1, found.precision, found.recall, found.auc.unwrap(), found.loss]
}

#[test]
fn copies_of_texts_do_not_narrow_intervals() {
    let mut random = Stream::of(11);
    let rows: Vec<(f32, u8)> = (0..400).map(|_| row(&mut random)).collect();
    let keys: Vec<u64> = (0..400).flat_map(|text| [text; 9]).collect();
    let width = |Interval(low, high): Interval| high - low;
    let once = of_copies(&rows, 1, RowTexts::Distinct);
    let copied = of_copies(&rows, 9, RowTexts::Keys(&keys));
    let independent = of_copies(&rows, 9, RowTexts::Distinct);
    for ((once, copied), independent) in once.into_iter().zip(copied).zip(independent) {
        assert!((width(copied) / width(once) - 1.0).abs() < 0.15, "{copied:?}, {once:?}");
        assert!((width(independent) / width(once) - 1.0 / 3.0).abs() < 0.1, "{independent:?}, {once:?}");
    }
}

#[test]
fn texts_without_copies_have_the_intervals_of_rows() {
    let mut random = Stream::of(13);
    let rows: Vec<(f32, u8)> = (0..500).map(|_| row(&mut random)).collect();
    let keys: Vec<u64> = (0..500).map(|row| row * 7_919 % 1_009).collect();
    assert_eq!(of_copies(&rows, 1, RowTexts::Keys(&keys)), of_copies(&rows, 1, RowTexts::Distinct));
}

/// One text with 100 copies, which are wrong, among 300 other rows, of which a tenth is wrong.
#[test]
fn the_interval_has_the_accuracy_with_and_without_a_text_of_many_copies() {
    let other = |at: u64| (at, if at.is_multiple_of(10) { (1.0, 0) } else { (1.0, 1) });
    let rows: Vec<(u64, (f32, u8))> =
        (0..300).map(other).chain((0..100).map(|_| (1_000, (2.0, 0)))).collect();
    let (keys, rows): (Vec<u64>, Vec<(f32, u8)>) = rows.into_iter().unzip();
    let [Interval(low, high), ..] = of_copies(&rows, 1, RowTexts::Keys(&keys));
    // The accuracy of all rows is 0.675, without this text 0.9, and with three times its copies 0.45.
    assert!(low < 0.5 && high > 0.9, "{low} {high}");
    let [Interval(low, high), ..] = of_copies(&rows, 1, RowTexts::Distinct);
    assert!(low > 0.62 && high < 0.73, "{low} {high}");
}

#[test]
fn copies_with_different_labels_and_scores_are_drawn_together() {
    // Each text has a row of each label, with other scores: the shares of labels are equal in every resample.
    let mut random = Stream::of(17);
    let scores: Vec<RowScore> =
        (0..400).map(|row| RowScore { row, label: (row % 2) as u8, score: random.normal() as f32 }).collect();
    let keys: Vec<u64> = (0..200).flat_map(|text| [text; 2]).collect();
    let labels: Vec<f64> = scores.iter().map(|row| f64::from(row.label)).collect();
    assert_eq!(of_mean(&labels, RowTexts::Keys(&keys)), Interval(0.5, 0.5));
    let Interval(low, high) = of_mean(&labels, RowTexts::Distinct);
    assert!(low < 0.47 && high > 0.53, "{low} {high}");
}

//! The confusion matrix, and the metrics that follow from it.

use serde::{Deserialize, Serialize};

/// Maximum number of classes: one per rating.
pub const CLASSES_MAX: usize = 5;

/// Rows by label and predicted class. In JSON, two classes are an object with four named counts, and more are a list
/// of one list per label.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Confusion {
    n_classes: usize,
    /// The first `n_classes`² are used: by label, then by predicted class.
    counts: [u64; CLASSES_MAX * CLASSES_MAX],
}

/// Metrics of one class. Rows "have" a class by their label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfClass {
    /// Fraction of the rows predicted as this class that have it; 0 if none is predicted as it.
    pub precision: f64,
    /// Fraction of the rows with this class that are predicted as it; 0 if none has it.
    pub recall: f64,
    /// The harmonic mean of precision and recall; 0 if no row has the class or is predicted as it.
    pub f1: f64,
    /// Number of rows with this class.
    pub rows: u64,
}

/// Metrics that follow from counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Fraction of rows predicted correctly.
    pub accuracy: f64,
    /// F1 of label 1; for three or more classes the mean over all classes.
    pub f1: f64,
    /// Precision of label 1, or the mean.
    pub precision: f64,
    /// Recall of label 1, or the mean.
    pub recall: f64,
}

impl Confusion {
    /// No rows of this number of classes, 2 to [`CLASSES_MAX`].
    pub fn new(n_classes: usize) -> Self {
        Self { n_classes, counts: [0; CLASSES_MAX * CLASSES_MAX] }
    }

    /// A matrix with these counts, by label, then by predicted class: for two classes the true negative, false
    /// positive, false negative and true positive rows. `None` for another length than the square of 2 to
    /// [`CLASSES_MAX`].
    pub fn of_counts(counts: &[u64]) -> Option<Self> {
        let n_classes = (2..=CLASSES_MAX).find(|n| n * n == counts.len())?;
        let mut confusion = Self::new(n_classes);
        confusion.counts[..counts.len()].copy_from_slice(counts);
        Some(confusion)
    }

    /// Counts a row.
    pub fn add(&mut self, label: u8, predicted: u8) {
        self.counts[usize::from(label) * self.n_classes + usize::from(predicted)] += 1;
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The counts, by label, then by predicted class.
    pub fn counts(&self) -> &[u64] {
        &self.counts[..self.n_classes * self.n_classes]
    }

    /// The counts of each label, by predicted class.
    pub fn labels(&self) -> impl Iterator<Item = &[u64]> {
        self.counts().chunks(self.n_classes)
    }

    /// Number of rows. Counts that are read from a file can be arbitrary, so the sum saturates.
    pub fn rows(&self) -> u64 {
        sum(self.counts())
    }

    /// Metrics of each class, in the order of the classes.
    pub fn classes(&self) -> Vec<OfClass> {
        (0..self.n_classes).map(|class| of_class(self.counts(), self.n_classes, class)).collect()
    }

    /// The most frequent label; of equally frequent labels, the last.
    pub fn largest_label(&self) -> u8 {
        let largest = self.labels().enumerate().max_by_key(|(_, counts)| sum(counts));
        largest.map_or(0, |(label, _)| label as u8)
    }
}

impl Default for Confusion {
    /// No rows of two classes.
    fn default() -> Self {
        Self::new(2)
    }
}

impl std::fmt::Debug for Confusion {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.labels()).finish()
    }
}

/// The metrics of counts by label, then by predicted class, of 2 to [`CLASSES_MAX`] classes.
pub fn rates(counts: &[u64]) -> Rates {
    let n_classes = counts.len().isqrt();
    let right = counts.iter().step_by(n_classes + 1).fold(0u64, |sum, n| sum.saturating_add(*n));
    let accuracy = ratio(right, sum(counts));
    let of = |class| of_class(counts, n_classes, class);
    if n_classes == 2 {
        let OfClass { precision, recall, f1, .. } = of(1);
        return Rates { accuracy, f1, precision, recall };
    }
    let mean = |value: fn(OfClass) -> f64| {
        (0..n_classes).map(|class| value(of(class))).sum::<f64>() / n_classes as f64
    };
    Rates {
        accuracy,
        f1: mean(|class| class.f1),
        precision: mean(|class| class.precision),
        recall: mean(|class| class.recall),
    }
}

fn of_class(counts: &[u64], n_classes: usize, class: usize) -> OfClass {
    let right = counts[class * n_classes + class];
    let rows = sum(&counts[class * n_classes..][..n_classes]);
    let predicted = counts.iter().skip(class).step_by(n_classes).fold(0u64, |sum, n| sum.saturating_add(*n));
    OfClass {
        precision: ratio(right, predicted),
        recall: ratio(right, rows),
        f1: ratio(right.saturating_mul(2), rows.saturating_add(predicted)),
        rows,
    }
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
}

pub(crate) fn ratio(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 / of as f64 }
}

/// The matrix in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Two(Two),
    More(Vec<Vec<u64>>),
}

/// The matrix of two classes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Two {
    /// Label 0, predicted 0.
    true_negative: u64,
    /// Label 0, predicted 1.
    false_positive: u64,
    /// Label 1, predicted 0.
    false_negative: u64,
    /// Label 1, predicted 1.
    true_positive: u64,
}

impl From<Confusion> for Written {
    fn from(confusion: Confusion) -> Self {
        match *confusion.counts() {
            [true_negative, false_positive, false_negative, true_positive] => {
                Self::Two(Two { true_negative, false_positive, false_negative, true_positive })
            }
            _ => Self::More(confusion.labels().map(<[u64]>::to_vec).collect()),
        }
    }
}

impl TryFrom<Written> for Confusion {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let counts = match written {
            Written::Two(Two { true_negative, false_positive, false_negative, true_positive }) => {
                vec![true_negative, false_positive, false_negative, true_positive]
            }
            Written::More(labels) if labels.len() > 2 && labels.iter().all(|of| of.len() == labels.len()) => {
                labels.concat()
            }
            Written::More(labels) => {
                return Err(format!(
                    "a confusion matrix of {} lists, expected as many counts in each",
                    labels.len()
                ));
            }
        };
        Self::of_counts(&counts)
            .ok_or_else(|| format!("a confusion matrix of {} counts, expected 4, 9, 16 or 25", counts.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(json: &str) -> Result<Confusion, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_matrix_is_read_as_it_is_written() {
        for text in [
            "{\"true_negative\":1,\"false_positive\":2,\"false_negative\":3,\"true_positive\":4}",
            "[[1,2,3],[4,5,6],[7,8,9]]",
        ] {
            assert_eq!(serde_json::to_string(&json(text).unwrap()).unwrap(), text);
        }
        assert_eq!(json("[[1,2,3],[4,5,6],[7,8,9]]").unwrap().counts(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_matrix_of_another_shape_is_refused() {
        let six = format!("[{}]", ["[0,0,0,0,0,0]"; 6].join(","));
        for text in
            ["[]", "[[1,2],[3,4]]", "[[1,2,3],[4,5,6]]", "[[1,2,3],[4,5],[7,8,9,10]]", &six, "{}", "[[-1]]"]
        {
            assert!(json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn arbitrary_counts_do_not_overflow() {
        let most = Confusion::of_counts(&[u64::MAX; 9]).unwrap();
        assert_eq!((most.rows(), most.classes()[0].rows, most.largest_label()), (u64::MAX, u64::MAX, 2));
        assert!(rates(most.counts()).f1.is_finite());
    }
}

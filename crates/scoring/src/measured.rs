//! Metrics of rows with any number of labels, of which a row may have several.

use serde::{Deserialize, Serialize};

use crate::metrics::Metrics;

/// Metrics of rows. In JSON, those of few labels are the [`Metrics`] themselves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "few values exist at a time")]
pub enum Measured {
    /// Rows with one label each, of at most [`crate::CLASSES_MAX`].
    Few(Metrics),
    /// Rows with any labels.
    Many {
        /// Mean negative logarithm of the probability of a row's labels.
        loss: f64,
        /// Share of rows whose most probable label is one of their own labels.
        accuracy: f64,
        /// Mean of the F1 of all labels that rows have.
        f1: f64,
        /// Mean of their precision.
        precision: f64,
        /// Mean of their recall.
        recall: f64,
        /// Number of rows.
        rows: u64,
    },
}

impl Measured {
    /// Mean loss per row.
    pub fn loss(&self) -> f64 {
        match self {
            Self::Few(metrics) => metrics.loss,
            Self::Many { loss, .. } => *loss,
        }
    }

    /// Fraction of rows predicted correctly.
    pub fn accuracy(&self) -> f64 {
        match self {
            Self::Few(metrics) => metrics.accuracy,
            Self::Many { accuracy, .. } => *accuracy,
        }
    }

    /// The F1 of label 1, or its mean over three or more labels.
    pub fn f1(&self) -> f64 {
        match self {
            Self::Few(metrics) => metrics.f1,
            Self::Many { f1, .. } => *f1,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Few(metrics) => metrics.rows,
            Self::Many { rows, .. } => *rows,
        }
    }

    /// The metrics of few labels.
    pub fn few(&self) -> Option<&Metrics> {
        match self {
            Self::Few(metrics) => Some(metrics),
            Self::Many { .. } => None,
        }
    }

    /// Whether F1, precision and recall are means over labels.
    pub fn has_classes(&self) -> bool {
        self.few().is_none_or(|metrics| metrics.confusion.n_classes() > 2)
    }

    /// All metrics except counts, by their names in JSON.
    pub fn named(&self) -> Vec<(&'static str, Option<f64>)> {
        match *self {
            Self::Few(metrics) => metrics.named(),
            Self::Many { loss, accuracy, f1, precision, recall, .. } => {
                let named = [
                    ("loss", loss),
                    ("accuracy", accuracy),
                    ("f1", f1),
                    ("precision", precision),
                    ("recall", recall),
                ];
                named.map(|(name, value)| (name, Some(value))).into()
            }
        }
    }
}

impl From<Metrics> for Measured {
    fn from(metrics: Metrics) -> Self {
        Self::Few(metrics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accumulator, Scoring};

    #[test]
    fn metrics_of_few_and_many_labels_are_read_as_they_were_written() {
        let mut accumulator = Accumulator::default();
        accumulator.add(Scoring::Logit, 1.0, 1, 0.5);
        let metrics = accumulator.metrics().unwrap();
        let many =
            Measured::Many { loss: 1.5, accuracy: 0.5, f1: 0.25, precision: 0.2, recall: 0.3, rows: 4 };
        for measured in [Measured::from(metrics), many] {
            let json = serde_json::to_string(&measured).unwrap();
            assert_eq!(serde_json::from_str::<Measured>(&json).unwrap(), measured);
        }
        // Folders of older versions have metrics alone.
        assert_eq!(
            serde_json::to_value(metrics).unwrap(),
            serde_json::to_value(Measured::Few(metrics)).unwrap()
        );
    }
}

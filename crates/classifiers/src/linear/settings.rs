//! Settings of a linear classifier.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Settings of [`super::train`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearSettings {
    /// Maximum length of n-grams in words.
    pub ngrams: u32,
    /// Maximum number of words between the two words of a pair; 0 for no pairs.
    pub gap: u32,
    /// Number of words at the end of a text whose words and pairs of neighbours are counted once more as n-grams of
    /// their own; 0 for none. The last words of a review often state its verdict.
    pub ending: u32,
    /// How n-grams are numbered.
    pub table: NgramTable,
    /// Minimum number of texts that contain an n-gram. The others are ignored.
    pub texts_min: u32,
    /// Value of an n-gram that occurs several times in a text.
    pub counting: Counting,
    /// Weights of n-grams before training.
    pub weighting: Weighting,
    /// Whether the values of a text are divided by their Euclidean norm: before naive-Bayes weights, after TF-IDF weights.
    /// N-grams of too few texts have no part in it.
    pub is_normalized: bool,
    /// Loss of a text.
    pub loss: MarginLoss,
    /// Penalty of the weights.
    pub penalty: Penalty,
    /// Factor of the losses, C: the sum of C times all losses and of the penalty is minimised.
    pub cost: f32,
    /// Number of epochs.
    pub epochs: u32,
    /// Seed of the order of texts.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Whether each classifier is trained by one thread.
    pub is_deterministic: bool,
    /// Number of n-grams with the greatest and with the least weight whose words are stored, per label.
    pub n_named: usize,
    /// Maximum memory of the n-grams of all texts and of all weights, in bytes.
    pub memory_bytes: u64,
}

/// How n-grams are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NgramTable {
    /// By a hash of this number of bits. N-grams of equal hash share a weight.
    Hashed {
        /// Number of bits of the hash.
        bits: u32,
    },
    /// Each n-gram of words of the dictionary has a weight of its own.
    Exact,
}

/// Value of an n-gram in a text that contains it `n` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// 1
    Binary,
    /// `n`
    Linear,
    /// `1 + ln(n)`
    Logarithmic,
}

/// Weights by which the values of n-grams are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// Log-count ratio of Wang and Manning (2012): `ln((s + p) / sum(s + p)) - ln((s + q) / sum(s + q))`. `p` is the
    /// number of texts with the label that contain the n-gram, `q` the number of those without the label, `s` the
    /// smoothing, and the sums are over all n-grams.
    NaiveBayes {
        /// Smoothing.
        smoothing: f32,
    },
    /// `ln((1 + n) / (1 + m)) + 1` for an n-gram that occurs in `m` of `n` texts, as scikit-learn with `smooth_idf`.
    TfIdf,
    /// 1
    None,
}

/// Loss of a text with margin `m`: the score, negated for a text without the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarginLoss {
    /// `ln(1 + exp(-m))`
    Logistic,
    /// `max(0, 1 - m)^2`
    SquaredHinge,
}

/// Penalty of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Penalty {
    /// The sum of their absolute values. Most weights become zero.
    L1,
    /// Half the sum of their squares.
    L2,
}

impl Default for LinearSettings {
    fn default() -> Self {
        Self {
            ngrams: 3,
            gap: 2,
            ending: 40,
            table: NgramTable::Hashed { bits: 24 },
            texts_min: 3,
            counting: Counting::Binary,
            weighting: Weighting::NaiveBayes { smoothing: 3.0 },
            is_normalized: false,
            loss: MarginLoss::Logistic,
            penalty: Penalty::L2,
            cost: 1.0,
            epochs: 5,
            seed: 1,
            threads: 1,
            is_deterministic: false,
            n_named: 50,
            memory_bytes: 8 << 30,
        }
    }
}

impl LinearSettings {
    /// Checks that each setting is within its limits.
    ///
    /// # Errors
    /// Names the first setting that is not.
    pub fn check(&self) -> Result<()> {
        let smoothing = match self.weighting {
            Weighting::NaiveBayes { smoothing } => smoothing,
            Weighting::TfIdf | Weighting::None => 1.0,
        };
        let (bits, ngrams_max) = match self.table {
            NgramTable::Hashed { bits } => (bits, 8),
            // The key of an n-gram has four words.
            NgramTable::Exact => (24, 4),
        };
        let is_positive = |value: f32| value.is_finite() && value > 0.0;
        let checks = [
            (
                "ngrams",
                self.ngrams.to_string(),
                (1..=ngrams_max).contains(&self.ngrams),
                "1 to 8, with exact n-grams 1 to 4",
            ),
            ("gap", self.gap.to_string(), self.gap <= 16, "0 to 16"),
            ("bits", bits.to_string(), (10..=30).contains(&bits), "10 to 30"),
            ("texts_min", self.texts_min.to_string(), (1..=255).contains(&self.texts_min), "1 to 255"),
            ("smoothing", smoothing.to_string(), is_positive(smoothing), "a number greater than 0"),
            ("cost", self.cost.to_string(), is_positive(self.cost), "a number greater than 0"),
            ("epochs", self.epochs.to_string(), self.epochs > 0, "at least 1"),
            ("threads", self.threads.to_string(), (1..=1024).contains(&self.threads), "1 to 1024"),
        ];
        match checks.into_iter().find(|(_, _, is_valid, _)| !is_valid) {
            Some((name, found, _, expected)) => Err(Error::Setting { name, found, expected }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_outside_its_limits_is_named() {
        let refused = |settings: LinearSettings| settings.check().unwrap_err().to_string();
        let default = LinearSettings::default();
        assert!(default.check().is_ok());
        assert_eq!(
            refused(LinearSettings { cost: f32::NAN, ..default }),
            "cost: NaN; expected a number greater than 0"
        );
        assert_eq!(refused(LinearSettings { texts_min: 0, ..default }), "texts_min: 0; expected 1 to 255");
        let exact = LinearSettings { table: NgramTable::Exact, ngrams: 5, ..default };
        assert_eq!(refused(exact), "ngrams: 5; expected 1 to 8, with exact n-grams 1 to 4");
        let weighting = Weighting::NaiveBayes { smoothing: 0.0 };
        assert_eq!(
            refused(LinearSettings { weighting, ..default }),
            "smoothing: 0; expected a number greater than 0"
        );
    }
}

//! `--class-weight`.

use std::str::FromStr;

use crate::error::{Error, Result};

/// Limits of a weight: the losses of rows are 32-bit floats.
const WEIGHT_MIN: f64 = 1e-6;
const WEIGHT_MAX: f64 = 1e6;

/// Weights of classes in the loss.
#[derive(Clone, Debug)]
pub enum ClassWeight {
    /// Rows / (classes × rows of the class).
    Balanced,
    /// Fixed weights, in the order of the classes.
    Numbers(Vec<f64>),
}

impl FromStr for ClassWeight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "balanced" {
            return Ok(Self::Balanced);
        }
        let numbers: Option<Vec<f64>> = text
            .split(',')
            .map(|number| number.parse().ok().filter(|number| (WEIGHT_MIN..=WEIGHT_MAX).contains(number)))
            .collect();
        numbers.map(Self::Numbers).ok_or_else(|| {
            format!(
                "expected balanced, or numbers from {WEIGHT_MIN} to {WEIGHT_MAX} separated by commas, one per class"
            )
        })
    }
}

impl ClassWeight {
    /// The weight of each class, from the names of all classes and the numbers of their training rows, which are above 0.
    /// Balanced weights give all classes the same share of the loss, and the mean weight of a row is 1.
    pub fn of(&self, names: &[&str], rows: &[u64]) -> Result<Vec<f64>> {
        match self {
            Self::Balanced => {
                let all = rows.iter().sum::<u64>() as f64;
                Ok(rows.iter().map(|&of_class| all / (rows.len() as f64 * of_class as f64)).collect())
            }
            Self::Numbers(numbers) if numbers.len() != names.len() => Err(Error::setting(
                "--class-weight",
                format!("{} weights", numbers.len()),
                format!("{} weights, of {}", names.len(), names.join(", ")),
            )),
            Self::Numbers(numbers) => Ok(numbers.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_weights_give_each_class_the_same_share() {
        // As scikit-learn's compute_class_weight("balanced"): 12 / (3 × 6), 12 / (3 × 2), 12 / (3 × 4).
        let weights = ClassWeight::Balanced.of(&["a", "b", "c"], &[6, 2, 4]).unwrap();
        assert_eq!(weights, [12.0 / 18.0, 2.0, 1.0]);
    }

    #[test]
    fn weights_are_one_number_within_limits_per_class() {
        let weights: ClassWeight = "1,0.5".parse().unwrap();
        assert_eq!(weights.of(&["a", "b"], &[1, 1]).unwrap(), [1.0, 0.5]);
        let error = weights.of(&["a", "b", "c"], &[1, 1, 1]).unwrap_err().to_string();
        assert!(error.contains("--class-weight is 2 weights, expected 3 weights, of a, b, c"), "{error}");
        for hostile in ["", "1,0", "1,-2", "1,nan", "1,inf", "1e39,1", "1,1e-50", "1;2", "equal"] {
            assert!(hostile.parse::<ClassWeight>().is_err(), "{hostile}");
        }
    }
}

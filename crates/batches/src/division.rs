//! Divides rows into training, validation and test split by their split numbers, 0 to 999. Texts with equal kept
//! tokens have the same split number. They are therefore in the same split, in every run and on every rank.

use std::fmt;

use corpus::digest::SPLITS;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Training, validation or test split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Rows that train the model.
    Training,
    /// Rows for the choice of settings and for early stopping.
    Validation,
    /// Rows for one final evaluation.
    Test,
}

impl Part {
    /// All splits, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Training, Self::Validation, Self::Test];
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Training => "training",
            Self::Validation => "validation",
            Self::Test => "the test",
        })
    }
}

/// Ranges of split numbers. The lowest numbers are the test split, the next ones the validation split, all
/// others the training split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    test_splits: u16,
    validation_splits: u16,
}

impl Division {
    /// Divides by fractions of the 1000 split numbers. A row is in the test split if `split < 1000 × test_fraction`,
    /// else in the validation split if `split < 1000 × (test_fraction + validation_fraction)`, else in the training
    /// split. A fraction of 0 leaves a split empty, for example if the test split is another dataset. Fractions are
    /// read as decimals: 0.07 gives 70 split numbers, although `1000.0 * 0.07` is slightly more than 70 in floating
    /// point.
    pub fn by_fractions(test_fraction: f64, validation_fraction: f64) -> Result<Self> {
        let test_splits = splits("test-fraction", test_fraction)?;
        let validation_splits = splits("validation-fraction", validation_fraction)?;
        if test_splits + validation_splits >= SPLITS {
            return Err(Error::Setting {
                setting: "test-fraction + validation-fraction",
                found: (test_fraction + validation_fraction).to_string(),
                expected: "less than 1, because training requires rows".to_owned(),
            });
        }
        Ok(Self { test_splits, validation_splits })
    }

    /// Puts all rows into the test split, for a dataset that is only a test set.
    pub fn all_test() -> Self {
        Self { test_splits: SPLITS, validation_splits: 0 }
    }

    /// The split of a row with this split number.
    pub fn part(self, split: u16) -> Part {
        if split < self.test_splits {
            Part::Test
        } else if split < self.test_splits + self.validation_splits {
            Part::Validation
        } else {
            Part::Training
        }
    }
}

/// The number of split numbers below 1000 × fraction.
fn splits(setting: &'static str, fraction: f64) -> Result<u16> {
    if !(0.0..1.0).contains(&fraction) {
        let expected = "0 or more and less than 1".to_owned();
        return Err(Error::Setting { setting, found: fraction.to_string(), expected });
    }
    let exact = fraction * f64::from(SPLITS);
    let is_whole = (exact - exact.round()).abs() < 1e-9;
    Ok(if is_whole { exact.round() } else { exact.ceil() } as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(test_fraction: f64, validation_fraction: f64) -> [usize; 3] {
        let division = Division::by_fractions(test_fraction, validation_fraction).unwrap();
        Part::ALL.map(|part| (0..SPLITS).filter(|&split| division.part(split) == part).count())
    }

    #[test]
    fn test_then_validation_then_training_split_numbers() {
        let division = Division::by_fractions(0.1, 0.05).unwrap();
        assert_eq!(division.part(99), Part::Test);
        assert_eq!(division.part(100), Part::Validation);
        assert_eq!(division.part(149), Part::Validation);
        assert_eq!(division.part(150), Part::Training);
        assert_eq!(counts(0.0, 0.0), [1000, 0, 0]);
        assert_eq!(Division::all_test().part(999), Part::Test);
    }

    #[test]
    fn fractions_that_leave_no_training_rows_are_refused_with_their_sum() {
        let error = Division::by_fractions(0.75, 0.5).unwrap_err().to_string();
        assert!(error.contains("1.25"), "{error}");
        assert!(Division::by_fractions(0.75, 0.25).is_err());
        assert!(Division::by_fractions(0.75, 0.249).is_ok());
    }

    #[test]
    fn every_thousandth_is_exact_despite_rounding() {
        for n in 0..1000u16 {
            let fraction: f64 = format!("0.{n:03}").parse().unwrap();
            assert_eq!(counts(fraction, 0.0)[2], usize::from(n), "{fraction}");
        }
        // Only split number 0 is below 0.5.
        assert_eq!(counts(0.0005, 0.0)[2], 1);
    }

    #[test]
    fn fractions_without_training_rows_are_refused() {
        for (test, validation) in [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (-0.1, 0.0), (f64::NAN, 0.0)] {
            let error = Division::by_fractions(test, validation).err();
            assert!(matches!(error, Some(Error::Setting { .. })), "{test} {validation}");
        }
    }
}

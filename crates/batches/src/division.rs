//! What a row is for: training, choosing settings, or the final test. It depends on the row's split alone, so texts
//! that look alike to a model fall on the same side, in each run and on each rank.

use std::fmt;

use corpus::digest::SPLITS;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The model learns from it.
    Training,
    /// Settings are chosen by it, and training stops by it.
    Validation,
    /// It is looked at once, at the end.
    Test,
}

impl Part {
    /// All parts, each at the place of its own number.
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

/// How a dataset's splits, 0 to 999, are divided: the first are the test part, the next the validation part, all others
/// are for training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    test_splits: u16,
    validation_splits: u16,
}

impl Division {
    /// Divides by fractions of all splits: a row is for the test where `split < 1000 × test_fraction`, for validation
    /// where it is not and `split < 1000 × (test_fraction + validation_fraction)`. 0 leaves a part empty, as where
    /// another dataset is the test. Decimals that a double only comes close to count as what was written: 0.07 are 70
    /// splits, although `1000.0 * 0.07` is a little more.
    pub fn by_fractions(test_fraction: f64, validation_fraction: f64) -> Result<Self> {
        let test_splits = splits("test-fraction", test_fraction)?;
        let validation_splits = splits("validation-fraction", validation_fraction)?;
        if test_splits + validation_splits >= SPLITS {
            return Err(Error::Setting {
                setting: "test-fraction + validation-fraction",
                found: (test_fraction + validation_fraction).to_string(),
                expected: "less than 1, so that rows are left for training".to_owned(),
            });
        }
        Ok(Self { test_splits, validation_splits })
    }

    /// All rows are the test, as of a dataset that was made for it.
    pub fn all_test() -> Self {
        Self { test_splits: SPLITS, validation_splits: 0 }
    }

    /// The part of a row with this split.
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

/// The number of splits below 1000 × fraction.
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
    fn the_first_splits_are_the_test_and_the_next_are_for_validation() {
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
    fn every_thousandth_is_one_split_whatever_its_double() {
        for n in 0..1000u16 {
            let fraction: f64 = format!("0.{n:03}").parse().unwrap();
            assert_eq!(counts(fraction, 0.0)[2], usize::from(n), "{fraction}");
        }
        // split < 0.5 is split 0.
        assert_eq!(counts(0.0005, 0.0)[2], 1);
    }

    #[test]
    fn fractions_that_leave_nothing_to_train_on_are_refused() {
        for (test, validation) in [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (-0.1, 0.0), (f64::NAN, 0.0)] {
            let error = Division::by_fractions(test, validation).err();
            assert!(matches!(error, Some(Error::Setting { .. })), "{test} {validation}");
        }
    }
}

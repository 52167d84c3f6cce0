//! Divides rows into training, validation and test split by their split numbers, 0 to 999. Texts with equal kept
//! tokens have the same split number. They are therefore in the same split, in every run and on every rank.

use corpus::digest::SPLITS;
use corpus::sample::Sample;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::part::Part;

/// Ranges of split numbers.
///
/// ```text
/// 0            test                        1000      without folds: --test-fraction
/// |------------|-----------|-----------------|
///    test        validation   training
///
/// |--------|-----------|------|------------|-|      fold 2 of 4
///  in no     training    test   validation   training
///  split
/// ```
///
/// The validation split has the numbers after the test split. After 999 it continues with the lowest number that is
/// in a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Smaller split numbers are in no split.
    first: u16,
    test_begin: u16,
    test_end: u16,
    n_validation: u16,
    /// Rows outside this sample are in no split.
    sample: Sample,
}

/// One of several folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fold {
    /// Its number, from 1.
    pub number: u16,
    /// Number of folds.
    pub of: u16,
}

impl Division {
    /// Divides by fractions of the 1000 split numbers. A row is in the test split if `split < 1000 × test_fraction`,
    /// else in the validation split if `split < 1000 × (test_fraction + validation_fraction)`, else in the training
    /// split. A fraction of 0 leaves a split empty, for example if the test split is another dataset. Fractions are
    /// read as decimals: 0.07 gives 70 split numbers, although `1000.0 * 0.07` is slightly more than 70 in floating
    /// point.
    pub fn by_fractions(test_fraction: f64, validation_fraction: f64) -> Result<Self> {
        let test_end = splits("test-fraction", test_fraction)?;
        let n_validation = splits("validation-fraction", validation_fraction)?;
        if test_end + n_validation >= SPLITS {
            let (setting, found) =
                ("test-fraction + validation-fraction", test_fraction + validation_fraction);
            return Err(Error::setting(setting, found, "less than 1, because training requires rows"));
        }
        Ok(Self { first: 0, test_begin: 0, test_end, n_validation, sample: Sample::ALL })
    }

    /// Divides for one fold of a cross-validation. The rows that [`Division::by_fractions`] puts into the test split
    /// are in no split. The other split numbers are cut into `fold.of` ranges of equal length; lengths differ by at
    /// most one. The fold's range is its test split. The validation split is as long as without folds.
    pub fn of_fold(fold: Fold, test_fraction: f64, validation_fraction: f64) -> Result<Self> {
        let Self { test_end: first, n_validation, sample, .. } =
            Self::by_fractions(test_fraction, validation_fraction)?;
        let begin =
            |number: u16| first + (u32::from(SPLITS - first) * u32::from(number) / u32::from(fold.of)) as u16;
        let (test_begin, test_end) = (begin(fold.number - 1), begin(fold.number));
        let n_folded = SPLITS - first;
        if fold.of > n_folded {
            let expected = format!("at most {n_folded}, the number of split numbers after the test split");
            return Err(Error::setting("--folds", fold.of, &expected));
        }
        if test_end - test_begin + n_validation >= n_folded {
            let expected = "less than the share of the rows that the other folds have";
            return Err(Error::setting("--validation-fraction with --folds", validation_fraction, expected));
        }
        Ok(Self { first, test_begin, test_end, n_validation, sample })
    }

    /// Puts all rows into the test split, for a dataset that is only a test set.
    pub fn all_test() -> Self {
        Self { first: 0, test_begin: 0, test_end: SPLITS, n_validation: 0, sample: Sample::ALL }
    }

    /// Puts all rows into the validation split, for a dataset that is only a validation set.
    pub fn all_validation() -> Self {
        Self { first: 0, test_begin: 0, test_end: 0, n_validation: SPLITS, sample: Sample::ALL }
    }

    /// Divides the rows of a sample. Each split has the part of its rows that is in the sample.
    pub fn sampled(self, sample: Sample) -> Self {
        Self { sample, ..self }
    }

    /// Whether all rows are in this split.
    pub fn is_all(self, part: Part) -> bool {
        self.sample.is_all() && (0..SPLITS).all(|split| self.part(split) == Some(part))
    }

    /// Whether a row with this hash is in the sample.
    pub fn samples(self, hash: u64) -> bool {
        self.sample.keeps(hash)
    }

    /// The split of a row with this hash and split number; `None` if the row is in no split.
    pub fn part_of(self, hash: u64, split: u16) -> Option<Part> {
        self.part(split).filter(|_| self.samples(hash))
    }

    /// The split of a row of the sample with this split number; `None` if the row is in no split.
    pub fn part(self, split: u16) -> Option<Part> {
        let Self { first, test_begin, test_end, n_validation, .. } = self;
        if split < first {
            return None;
        }
        if (test_begin..test_end).contains(&split) {
            return Some(Part::Test);
        }
        let after_test = if split >= test_end { split - test_end } else { SPLITS - test_end + split - first };
        Some(if after_test < n_validation { Part::Validation } else { Part::Training })
    }
}

/// The number of split numbers below 1000 × fraction.
fn splits(setting: &str, fraction: f64) -> Result<u16> {
    if !(0.0..1.0).contains(&fraction) {
        return Err(Error::setting(setting, fraction, "0 or more and less than 1"));
    }
    let exact = fraction * f64::from(SPLITS);
    let is_whole = (exact - exact.round()).abs() < 1e-9;
    Ok(if is_whole { exact.round() } else { exact.ceil() } as u16)
}

#[cfg(test)]
mod tests {
    use program::exit::{Exit, Fails};

    use super::*;

    fn counts(test_fraction: f64, validation_fraction: f64) -> [usize; 3] {
        let division = Division::by_fractions(test_fraction, validation_fraction).unwrap();
        Part::ALL.map(|part| (0..SPLITS).filter(|&split| division.part(split) == Some(part)).count())
    }

    #[test]
    fn test_then_validation_then_training_split_numbers() {
        let division = Division::by_fractions(0.1, 0.05).unwrap();
        assert_eq!(division.part(99), Some(Part::Test));
        assert_eq!(division.part(100), Some(Part::Validation));
        assert_eq!(division.part(149), Some(Part::Validation));
        assert_eq!(division.part(150), Some(Part::Training));
        assert_eq!(counts(0.0, 0.0), [1000, 0, 0]);
        assert_eq!(Division::all_test().part(999), Some(Part::Test));
        assert!(Division::all_test().is_all(Part::Test) && !division.is_all(Part::Training));
        let all = Division::all_validation();
        assert!((0..SPLITS).all(|split| all.part(split) == Some(Part::Validation)));
    }

    #[test]
    fn rows_outside_the_sample_are_in_no_split() {
        let whole = Division::by_fractions(0.1, 0.05).unwrap();
        let half = whole.sampled("0.5".parse().unwrap());
        for split in 0..SPLITS {
            assert_eq!(half.part_of(u64::MAX << 31, split), None);
            assert_eq!(half.part_of(u64::MAX << 32, split), whole.part(split));
            assert_eq!(whole.part_of(u64::MAX, split), whole.part(split));
        }
        let all = Division::all_test();
        assert!(all.is_all(Part::Test) && !all.sampled("0.5".parse().unwrap()).is_all(Part::Test));
        assert_eq!(whole.sampled(Sample::ALL), whole);
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
            assert_eq!(error.as_ref().map(Fails::exit), Some(Exit::Settings), "{test} {validation}");
            assert!(error.unwrap().to_string().contains("-fraction"), "{test} {validation}");
        }
    }

    #[test]
    fn each_split_number_is_held_out_by_exactly_one_fold() {
        for (of, test_fraction, validation_fraction) in
            [(2, 0.0, 0.0), (3, 0.1, 0.05), (7, 0.333, 0.1), (50, 0.9, 0.01)]
        {
            let outer = Division::by_fractions(test_fraction, 0.0).unwrap();
            let folds: Vec<Division> = (1..=of)
                .map(|number| {
                    Division::of_fold(Fold { number, of }, test_fraction, validation_fraction).unwrap()
                })
                .collect();
            for split in 0..SPLITS {
                let parts: Vec<Option<Part>> = folds.iter().map(|fold| fold.part(split)).collect();
                let n = |part| parts.iter().filter(|found| **found == part).count();
                match outer.part(split) {
                    Some(Part::Test) => assert_eq!(n(None), usize::from(of), "{split}"),
                    _ => assert_eq!((n(Some(Part::Test)), n(None)), (1, 0), "{split}"),
                }
            }
            let n = |fold: &Division, part| (0..SPLITS).filter(|&at| fold.part(at) == Some(part)).count();
            let tested: Vec<usize> = folds.iter().map(|fold| n(fold, Part::Test)).collect();
            assert!(tested.iter().max().unwrap() - tested.iter().min().unwrap() <= 1, "{tested:?}");
            let validation = splits("", validation_fraction).unwrap();
            assert!(folds.iter().all(|fold| n(fold, Part::Validation) == usize::from(validation)));
        }
    }

    #[test]
    fn the_validation_split_of_the_last_fold_continues_after_the_test_split_of_all_folds() {
        let last = Division::of_fold(Fold { number: 3, of: 3 }, 0.1, 0.05).unwrap();
        assert_eq!(
            [99, 100, 149, 150, 699, 700, 999].map(|split| last.part(split)),
            [
                None,
                Some(Part::Validation),
                Some(Part::Validation),
                Some(Part::Training),
                Some(Part::Training),
                Some(Part::Test),
                Some(Part::Test),
            ]
        );
    }

    #[test]
    fn folds_without_rows_are_refused() {
        let of_two =
            |validation_fraction| Division::of_fold(Fold { number: 1, of: 2 }, 0.5, validation_fraction);
        assert!(of_two(0.249).is_ok());
        let error = of_two(0.25).unwrap_err().to_string();
        assert!(error.contains("--validation-fraction with --folds"), "{error}");
        let error = Division::of_fold(Fold { number: 1, of: 6 }, 0.995, 0.0).unwrap_err().to_string();
        assert!(error.contains("at most 5"), "{error}");
    }
}

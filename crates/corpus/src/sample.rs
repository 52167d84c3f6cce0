//! A sample of texts: those whose hash is below a threshold. All programs select the same texts, and a smaller sample
//! is part of a larger one.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The number of values of the lower half of a hash. Rows are ordered by the upper half, and the split of a row comes
/// from another hash, so neither depends on the sample.
const VALUES: u64 = 1 << 32;

/// The texts that become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// A text is in the sample if the lower 32 bits of its hash are below this number, 1 to [`VALUES`].
    threshold: u64,
}

impl Sample {
    /// All texts.
    pub const ALL: Self = Self { threshold: VALUES };

    /// The sample with the threshold in a file or a record; `None` for a threshold that no program writes.
    pub fn with_threshold(threshold: u64) -> Option<Self> {
        (1..VALUES).contains(&threshold).then_some(Self { threshold })
    }

    /// The threshold in files and records; `None` for all texts.
    pub fn threshold(self) -> Option<u64> {
        (!self.is_all()).then_some(self.threshold)
    }

    /// Whether all texts are in the sample.
    pub fn is_all(self) -> bool {
        self == Self::ALL
    }

    /// Whether a text with this hash is in the sample.
    #[inline]
    pub fn keeps(self, hash: u64) -> bool {
        hash % VALUES < self.threshold
    }

    /// The shortest decimal that selects these texts.
    pub fn share(self) -> f64 {
        self.to_string().parse().expect("a decimal is a number")
    }
}

impl Default for Sample {
    fn default() -> Self {
        Self::ALL
    }
}

/// Parses a share of the texts above 0 and up to 1.
impl FromStr for Sample {
    type Err = NoSample;

    fn from_str(share: &str) -> Result<Self, NoSample> {
        let share: f64 = share.parse().map_err(|_| NoSample)?;
        if !(share > 0.0 && share <= 1.0) {
            return Err(NoSample);
        }
        // A product with a power of two is exact. A hash is a whole number, so it is below the share of all values if it
        // is below the next whole number.
        Ok(Self { threshold: (share * VALUES as f64).ceil() as u64 })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return out.write_str("1");
        }
        // The threshold was rounded up. The share cut to 10 decimals differs by less than one value of a hash.
        let cut = |digits: u32| {
            let decimals = u128::from(self.threshold) * 10_u128.pow(digits) / u128::from(VALUES);
            format!("0.{decimals:0width$}", width = digits as usize)
        };
        let shortest = (1..10).map(cut).find(|share| share.parse() == Ok(*self));
        out.write_str(&shortest.unwrap_or_else(|| cut(10)))
    }
}

/// The error for a text that is not a share.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a number above 0 and up to 1")]
pub struct NoSample;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(share: &str) -> Sample {
        share.parse().unwrap()
    }

    #[test]
    fn a_share_of_the_values_of_the_lower_half_of_a_hash_is_kept() {
        let quarter = sample("0.25");
        let upper = 0xdead_beef_u64 << 32;
        assert!(quarter.keeps(upper) && quarter.keeps(upper | 0x3fff_ffff));
        assert!(!quarter.keeps(0x4000_0000) && !quarter.keeps(u64::MAX));
        // 0.1 × 2^32 is 429,496,729.6.
        let tenth = sample("0.1");
        assert!(tenth.keeps(429_496_729) && !tenth.keeps(429_496_730));
        assert!(sample("1").keeps(u64::MAX) && sample("0.9999999999").keeps(u64::MAX));
        let least = sample("1e-300");
        assert!(least.keeps(0) && !least.keeps(1));
    }

    #[test]
    fn a_share_of_1_is_the_same_as_no_sample() {
        for all in ["1", "1.0", "1e0", "0.99999999999"] {
            assert_eq!((sample(all), sample(all).threshold()), (Sample::ALL, None), "{all}");
        }
        assert_eq!(Sample::default(), Sample::ALL);
        assert_eq!(Sample::ALL.to_string(), "1");
    }

    #[test]
    fn other_numbers_are_refused() {
        for share in
            ["0", "-0", "0.0", "-0.5", "1.0000001", "2", "NaN", "inf", "-inf", "", "half", "25%", "0,5"]
        {
            assert_eq!(share.parse::<Sample>(), Err(NoSample), "{share}");
        }
        assert_eq!([0, 1 << 32, u64::MAX].map(Sample::with_threshold), [None; 3]);
    }

    #[test]
    fn a_sample_is_shown_by_its_shortest_share() {
        for (given, shown) in [
            ("0.25", "0.25"),
            (".5", "0.5"),
            ("2.5e-1", "0.25"),
            ("0.10", "0.1"),
            ("0.3", "0.3"),
            ("0.001", "0.001"),
            ("0.123456789", "0.123456789"),
            ("1e-300", "0.0000000002"),
        ] {
            assert_eq!(sample(given).to_string(), shown);
            assert_eq!(sample(shown), sample(given));
        }
        assert_eq!(sample("0.1").share(), 0.1);
    }

    proptest! {
        #[test]
        fn the_shown_share_selects_the_same_texts(threshold in 1..VALUES) {
            let sample = Sample::with_threshold(threshold).unwrap();
            prop_assert_eq!(sample.to_string().parse(), Ok(sample));
            prop_assert_eq!(sample.threshold(), Some(threshold));
        }

        #[test]
        fn samples_are_nested(one in 1..=VALUES, other in 1..=VALUES, hash in any::<u64>()) {
            let of = |threshold| Sample { threshold };
            let (less, more) = (of(one.min(other)), of(one.max(other)));
            prop_assert!(!less.keeps(hash) || more.keeps(hash));
        }
    }
}

//! The values of reviews without a rating, as `--unrated null,0` lists them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::class_ratings::{escaped, split_list};
use crate::entry::{BOOLEANS, RatingValue};

/// Null, an absent field, and an empty cell of a table.
const NULL: &str = "null";

/// A list of values. Numbers are compared as numbers, other values as texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnratedValues(Vec<String>);

impl UnratedValues {
    /// Whether no value is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an absent rating is listed.
    pub fn has_null(&self) -> bool {
        self.0.iter().any(|listed| listed == NULL)
    }

    /// Whether this value is listed.
    pub fn contains(&self, value: RatingValue<'_>) -> bool {
        let has_number = |number: f64| {
            // No format but JSON has an infinite number, where NaN and Infinity are read as one.
            let is_it = |listed: f64| listed == number || (listed.is_nan() && !number.is_finite());
            self.0.iter().any(|listed| listed.parse().is_ok_and(is_it))
        };
        match value {
            RatingValue::Missing => self.has_null(),
            RatingValue::Number(number) => has_number(number),
            RatingValue::Text(text) => {
                let text = str::from_utf8(text).unwrap_or_default().trim();
                let spellings = BOOLEANS.iter().find(|spellings| spellings.contains(&text));
                let is_it = |listed: &str| {
                    listed == text || spellings.is_some_and(|spellings| spellings.contains(&listed))
                };
                (text.is_empty() && self.has_null())
                    || self.0.iter().any(|listed| is_it(listed))
                    || text.parse().is_ok_and(has_number)
            }
        }
    }
}

/// `null,0`: values separated by commas; `\,` is a comma in a value.
impl FromStr for UnratedValues {
    type Err = NoUnratedValues;

    fn from_str(list: &str) -> Result<Self, NoUnratedValues> {
        let values = split_list(list);
        if values.iter().any(String::is_empty) { Err(NoUnratedValues) } else { Ok(Self(values)) }
    }
}

/// The inverse of [`FromStr`].
impl fmt::Display for UnratedValues {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.0.iter().map(|value| escaped(value)).collect();
        out.write_str(&values.join(","))
    }
}

/// A text is not a list of values.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("found an empty value, expected values and commas, as in null,0")]
pub struct NoUnratedValues;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_values_are_unrated_in_every_form() {
        let unrated: UnratedValues = r"null,0,n/a,NaN,\,".parse().unwrap();
        assert_eq!(unrated.to_string(), r"null,0,n/a,NaN,\,");
        for value in [
            RatingValue::Missing,
            RatingValue::Number(0.0),
            RatingValue::Number(-0.0),
            RatingValue::Number(f64::INFINITY),
            RatingValue::Text(b"0"),
            RatingValue::Text(b" 0.0"),
            RatingValue::Text(b"n/a"),
            RatingValue::Text(b"  "),
            RatingValue::Text(b","),
        ] {
            assert!(unrated.contains(value), "{value:?}");
        }
        for value in [RatingValue::Number(1.0), RatingValue::Text(b"N/A"), RatingValue::Text(b"00x")] {
            assert!(!unrated.contains(value), "{value:?}");
        }
        let zero: UnratedValues = "0".parse().unwrap();
        assert!(!zero.contains(RatingValue::Missing) && !zero.contains(RatingValue::Text(b"")));
        assert!("".parse::<UnratedValues>().is_err() && "0,,1".parse::<UnratedValues>().is_err());
    }
}

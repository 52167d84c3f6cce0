//! What a line contains: a text with its rating, or the reason why it is not a review.

use std::ops::Range;

/// Maximum nesting depth of a line. The object that spans the line is the first level.
pub const DEPTH_MAX: usize = 128;

/// A number of stars, 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rating(u8);

impl Rating {
    /// The rating with this number of stars, if it is 1 to 5.
    pub fn new(stars: u8) -> Option<Self> {
        (1..=5).contains(&stars).then_some(Self(stars))
    }

    /// The rating with this number of stars, which is known to be 1 to 5.
    pub(crate) const fn of(stars: u8) -> Self {
        assert!(1 <= stars && stars <= 5);
        Self(stars)
    }

    /// The number of stars.
    pub fn stars(self) -> u8 {
        self.0
    }

    /// The rating that equals a number exactly.
    pub fn from_number(number: f64) -> Option<Self> {
        (1..=5).find(|&stars| f64::from(stars) == number).map(Self)
    }

    /// Parses a rating: `[ \t]*[1-5](\.0*)?[ \t]*`.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t']);
        let (&digit, rest) = text.as_bytes().split_first()?;
        let zeros = rest.strip_prefix(b".").unwrap_or(rest);
        let is_whole =
            rest.is_empty() || (zeros.len() < rest.len() && zeros.iter().all(|&zero| zero == b'0'));
        if is_whole { Self::new(digit.wrapping_sub(b'0')) } else { None }
    }
}

/// The text found in a line, and the rating if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The text, not cleaned. It may be empty.
    pub text: &'a str,
    /// The rating, or why there is none: [`Reject::BadRating`] or [`Reject::Unrated`].
    pub rating: Result<Rating, Reject>,
    /// The label of an entry with a rating, if the values of the rating field are labels and no ratings.
    pub label: Option<&'a [u8]>,
}

/// Is called with each entry of a line, and its bytes in the line.
pub type EachEntry<'a> = dyn FnMut(Range<usize>, Result<Entry<'_>, Reject>) + 'a;

/// Why a line is not a review. If several reasons apply, the first in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reject {
    /// The line is not in its format.
    #[error("bad_line")]
    BadLine,
    /// The text is absent, null, or not a string.
    #[error("no_text")]
    NoText,
    /// The rating is absent or not one of 1 to 5.
    #[error("bad_rating")]
    BadRating,
    /// The rating is one of the values that stand for no rating.
    #[error("unrated")]
    Unrated,
}

/// A value in a column of ratings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RatingValue<'a> {
    /// Null.
    Missing,
    /// A number.
    Number(f64),
    /// A text, which may not be UTF-8.
    Text(&'a [u8]),
}

impl RatingValue<'_> {
    /// The rating, if the value is one.
    pub fn rating(self) -> Option<Rating> {
        match self {
            Self::Missing => None,
            Self::Number(number) => Rating::from_number(number),
            Self::Text(text) => str::from_utf8(text).ok().and_then(Rating::from_text),
        }
    }

    /// A boolean, whose classes are `true` and `false`.
    pub fn of_bool(value: bool) -> Self {
        Self::Text(if value { b"true" } else { b"false" })
    }
}

/// Spellings of the same boolean in JSON, Python and spreadsheets.
pub(crate) const BOOLEANS: [[&str; 3]; 2] = [["true", "True", "TRUE"], ["false", "False", "FALSE"]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_is_a_whole_number_from_one_to_five() {
        let stars = |number| Rating::from_number(number).map(Rating::stars);
        assert_eq!([1.0, 3.0, 5.0].map(stars), [Some(1), Some(3), Some(5)]);
        assert_eq!([0.0, 6.0, 4.5, -1.0, f64::NAN, f64::INFINITY].map(stars), [None; 6]);
    }
}

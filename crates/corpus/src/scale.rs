//! Maps numbers of a scale to stars: `1-10` maps 1 to 1 star, 10 to 5 stars, and numbers between them linearly.
//!
//! stars = 1 + 4 · (number - LOW) / (HIGH - LOW), rounded to the nearest whole number, halves up. A scale may descend:
//! `6-1` maps 6 to 1 star and 1 to 5 stars. A number outside of the scale is not a rating.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::entry::Rating;

/// A scale of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
}

// Both ends are finite.
impl Eq for Scale {}

impl Scale {
    /// The rating of a number.
    pub fn of_number(self, number: f64) -> Option<Rating> {
        let Self { low, high } = self;
        let is_within = low.min(high) <= number && number <= low.max(high);
        let stars = 1.0 + 4.0 * (number - low) / (high - low);
        if is_within { Rating::new((stars + 0.5).floor() as u8) } else { None }
    }

    /// The rating of a text: `7`, `3,5`, `7/10`, `80 %`, `4 stars`, `4.0 out of 5 stars`, `★★★★☆`. If it names the top of
    /// its scale, this must be the top of this one.
    pub fn of_text(self, text: &str) -> Option<Rating> {
        let spelled = Spelled::of(text)?;
        let is_same = spelled.top.is_none_or(|top| top == self.low.max(self.high));
        if is_same { self.of_number(spelled.number) } else { None }
    }
}

/// `LOW-HIGH`.
impl FromStr for Scale {
    type Err = NoScale;

    fn from_str(text: &str) -> Result<Self, NoScale> {
        // The first character may be a sign.
        let at = text.char_indices().skip(1).find(|(_, character)| *character == '-').ok_or(NoScale)?.0;
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or(NoScale);
        let (low, high) = (number(&text[..at])?, number(&text[at + 1..])?);
        if low == high || !(high - low).is_finite() { Err(NoScale) } else { Ok(Self { low, high }) }
    }
}

/// The inverse of [`FromStr`].
impl fmt::Display for Scale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.low, self.high)
    }
}

/// A text is not a scale.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected LOW-HIGH, the numbers of 1 and of 5 stars, as in 1-10")]
pub struct NoScale;

/// A number of a scale, as texts spell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spelled {
    pub number: f64,
    /// The top of the scale, if the text names it.
    pub top: Option<f64>,
}

const FULL_STARS: [char; 2] = ['★', '⭐'];
const EMPTY_STAR: char = '☆';

impl Spelled {
    /// Parses a whole text; `None` if it is something else.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        Self::of_stars(text).or_else(|| Self::of_number(text))
    }

    /// `★★★★☆`.
    fn of_stars(text: &str) -> Option<Self> {
        // A variation selector may follow a star.
        let stars = || text.chars().filter(|&character| character != '\u{FE0F}');
        let n_full = stars().take_while(|star| FULL_STARS.contains(star)).count();
        let n_empty = stars().skip(n_full).take_while(|&star| star == EMPTY_STAR).count();
        let n_stars = n_full + n_empty;
        let top = (n_empty > 0).then_some(n_stars as f64);
        (n_stars > 0 && n_stars == stars().count()).then_some(Self { number: n_full as f64, top })
    }

    /// `7`, `3,5`, `7/10`, `4 out of 5`, each of them before `%`, `star`, `stars` or `★`.
    fn of_number(text: &str) -> Option<Self> {
        let (number, rest) = leading_number(text)?;
        let (mut top, mut unit) = (None, rest.trim_start());
        if let Some(rest) = ["/", "out of", "of"].iter().find_map(|word| unit.strip_prefix(word)) {
            let (of, rest) = leading_number(rest.trim_start())?;
            (top, unit) = (Some(of), rest.trim_start());
        }
        match unit {
            "" | "star" | "stars" | "★" => Some(Self { number, top }),
            "%" => Some(Self { number, top: top.or(Some(100.0)) }),
            _ => None,
        }
    }
}

/// The number at the start of a text, with a point or a comma before its decimals, and the rest.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let sign = usize::from(text.starts_with('-'));
    let mut end = sign + digits(&text[sign..]);
    if end == sign {
        return None;
    }
    if text[end..].starts_with(['.', ',']) {
        let n_decimals = digits(&text[end + 1..]);
        // `1,000` is a thousand in some languages.
        if n_decimals == 3 && text[end..].starts_with(',') {
            return None;
        }
        end += 1 + n_decimals;
    }
    let number = text[..end].replace(',', ".").parse().ok()?;
    Some((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(text: &str) -> Scale {
        text.parse().unwrap()
    }

    #[test]
    fn a_scale_is_mapped_linearly_to_the_nearest_star_halves_up() {
        let stars = |of: &str, numbers: &[f64]| -> Vec<u8> {
            let of = scale(of);
            numbers.iter().map(|&number| of.of_number(number).map_or(0, Rating::stars)).collect()
        };
        let ten = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
        assert_eq!(stars("1-10", &ten), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0]);
        assert_eq!(stars("0-10", &ten), [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 0]);
        assert_eq!(stars("0-100", &[0.0, 12.4, 12.5, 50.0, 87.4, 87.5, 100.0]), [1, 1, 2, 3, 4, 5, 5]);
        assert_eq!(stars("1-5", &[0.5, 1.0, 1.4, 1.5, 4.5, 5.0, 5.5]), [0, 1, 1, 2, 5, 5, 0]);
        assert_eq!(stars("0.5-5", &[0.5, 1.0, 2.5, 4.5, 5.0]), [1, 1, 3, 5, 5]);
        assert_eq!(stars("-1-1", &[-1.0, 0.0, 1.0, f64::NAN]), [1, 3, 5, 0]);
        assert_eq!(stars("6-1", &[6.0, 5.0, 3.5, 1.0, 0.0]), [1, 2, 3, 5, 0]);
    }

    #[test]
    fn numbers_are_read_as_texts_spell_them() {
        let stars = |of: &str, text: &str| scale(of).of_text(text).map(Rating::stars);
        for (of, text, expected) in [
            ("1-10", "7/10", Some(4)),
            ("1-10", " 7 / 10 ", Some(4)),
            ("1-10", "7", Some(4)),
            ("1-10", "7/5", None),
            ("0-100", "80 %", Some(4)),
            ("0-100", "80%", Some(4)),
            ("1-10", "8%", None),
            ("1-5", "5,0", Some(5)),
            ("1-5", "3.5", Some(4)),
            ("1-5", "4.0 out of 5 stars", Some(4)),
            ("1-5", "4 of 5", Some(4)),
            ("1-5", "1 star", Some(1)),
            ("1-5", "4★", Some(4)),
            ("1-5", "★★★★", Some(4)),
            ("1-5", "★★★★☆", Some(4)),
            ("0-5", "☆☆☆☆☆", Some(1)),
            ("1-5", "⭐\u{FE0F}⭐\u{FE0F}", Some(2)),
            ("1-10", "★★★★☆", None),
            ("-1-1", "-1", Some(1)),
            ("1-5", "", None),
            ("1-5", "good", None),
            ("1-5", "4 houses", None),
            ("1-5", "★good", None),
            ("1-5", "1,0,0", None),
            ("1-10", "7/", None),
            ("0-1000", "1,000", None),
            ("0-1000", "1,00", Some(1)),
        ] {
            assert_eq!(stars(of, text), expected, "{of}: {text:?}");
        }
    }

    #[test]
    fn a_scale_is_two_numbers() {
        for text in ["1-10", "0-100", "0.5-5", "-1-1", "-5--1", "6-1"] {
            assert_eq!(scale(text).to_string(), text);
        }
        for text in ["", "10", "1-", "-10", "1-1", "1-x", "1-10-2", "inf-1", "1..5", "NaN-1"] {
            assert_eq!(text.parse::<Scale>(), Err(NoScale), "{text}");
        }
    }
}

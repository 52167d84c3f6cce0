//! Parses a raw line into a review (text and rating), or into the reason why it is not a review.
//!
//! Each format has a parser in its own module, and all share the types of this one. The text of a review is
//! not cleaned, but it is valid Unicode: each lone UTF-16 surrogate in an escape and each invalid UTF-8
//! sequence has become U+FFFD.

use crate::classes::{RatingRule, UnratedClasses};
use crate::csv::{Columns, CsvParser};
use crate::encoding::Invalid;
use crate::fasttext::FastTextParser;
use crate::format::Format;
use crate::json::JsonParser;
use crate::literal::LiteralParser;
use crate::polarity_csv::PolarityCsvParser;

/// Maximum nesting depth of a line. The object that spans the line is the first level.
pub const DEPTH_MAX: usize = 128;

/// A number of stars, 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rating(u8);

/// A parsed review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Review<'a> {
    /// The text, not cleaned. It may be empty.
    pub text: &'a str,
    /// The rating.
    pub rating: Rating,
}

/// The text found in a line, and the rating if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The text, not cleaned. It may be empty.
    pub text: &'a str,
    /// The rating, if it is 1 to 5.
    pub rating: Option<Rating>,
}

impl<'a> Entry<'a> {
    /// Returns the review, or an error if there is no rating.
    pub fn review(self) -> Result<Review<'a>, Reject> {
        Ok(Review { text: self.text, rating: self.rating.ok_or(Reject::BadRating)? })
    }
}

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

/// Parses lines one by one and reuses its memory.
#[derive(Debug)]
pub struct ReviewParser {
    parser: Parser,
    /// For rows.
    ratings: RatingRule,
    decoder: Decoder,
}

/// Decodes bytes to text.
#[derive(Debug, Default)]
struct Decoder {
    repaired: String,
    /// The texts that were not UTF-8.
    invalid: Invalid,
}

impl Decoder {
    /// Returns the text, with U+FFFD in place of each invalid UTF-8 sequence. This is safe before parsing,
    /// because U+FFFD is not part of the syntax of any format.
    fn text<'a>(&'a mut self, bytes: &'a [u8]) -> &'a str {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                self.invalid.add(bytes);
                self.repaired = String::from_utf8_lossy(bytes).into_owned();
                &self.repaired
            }
        }
    }
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one parser per thread")]
enum Parser {
    Json { json: JsonParser, literal: LiteralParser },
    PolarityCsv(PolarityCsvParser),
    FastText(FastTextParser),
    Csv(CsvParser),
}

impl ReviewParser {
    /// Creates a parser for lines of this format.
    pub fn new(format: Format) -> Self {
        let ratings = match &format {
            Format::Json(fields) => RatingRule::new(fields.classes.clone()),
            _ => RatingRule::default(),
        };
        let parser = match format {
            Format::Json(fields) => {
                Parser::Json { json: JsonParser::new(&fields), literal: LiteralParser::new(&fields) }
            }
            Format::PolarityCsv { ratings, with_title } => {
                Parser::PolarityCsv(PolarityCsvParser::new(ratings, with_title))
            }
            Format::FastText { ratings } => Parser::FastText(FastTextParser {
                ratings,
                unrated: UnratedClasses::default(),
                n_other_labels: 0,
            }),
            Format::Delimited { dialect, fields } => {
                Parser::Csv(CsvParser::new(dialect.default_dialect(), RatingRule::new(fields.classes)))
            }
        };
        Self { parser, ratings, decoder: Decoder::default() }
    }

    /// Parses one line, passed without its line end. Bytes that are not UTF-8 are accepted inside texts.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Review<'a>, Reject> {
        self.entry(line)?.review()
    }

    /// Parses only the text of a line, passed without its line end. A line to predict may have no rating.
    pub fn parse_text<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a str, Reject> {
        Ok(self.entry(line)?.text)
    }

    /// Parses one record of CSV, passed without its line end, by the columns of its file.
    pub fn parse_record<'a>(&'a mut self, record: &'a [u8], columns: &Columns) -> Result<Review<'a>, Reject> {
        self.record(record, columns)?.review()
    }

    /// Parses only the text of a record of CSV, passed without its line end, by the columns of its file.
    pub fn parse_record_text<'a>(
        &'a mut self,
        record: &'a [u8],
        columns: &Columns,
    ) -> Result<&'a str, Reject> {
        Ok(self.record(record, columns)?.text)
    }

    /// Returns a review from the columns of a table instead of a line.
    pub fn row<'a>(
        &'a mut self,
        text: Option<&'a [u8]>,
        rating: RatingValue<'_>,
    ) -> Result<Review<'a>, Reject> {
        let text = self.decoder.text(text.ok_or(Reject::NoText)?);
        let rating = match rating {
            RatingValue::Missing => None,
            RatingValue::Number(number) => self.ratings.of_number(number),
            RatingValue::Text(text) => self.ratings.of_text(str::from_utf8(text).ok().unwrap_or_default()),
        };
        Entry { text, rating }.review()
    }

    /// The lines and rows so far with bytes that are not UTF-8.
    pub fn invalid(&self) -> &Invalid {
        &self.decoder.invalid
    }

    /// Number of lines of fastText's format so far in which `trainer ngrams` reads other labels.
    pub fn other_labels(&self) -> u64 {
        if let Parser::FastText(parser) = &self.parser { parser.n_other_labels } else { 0 }
    }

    /// The classes without a rating of the lines read so far.
    pub fn unrated_classes(&self) -> UnratedClasses {
        match &self.parser {
            Parser::Json { json, literal } => {
                let mut unrated = self.ratings.unrated.clone();
                unrated.merge(&json.ratings.unrated);
                unrated.merge(&literal.ratings.unrated);
                unrated
            }
            Parser::Csv(parser) => parser.ratings.unrated.clone(),
            Parser::PolarityCsv(parser) => parser.unrated.clone(),
            Parser::FastText(parser) => parser.unrated.clone(),
        }
    }

    fn record<'a>(&'a mut self, record: &'a [u8], columns: &Columns) -> Result<Entry<'a>, Reject> {
        let record = self.decoder.text(record);
        match &mut self.parser {
            Parser::Csv(parser) => parser.parse(record, columns),
            _ => Err(Reject::BadLine),
        }
    }

    fn entry<'a>(&'a mut self, line: &'a [u8]) -> Result<Entry<'a>, Reject> {
        let line = self.decoder.text(line);
        match &mut self.parser {
            Parser::Json { json, literal } => match json.parse(line) {
                Err(Reject::BadLine) if line.starts_with('{') => literal.parse(line),
                result => result,
            },
            Parser::PolarityCsv(parser) => parser.parse(line),
            Parser::FastText(parser) => parser.parse(line),
            // A record is parsed by the columns of its file.
            Parser::Csv(_) => Err(Reject::BadLine),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ClassRatings;

    #[test]
    fn a_rating_is_a_whole_number_from_one_to_five() {
        let stars = |number| Rating::from_number(number).map(Rating::stars);
        assert_eq!([1.0, 3.0, 5.0].map(stars), [Some(1), Some(3), Some(5)]);
        assert_eq!([0.0, 6.0, 4.5, -1.0, f64::NAN, f64::INFINITY].map(stars), [None; 6]);
    }

    #[test]
    fn a_rating_may_be_a_string() {
        let stars = |text| Rating::from_text(text).map(Rating::stars);
        for text in ["4", "4.", "4.0", " \t4.000\t "] {
            assert_eq!(stars(text), Some(4), "{text:?}");
        }
        for text in
            ["", " ", ".", "0", "6", "44", "4.5", "4.05", "4..0", "4 .0", "+4", "4e0", "\u{A0}4", "four", "४"]
        {
            assert_eq!(stars(text), None, "{text:?}");
        }
    }

    #[test]
    fn json_and_literal_lines_are_read() {
        let mut parser = ReviewParser::new(Format::default());
        let expected = Ok(Review { text: "it's", rating: Rating(4) });
        assert_eq!(parser.parse(br#" {"reviewText": "it's", "overall": 4}"#), expected);
        assert_eq!(parser.parse(br#"{'reviewText': "it's", 'overall': 4,}"#), expected);
        // No dump has such a line. Only JSON allows spaces before the object.
        assert_eq!(parser.parse(br#" {'reviewText': "it's", 'overall': 4,}"#), Err(Reject::BadLine));
        assert_eq!(parser.parse(br#"[{'reviewText': "it's", 'overall': 4,}]"#), Err(Reject::BadLine));
    }

    #[test]
    fn the_first_reason_in_ledger_order_is_reported() {
        let mut parser = ReviewParser::new(Format::default());
        assert_eq!(parser.parse(b"{"), Err(Reject::BadLine));
        assert_eq!(parser.parse(b"{}"), Err(Reject::NoText));
        assert_eq!(parser.parse(br#"{"reviewText": "x"}"#), Err(Reject::BadRating));
        assert_eq!(parser.parse(br#"{'reviewText': None}"#), Err(Reject::NoText));
        assert_eq!(parser.parse(br#"{'reviewText': 'x', 'overall': True}"#), Err(Reject::BadRating));
    }

    #[test]
    fn invalid_bytes_are_replaced_inside_strings_and_refused_outside() {
        let mut parser = ReviewParser::new(Format::default());
        let review =
            parser.parse(b"{\"reviewText\": \"a\xFF\xE2\x82b\xC3\", \"overall\": 5, \"\xFF\": \"\xFF\"}");
        assert_eq!(review.unwrap().text, "a\u{FFFD}\u{FFFD}b\u{FFFD}");
        let review = parser.parse(b"{'reviewText': 'a\xFFb', 'overall': 5}");
        assert_eq!(review.unwrap().text, "a\u{FFFD}b");
        assert_eq!(parser.parse(b"{\"reviewText\": \"a\", \"overall\": 5}\xFF"), Err(Reject::BadLine));
        assert_eq!(parser.parse(b"{'reviewText': 'a', \xFF'overall': 5}"), Err(Reject::BadLine));
        let mut parser = ReviewParser::new(Format::FastText { ratings: ClassRatings::default() });
        assert_eq!(parser.parse(b"__label__1 a\xFFb").unwrap().text, "a\u{FFFD}b");
        assert_eq!(parser.parse(b"__label__\xFF1 a"), Err(Reject::BadRating));
        assert_eq!(parser.parse(b"\xFF__label__1 a"), Err(Reject::BadLine));
        assert_eq!(parser.parse(b"__label__1 a").unwrap().text, "a");
        assert_eq!(parser.row(Some(b"a\xFFb"), RatingValue::Number(4.0)).unwrap().text, "a\u{FFFD}b");
        assert_eq!(parser.invalid().lines, 4);
    }
}

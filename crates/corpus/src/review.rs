//! One raw line → a review, its text and its rating, or the reason why it is none.
//!
//! The parsers of single formats stand in their own modules and share these types. A review's text is as the line
//! has it, uncleaned, but it is always valid Unicode: a lone UTF-16 surrogate in an escape and each invalid UTF-8
//! sequence has become U+FFFD.

use crate::fasttext::FastTextParser;
use crate::format::Format;
use crate::json::JsonParser;
use crate::literal::LiteralParser;
use crate::polarity_csv::PolarityCsvParser;

/// How deep a line may nest; the object that is the line is the first level.
pub const DEPTH_MAX: usize = 128;

/// A number of stars, 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rating(u8);

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Review<'a> {
    /// The text as it was written, maybe empty.
    pub text: &'a str,
    /// The stars that came with it.
    pub rating: Rating,
}

/// What a parser found in a line: a text, and a rating where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The text as it was written, maybe empty.
    pub text: &'a str,
    /// The stars, where they are 1 to 5.
    pub rating: Option<Rating>,
}

impl<'a> Entry<'a> {
    /// The review, if there is a rating.
    pub fn review(self) -> Result<Review<'a>, Reject> {
        Ok(Review { text: self.text, rating: self.rating.ok_or(Reject::BadRating)? })
    }
}

/// Why a line is no review. Of several reasons the first in this order is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reject {
    /// The line breaks its format.
    #[error("bad_line")]
    BadLine,
    /// The text is absent, null, or not a string.
    #[error("no_text")]
    NoText,
    /// The rating is absent or not one of 1 to 5.
    #[error("bad_rating")]
    BadRating,
}

/// Reads one line after another, keeping its memory between them.
#[derive(Debug)]
pub struct ReviewParser {
    parser: Parser,
    decoder: Decoder,
}

/// Bytes to text.
#[derive(Debug, Default)]
struct Decoder {
    repaired: String,
    /// How many were not UTF-8.
    n_repaired: u64,
}

impl Decoder {
    /// The text, in which each invalid UTF-8 sequence is U+FFFD. That is no part of any format's notation.
    fn text<'a>(&'a mut self, bytes: &'a [u8]) -> &'a str {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                self.n_repaired += 1;
                self.repaired = String::from_utf8_lossy(bytes).into_owned();
                &self.repaired
            }
        }
    }
}

#[derive(Debug)]
enum Parser {
    Json { json: JsonParser, literal: LiteralParser },
    PolarityCsv(PolarityCsvParser),
    FastText(FastTextParser),
}

impl ReviewParser {
    /// A parser of lines of this format.
    pub fn new(format: Format) -> Self {
        let parser = match format {
            Format::Json(fields) => {
                Parser::Json { json: JsonParser::new(fields.clone()), literal: LiteralParser::new(fields) }
            }
            Format::PolarityCsv { ratings, with_title } => {
                Parser::PolarityCsv(PolarityCsvParser::new(ratings, with_title))
            }
            Format::FastText { ratings } => Parser::FastText(FastTextParser { ratings }),
        };
        Self { parser, decoder: Decoder::default() }
    }

    /// Reads one line without its end. Bytes that are not UTF-8 are harmless inside of texts.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Review<'a>, Reject> {
        self.entry(line)?.review()
    }

    /// Reads the text alone of a line without its end: who asks what a review says may have no rating of it.
    pub fn parse_text<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a str, Reject> {
        Ok(self.entry(line)?.text)
    }

    /// Reads a review that stood in no line, but in columns of a table.
    pub fn row<'a>(
        &'a mut self,
        text: Option<&'a [u8]>,
        rating: Option<Rating>,
    ) -> Result<Review<'a>, Reject> {
        let text = self.decoder.text(text.ok_or(Reject::NoText)?);
        Entry { text, rating }.review()
    }

    /// How many of the lines and rows read so far have bytes that are not UTF-8.
    pub fn invalid_utf8(&self) -> u64 {
        self.decoder.n_repaired
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
        }
    }
}

impl Rating {
    /// A rating of this many stars, if there is one.
    pub fn new(stars: u8) -> Option<Self> {
        (1..=5).contains(&stars).then_some(Self(stars))
    }

    /// A rating of these stars, which are known to be 1 to 5.
    pub(crate) const fn of(stars: u8) -> Self {
        assert!(1 <= stars && stars <= 5);
        Self(stars)
    }

    /// The number of stars.
    pub fn stars(self) -> u8 {
        self.0
    }

    /// The rating that a number is exactly.
    pub fn from_number(number: f64) -> Option<Self> {
        (1..=5).find(|&stars| f64::from(stars) == number).map(Self)
    }

    /// The rating that a string spells: `[ \t]*[1-5](\.0*)?[ \t]*`.
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
    fn a_rating_may_be_spelled() {
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
    fn a_line_of_either_notation_is_read() {
        let mut parser = ReviewParser::new(Format::default());
        let expected = Ok(Review { text: "it's", rating: Rating(4) });
        assert_eq!(parser.parse(br#" {"reviewText": "it's", "overall": 4}"#), expected);
        assert_eq!(parser.parse(br#"{'reviewText': "it's", 'overall': 4,}"#), expected);
        // No dump has such a line; JSON alone allows spaces before its object.
        assert_eq!(parser.parse(br#" {'reviewText': "it's", 'overall': 4,}"#), Err(Reject::BadLine));
        assert_eq!(parser.parse(br#"[{'reviewText': "it's", 'overall': 4,}]"#), Err(Reject::BadLine));
    }

    #[test]
    fn the_first_reason_in_the_ledgers_order_is_given() {
        let mut parser = ReviewParser::new(Format::default());
        assert_eq!(parser.parse(b"{"), Err(Reject::BadLine));
        assert_eq!(parser.parse(b"{}"), Err(Reject::NoText));
        assert_eq!(parser.parse(br#"{"reviewText": "x"}"#), Err(Reject::BadRating));
        assert_eq!(parser.parse(br#"{'reviewText': None}"#), Err(Reject::NoText));
        assert_eq!(parser.parse(br#"{'reviewText': 'x', 'overall': True}"#), Err(Reject::BadRating));
    }

    #[test]
    fn invalid_bytes_are_replaced_inside_of_strings_and_bad_outside() {
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
        assert_eq!(parser.row(Some(b"a\xFFb"), Rating::new(4)).unwrap().text, "a\u{FFFD}b");
        assert_eq!(parser.invalid_utf8(), 4);
    }
}

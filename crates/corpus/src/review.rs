//! Parses a raw line into a review (text and rating), or into the reason why it is not a review.
//!
//! Each format has a parser in its own module, and all share the types of `entry`. The text of a review is
//! not cleaned, but it is valid Unicode: each lone UTF-16 surrogate in an escape and each invalid UTF-8
//! sequence has become U+FFFD.

use crate::classes::FoundValues;
use crate::csv::{Columns, CsvParser};
use crate::encoding::Invalid;
use crate::entry::{EachEntry, Entry, RatingValue, Reject};
use crate::fasttext::FastTextParser;
use crate::fields::Fields;
use crate::format::Format;
use crate::json::{ConstantsParser, JsonParser};
use crate::literal::LiteralParser;
use crate::polarity_csv::PolarityCsvParser;
use crate::rating_rule::RatingRule;

/// Parses lines one by one and reuses its memory.
#[derive(Debug)]
pub struct ReviewParser {
    parser: Parser,
    /// For rows.
    ratings: RatingRule,
    decoder: Decoder,
    /// What rejected lines contain.
    found: FoundValues,
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
    #[inline]
    fn text<'a>(&'a mut self, bytes: &'a [u8]) -> &'a str {
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => {
                self.invalid.see_utf8(text);
                text
            }
            Err(_) => self.repair(bytes),
        }
    }

    #[cold]
    fn repair(&mut self, bytes: &[u8]) -> &str {
        self.invalid.add(bytes);
        self.repaired = String::from_utf8_lossy(bytes).into_owned();
        &self.repaired
    }
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one parser per thread")]
enum Parser {
    Json { parsers: JsonParsers, fields: Fields },
    PolarityCsv(PolarityCsvParser),
    FastText(FastTextParser),
    Csv(CsvParser),
}

/// Parsers of JSON and of what is written in its place. Each reads only what those before it refuse.
#[derive(Debug)]
struct JsonParsers {
    json: JsonParser,
    literal: LiteralParser,
    constants: ConstantsParser,
}

impl ReviewParser {
    /// Creates a parser for lines of this format.
    pub fn new(format: Format) -> Self {
        let ratings = format.fields().map(RatingRule::of).unwrap_or_default();
        let parser = match format {
            Format::Json(fields) => Parser::Json {
                parsers: JsonParsers {
                    json: JsonParser::new(&fields),
                    literal: LiteralParser::new(&fields),
                    constants: ConstantsParser::new(&fields),
                },
                fields,
            },
            Format::PolarityCsv { ratings, with_title } => {
                Parser::PolarityCsv(PolarityCsvParser::new(ratings, with_title))
            }
            Format::FastText { ratings } => Parser::FastText(FastTextParser {
                ratings,
                unrated: FoundValues::default(),
                n_other_labels: 0,
            }),
            Format::Delimited { dialect, fields } => {
                Parser::Csv(CsvParser::new(dialect.default_dialect(), RatingRule::of(&fields)))
            }
        };
        Self { parser, ratings, decoder: Decoder::default(), found: FoundValues::default() }
    }

    /// Parses one line, passed without its line end. Bytes that are not UTF-8 are accepted inside texts.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Entry<'a>, Reject> {
        let line = self.decoder.text(line);
        match &mut self.parser {
            Parser::Json { parsers: JsonParsers { json, literal, constants }, fields } => {
                let entry = match json.parse(line) {
                    Err(Reject::BadLine) => JsonParsers::other(literal, constants, line),
                    result => result,
                };
                if let Err(reject) | Ok(Entry { rating: Err(reject), .. }) = entry {
                    self.found.shapes.examine(line, reject, fields);
                }
                entry
            }
            Parser::PolarityCsv(parser) => parser.parse(line),
            Parser::FastText(parser) => parser.parse(line),
            // A record is parsed by the columns of its file.
            Parser::Csv(_) => Err(Reject::BadLine),
        }
    }

    /// Parses one line, passed without its line end, and passes on the elements of its list, each with its bytes in the line. Of
    /// a line without such a list, the result of [`Self::parse`] is passed on.
    pub fn each(&mut self, line: &[u8], visit: &mut EachEntry<'_>) {
        let Parser::Json { parsers, fields } = &mut self.parser else {
            return visit(0..line.len(), self.parse(line));
        };
        let text = self.decoder.text(line);
        let is_repaired = text.as_ptr() != line.as_ptr();
        let (shapes, mut n_elements) = (&mut self.found.shapes, 0);
        parsers.each(text, &mut |element, entry| {
            n_elements += 1;
            if let Err(reject) = entry
                && element == (0..text.len())
            {
                shapes.examine(text, reject, fields);
            }
            // The bytes of a text that was repaired have other positions.
            visit(if is_repaired { 0..line.len() } else { element }, entry);
        });
        if is_repaired {
            // Each element is counted as a line.
            self.decoder.invalid.lines += n_elements - 1;
        }
    }

    /// Parses one record of CSV, passed without its line end, by the columns of its file.
    pub fn parse_record<'a>(&'a mut self, record: &'a [u8], columns: &Columns) -> Result<Entry<'a>, Reject> {
        let record = self.decoder.text(record);
        match &mut self.parser {
            Parser::Csv(parser) => parser.parse(record, columns),
            _ => Err(Reject::BadLine),
        }
    }

    /// Returns the entry in the columns of a table instead of a line.
    pub fn row<'a>(
        &'a mut self,
        text: Option<&'a [u8]>,
        rating: RatingValue<'_>,
    ) -> Result<Entry<'a>, Reject> {
        let text = self.decoder.text(text.ok_or(Reject::NoText)?);
        let rating = match rating {
            RatingValue::Missing => self.ratings.of_value(rating),
            RatingValue::Number(number) => self.ratings.of_number(number),
            RatingValue::Text(text) => self.ratings.of_text(str::from_utf8(text).unwrap_or_default()),
        };
        Ok(Entry { text, rating, label: self.ratings.label() })
    }

    /// The lines and rows so far with bytes that are not UTF-8.
    pub fn invalid(&self) -> &Invalid {
        &self.decoder.invalid
    }

    /// Number of lines of fastText's format so far in which `ngrams train` reads other labels.
    pub fn other_labels(&self) -> u64 {
        if let Parser::FastText(parser) = &self.parser { parser.n_other_labels } else { 0 }
    }

    /// What most lines without a text have in its place, and the remedy of a program that reads no ratings.
    pub fn without_text(&self) -> Option<String> {
        match &self.parser {
            Parser::Json { fields, .. } => self.found.shapes.without_text(fields, None),
            Parser::PolarityCsv(_) | Parser::FastText(_) | Parser::Csv(_) => None,
        }
    }

    /// The classes without a rating of the lines read so far.
    pub fn found_values(&self) -> FoundValues {
        match &self.parser {
            Parser::Json { parsers: JsonParsers { json, literal, constants }, .. } => {
                let mut unrated = self.found.clone();
                for ratings in [&self.ratings, &json.ratings, &literal.ratings, &constants.json.ratings] {
                    unrated.merge(&ratings.unrated);
                }
                unrated
            }
            Parser::Csv(parser) => parser.ratings.unrated.clone(),
            Parser::PolarityCsv(parser) => parser.unrated.clone(),
            Parser::FastText(parser) => parser.unrated.clone(),
        }
    }
}

impl JsonParsers {
    /// Parses a line that is not JSON.
    #[cold]
    fn other<'a>(
        literal: &'a mut LiteralParser,
        constants: &'a mut ConstantsParser,
        line: &str,
    ) -> Result<Entry<'a>, Reject> {
        let entry = if line.starts_with('{') { literal.parse(line) } else { Err(Reject::BadLine) };
        if entry == Err(Reject::BadLine) { constants.parse(line) } else { entry }
    }

    /// Passes on the reviews of the list of a line, each with its bytes.
    fn each(&mut self, line: &str, visit: &mut EachEntry<'_>) {
        let Self { json, literal, constants } = self;
        let is_read = json.each(line, visit).is_some()
            || (line.starts_with('{') && literal.each(line, visit).is_some())
            // The bytes of constants that were replaced have other positions.
            || constants.each(line, &mut |_, entry| visit(0..line.len(), entry)).is_some();
        if !is_read {
            visit(0..line.len(), Err(Reject::BadLine));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_ratings::ClassRatings;
    use crate::entry::Rating;
    use crate::format::FormatOptions;

    #[test]
    fn an_absent_rating_is_null() {
        let mut parser = ReviewParser::new(Format::default());
        for line in
            [r#"{"reviewText": "a"}"#, "{'reviewText': 'a'}", r#"{"reviewText": "a", "overall": null}"#]
        {
            assert_eq!(parser.parse(line.as_bytes()).unwrap().rating, Err(Reject::BadRating));
        }
        let fields = Fields::default();
        assert_eq!(parser.found_values().found(3, &fields), Some(("null 3".to_owned(), None)));
    }

    #[test]
    fn each_element_of_a_line_that_is_not_utf8_is_counted() {
        let text_field = "r[].text".parse().ok();
        let options =
            FormatOptions { text_field, rating_field: "r[].stars".parse().ok(), ..FormatOptions::default() };
        let mut parser = ReviewParser::new(options.format().unwrap());
        let mut n_reviews = 0;
        let line = b"{\"r\": [{\"text\": \"caf\xe9\", \"stars\": 5}, {\"text\": \"b\", \"stars\": 1}]}";
        parser.each(line, &mut |_, entry| {
            n_reviews += usize::from(entry.is_ok_and(|entry| entry.rating.is_ok()));
        });
        assert_eq!((n_reviews, parser.invalid().lines), (2, 2));
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
        let expected =
            Ok(Entry { text: "it's", rating: Rating::new(4).ok_or(Reject::BadRating), label: None });
        assert_eq!(parser.parse(br#" {"reviewText": "it's", "overall": 4}"#), expected);
        assert_eq!(parser.parse(br#"{'reviewText': "it's", 'overall': 4,}"#), expected);
        // No dump has such a line. Only JSON allows spaces before the object.
        assert_eq!(parser.parse(br#" {'reviewText': "it's", 'overall': 4,}"#), Err(Reject::BadLine));
        assert_eq!(parser.parse(br#"[{'reviewText': "it's", 'overall': 4,}]"#), Err(Reject::BadLine));
        // Constants of Python, in JSON and in literals.
        assert_eq!(parser.parse(br#"{"reviewText": "it's", "overall": 4, "x": NaN}"#), expected);
        assert_eq!(parser.parse(br#"{'reviewText': "it's", 'overall': 4L, 'x': nan, 'y': -inf}"#), expected);
    }

    #[test]
    fn the_first_reason_in_ledger_order_is_reported() {
        let mut parser = ReviewParser::new(Format::default());
        assert_eq!(parser.parse(b"{"), Err(Reject::BadLine));
        assert_eq!(parser.parse(b"{}"), Err(Reject::NoText));
        assert_eq!(parser.parse(br#"{"reviewText": "x"}"#).unwrap().rating, Err(Reject::BadRating));
        assert_eq!(parser.parse(br#"{'reviewText': None}"#), Err(Reject::NoText));
        let entry = parser.parse(br#"{'reviewText': 'x', 'overall': True}"#);
        assert_eq!(entry.unwrap().rating, Err(Reject::BadRating));
    }

    /// An element, and its text and stars.
    type Read = (String, Result<(String, u8), Reject>);

    fn reviews(format: &Format, line: &str) -> Vec<Read> {
        let mut found = Vec::new();
        ReviewParser::new(format.clone()).each(line.as_bytes(), &mut |element, entry| {
            let review = entry.and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())));
            found.push((line[element].to_owned(), review));
        });
        found
    }

    fn list_format(text: &str, rating: &str) -> Format {
        let (text_field, rating_field) = (text.parse().ok(), rating.parse().ok());
        let class_ratings = "true=5,false=1".parse().ok();
        FormatOptions { text_field, rating_field, class_ratings, ..FormatOptions::default() }
            .format()
            .unwrap()
    }

    #[test]
    fn each_element_of_a_list_is_a_review() {
        let format = list_format("title,reviews[].text", "reviews[].good");
        let good = |text: &str, stars| Ok((text.to_owned(), stars));
        let json = r#"{"reviews": [ {"text": "a", "good": true},{"good": false, "text": "b"} ,7], "title": "T\u00e9"}"#;
        let python = "{'title': 'T\u{e9}', 'reviews': [{'text': u'a', 'good': True},\t{'good': False, 'text': \"b\"}, 7,]}";
        for line in [json, python] {
            let found = reviews(&format, line);
            let expected = [good("T\u{e9} a", 5), good("T\u{e9} b", 1), Err(Reject::BadRating)];
            assert_eq!(
                found.iter().map(|(_, review)| review.clone()).collect::<Vec<_>>(),
                expected,
                "{line}"
            );
            assert!(
                found[1].0.starts_with('{') && found[1].0.ends_with('}') && found[2].0 == "7",
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_line_without_the_list_is_one_line_without_a_text() {
        let format = list_format("data.reviews[].text", "data.reviews[].good");
        for line in [
            r#"{"data": {"reviews": []}}"#,
            r#"{"data": {"reviews": [ ]}}"#,
            r#"{"data": {"reviews": null}}"#,
            r#"{"data": {}}"#,
            r#"{"data": {"reviews": [{"text": "a", "good": true}]}, "data": 7}"#,
            "{'data': {'reviews': []}}",
            "{'data': {'reviews': [{'text': 'a', 'good': True}], 'reviews': ()}}",
        ] {
            assert_eq!(reviews(&format, line), [(line.to_owned(), Err(Reject::NoText))], "{line}");
        }
        let broken = r#"{"data": {"reviews": [{"text": "a", "good": true}]}"#;
        assert_eq!(reviews(&format, broken), [(broken.to_owned(), Err(Reject::BadLine))]);
        // An element that is no object, and one whose rating is missing.
        let line = r#"{"data": {"reviews": ["a", {"text": "b"}, [{"text": "c"}]]}}"#;
        let found: Vec<_> = reviews(&format, line).into_iter().map(|(_, review)| review).collect();
        assert_eq!(found, [Err(Reject::NoText), Err(Reject::BadRating), Err(Reject::NoText)]);
    }

    #[test]
    fn texts_themselves_may_be_elements_and_share_a_rating() {
        let format = list_format("comments[]", "stars");
        let line = r#"{"comments": ["a", "b\"", 3], "stars": 4}"#;
        let found: Vec<_> = reviews(&format, line).into_iter().map(|(_, review)| review).collect();
        let expected = [Ok(("a".to_owned(), 4)), Ok(("b\"".to_owned(), 4)), Err(Reject::NoText)];
        assert_eq!(found, expected);
        let constant = r#"{"comments": ["a"], "stars": 4, "x": NaN}"#;
        assert_eq!(reviews(&format, constant), [(constant.to_owned(), Ok(("a".to_owned(), 4)))]);
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
        assert_eq!(parser.parse(b"__label__\xFF1 a").unwrap().rating, Err(Reject::BadRating));
        assert_eq!(parser.parse(b"\xFF__label__1 a"), Err(Reject::BadLine));
        assert_eq!(parser.parse(b"__label__1 a").unwrap().text, "a");
        assert_eq!(parser.row(Some(b"a\xFFb"), RatingValue::Number(4.0)).unwrap().text, "a\u{FFFD}b");
        assert_eq!(parser.invalid().lines, 4);
    }
}

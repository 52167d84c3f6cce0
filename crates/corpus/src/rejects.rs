//! Formats a bad line, or a bad row of a table, as one JSON line with the reason, the position and the content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::entry::RatingValue;
use crate::ledger::NoReview;
use crate::lines::LineContent;

/// The position of a bad line or row in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Number of bytes before a line.
    Offset {
        /// Offset of the input split in the file, if the line was read from one. The other offset counts from there.
        split_start: Option<u64>,
        /// Number of bytes before the line.
        offset: u64,
    },
    /// Number of rows before a row.
    Row(u64),
}

/// The content of an entry of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// A line of any format without its line end, a record of CSV, an element of a JSON array, or a row whose text
    /// exceeds the maximum length.
    Line(LineContent<'a>),
    /// A row of a Parquet or Arrow file.
    Row {
        /// Its text, if it is not null. It may not be UTF-8.
        text: Option<&'a [u8]>,
        /// The value of its rating.
        rating: RatingValue<'a>,
    },
}

#[derive(Serialize)]
struct RejectLine<'a> {
    reason: &'a str,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    split_start: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    /// The line, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
    /// The line, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_base64: Option<String>,
    /// The length of a line that is too long to be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_bytes: Option<u64>,
    /// The text of a row, if it is UTF-8 or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Option<&'a str>>,
    /// The text of a row, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_base64: Option<String>,
    /// The rating of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    rating: Option<FoundRating>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FoundRating {
    Null,
    Whole(i64),
    Number(f64),
    Text(String),
}

/// Appends the JSON line.
pub fn write_reject(
    output: &mut Vec<u8>,
    reason: NoReview,
    file: &str,
    position: Position,
    content: Content<'_>,
) {
    let (split_start, offset, row) = match position {
        Position::Offset { split_start, offset } => (split_start, Some(offset), None),
        Position::Row(row) => (None, None, Some(row)),
    };
    let mut reject = RejectLine {
        reason: reason.counter(),
        file,
        split_start,
        offset,
        row,
        line: None,
        line_base64: None,
        line_bytes: None,
        text: None,
        text_base64: None,
        rating: None,
    };
    match content {
        Content::Line(LineContent::TooLong { bytes, .. }) => reject.line_bytes = Some(bytes),
        Content::Line(LineContent::Bytes(bytes)) => match str::from_utf8(bytes) {
            Ok(line) => reject.line = Some(line),
            Err(_) => reject.line_base64 = Some(STANDARD.encode(bytes)),
        },
        Content::Row { text, rating } => {
            reject.rating = Some(FoundRating::of(rating));
            match text.map(str::from_utf8).transpose() {
                Ok(text) => reject.text = Some(text),
                Err(_) => reject.text_base64 = text.map(|text| STANDARD.encode(text)),
            }
        }
    }
    serde_json::to_writer(&mut *output, &reject)
        .expect("strings and numbers become JSON, and memory takes it");
    output.push(b'\n');
}

impl FoundRating {
    fn of(rating: RatingValue<'_>) -> Self {
        /// Doubles represent all smaller integers.
        const EXACT_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
        match rating {
            RatingValue::Missing => Self::Null,
            RatingValue::Number(number) if number.fract() == 0.0 && number.abs() < EXACT_MAX => {
                Self::Whole(number as i64)
            }
            RatingValue::Number(number) if number.is_finite() => Self::Number(number),
            // JSON has no such number.
            RatingValue::Number(number) => Self::Text(number.to_string()),
            RatingValue::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Reject::{BadRating, NoText};

    fn rejected(reason: NoReview, position: Position, content: Content<'_>) -> String {
        let mut output = Vec::new();
        write_reject(&mut output, reason, "a \"b\"", position, content);
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_line_has_its_offset_and_a_row_its_number_and_values() {
        let offset = Position::Offset { split_start: Some(7), offset: 5 };
        let line = Content::Line(LineContent::Bytes(b"{}"));
        assert_eq!(
            rejected(NoReview::Rejected(NoText), offset, line),
            "{\"reason\":\"no_text\",\"file\":\"a \\\"b\\\"\",\"split_start\":7,\"offset\":5,\"line\":\"{}\"}\n"
        );
        let row = |text, rating| {
            let json =
                rejected(NoReview::Rejected(BadRating), Position::Row(3), Content::Row { text, rating });
            let start = r#"{"reason":"bad_rating","file":"a \"b\"","row":3,"#;
            json.strip_prefix(start).unwrap_or_else(|| panic!("{json}")).trim_end().to_owned()
        };
        assert_eq!(row(None, RatingValue::Missing), r#""text":null,"rating":null}"#);
        assert_eq!(row(Some(b"a"), RatingValue::Number(7.0)), r#""text":"a","rating":7}"#);
        assert_eq!(row(Some(b""), RatingValue::Number(-0.5)), r#""text":"","rating":-0.5}"#);
        assert_eq!(row(Some(b"a"), RatingValue::Number(f64::NAN)), r#""text":"a","rating":"NaN"}"#);
        assert_eq!(
            row(Some(b"\xFF"), RatingValue::Text(b"x\xFF")),
            "\"text_base64\":\"/w==\",\"rating\":\"x\u{FFFD}\"}"
        );
    }
}

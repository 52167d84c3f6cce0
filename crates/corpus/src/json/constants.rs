//! Parses lines of JSON with `NaN`, `Infinity` and `-Infinity`, which Python's json and pandas write and RFC 8259 does not
//! have. They are read as numbers that are no rating. Only lines that are no JSON without them are read here.

use super::JsonParser;
use super::tokens::Tokens;
use crate::entry::{EachEntry, Entry, Reject};
use crate::fields::Fields;

/// Parses such lines and reuses its memory.
#[derive(Debug)]
pub(crate) struct ConstantsParser {
    pub json: JsonParser,
    line: String,
}

/// A number that is infinite as a double.
const INFINITE: &str = "1e999";

impl ConstantsParser {
    pub fn new(fields: &Fields) -> Self {
        Self { json: JsonParser::new(fields), line: String::new() }
    }

    /// Parses one line, passed without its line end.
    pub fn parse<'a>(&'a mut self, line: &str) -> Result<Entry<'a>, Reject> {
        if self.replace(line) { self.json.parse(&self.line) } else { Err(Reject::BadLine) }
    }

    /// Parses one line and passes on the reviews of its list, as [`JsonParser::each`] does.
    pub fn each(&mut self, line: &str, visit: &mut EachEntry<'_>) -> Option<()> {
        if self.replace(line) { self.json.each(&self.line, visit) } else { None }
    }

    /// Replaces the constants. Returns whether there are any.
    fn replace(&mut self, line: &str) -> bool {
        self.line.clear();
        let bytes = line.as_bytes();
        let (mut copied, mut at) = (0, 0);
        while let Some(found) = memchr::memchr3(b'"', b'N', b'I', &bytes[at..]) {
            at += found;
            if bytes[at] == b'"' {
                let mut string = Tokens::of(&line[at + 1..]);
                if string.skip_string().is_none() {
                    break;
                }
                at += 1 + string.offset();
                continue;
            }
            match constant(bytes, at) {
                Some(constant) => {
                    self.line.push_str(&line[copied..at]);
                    self.line.push_str(INFINITE);
                    at += constant.len();
                    copied = at;
                }
                None => at += 1,
            }
        }
        self.line.push_str(&line[copied..]);
        copied > 0
    }
}

/// The constant at this place, where a value can start and end.
fn constant(bytes: &[u8], at: usize) -> Option<&'static str> {
    let name = ["NaN", "Infinity"].into_iter().find(|name| bytes[at..].starts_with(name.as_bytes()))?;
    let before = bytes[..at].last().copied().unwrap_or_default();
    let starts = matches!(before, b':' | b',' | b'[' | b' ' | b'\t' | b'\n' | b'\r')
        || (before == b'-' && name != "NaN");
    let ends = matches!(bytes.get(at + name.len())?, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
    (starts && ends).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_python_are_numbers_outside_of_strings() {
        let mut parser = ConstantsParser::new(&Fields::default());
        let mut text =
            |line: &str| parser.parse(line).map(|entry| (entry.text.to_owned(), entry.rating.is_ok()));
        for line in [
            r#"{"reviewText": "a", "overall": 5, "price": NaN}"#,
            r#"{"x": -Infinity, "reviewText": "a", "overall": 5}"#,
            "{\"reviewText\": \"a\", \"overall\": 5, \"x\":\nNaN\n}",
            r#"{"x": [Infinity,NaN , {"y":NaN}], "reviewText": "a", "overall": 5}"#,
        ] {
            assert_eq!(text(line), Ok(("a".to_owned(), true)), "{line}");
        }
        let quoted = r#"{"reviewText": "\" NaN \\", "overall": NaN, "NaN": "Infinity"}"#;
        assert_eq!(text(quoted), Ok(("\" NaN \\".to_owned(), false)));
        assert_eq!(text(r#"{"reviewText": NaN, "overall": 5}"#), Err(Reject::NoText));
        for broken in [
            r#"{"reviewText": "a", "overall": 5, "x": 1NaN}"#,
            r#"{"reviewText": "a", "overall": 5, "x": NaNs}"#,
            r#"{"reviewText": "a", "overall": 5, "x": -NaN}"#,
            r#"{"reviewText": "a", "overall": 5, "x": nan}"#,
            r#"{"reviewText": "a", "overall": 5, NaN: 1}"#,
            r#"{"reviewText": "a", "overall": 5, "x": NaN"#,
            r#"{"reviewText": "a", "overall": 5, "x": "NaN}"#,
            r#"{"reviewText": "a", "overall": 5, "x": 1-Infinity}"#,
            r#"{"reviewText": "a", "overall": 5} NaN"#,
            "NaN",
            "",
        ] {
            assert_eq!(text(broken), Err(Reject::BadLine), "{broken}");
        }
    }
}

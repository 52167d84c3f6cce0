//! Splits a JSON array into its elements: `[{"reviewText": "fits", "overall": 5}, …]`, on one line or on several.
//!
//! An element is passed on unparsed, as a line would be, so that an element that is not a review is one bad line.
//! Only the ends of elements are searched here: brackets outside of strings. Several arrays may follow each other, as
//! in `cat a.json b.json`. Anything else outside of an element, and an array without an end, is an error, because the
//! number of missing elements is unknown.

use std::io::{self, Read};

use thiserror::Error;

use crate::buffer::BYTE_ORDER_MARK;
use crate::lines::{Line, LineContent, without_mark};
use crate::window::{Piece, Window};

/// Whether content with this beginning is an array of objects: its first characters other than white space are `[{`, or
/// `[` at its end. Another array is a bad line among others.
pub fn is_array(beginning: &[u8]) -> bool {
    let beginning = without_mark(beginning);
    let mut filled = beginning.iter().filter(|byte| !is_space(**byte));
    filled.next() == Some(&b'[') && matches!(filled.next(), None | Some(b'{'))
}

/// Decides whether content that [`is_array`] is an array, or lines of which only the first is an array. It is lines if
/// the first line ends its array, and the next line that is not blank does not start with `[`: then the first line is one
/// bad line, as it would be anywhere else.
#[derive(Debug, Default)]
pub struct FirstLine {
    at: FirstLineAt,
    array: ElementScan,
}

/// What the next byte of [`FirstLine`] belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstLineAt {
    /// White space before the array.
    #[default]
    Start,
    Array,
    /// The line that has ended its array.
    Rest,
    /// The lines after it.
    Next,
}

impl FirstLine {
    /// Reads the next bytes of the content. Returns whether the content is an array, or `None` if this depends on the
    /// bytes that follow. At the end of the content, it is an array.
    pub fn is_of_array(&mut self, bytes: &[u8]) -> Option<bool> {
        let mut rest = bytes;
        if self.at == FirstLineAt::Start {
            let start = memchr::memchr(b'[', rest)?;
            (self.at, rest) = (FirstLineAt::Array, &rest[start..]);
        }
        if self.at == FirstLineAt::Array {
            let line_bytes = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            match self.array.end(&rest[..line_bytes]) {
                Some(end) => (self.at, rest) = (FirstLineAt::Rest, &rest[end..]),
                None => return (line_bytes < rest.len()).then_some(true),
            }
        }
        for &byte in rest {
            match byte {
                b'\n' | b'\r' => self.at = FirstLineAt::Next,
                // A byte-order mark may precede each of several arrays.
                _ if is_space(byte) || BYTE_ORDER_MARK.contains(&byte) => {}
                _ => return Some(self.at == FirstLineAt::Rest || byte == b'['),
            }
        }
        None
    }
}

/// White space of RFC 8259.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Why the elements of an array cannot be read.
#[derive(Debug, Error)]
pub enum ArrayError {
    /// The stream could not be read.
    #[error("cannot read the JSON array: {0}")]
    Read(#[from] io::Error),
    /// The stream ends within an array.
    #[error(
        "the JSON array is cut off: it ends at byte {end}, after {elements} elements, without a ]; fetch the file again"
    )]
    Unfinished {
        /// Offset of the end of the stream.
        end: u64,
        /// Number of complete elements.
        elements: u64,
    },
    /// A byte that cannot follow the previous element or array.
    #[error("the JSON array is damaged: found {:?} at byte {at}, after {elements} elements, expected {expected}; correct it", char::from(*found))]
    Unexpected {
        /// The byte.
        found: u8,
        /// Its offset.
        at: u64,
        /// Number of elements before it.
        elements: u64,
        /// What is valid there.
        expected: &'static str,
    },
}

/// Splits a stream of bytes into the elements of arrays.
#[derive(Debug)]
pub struct ElementReader<R> {
    window: Window<R>,
    next: NextToken,
    n_elements: u64,
}

/// The next thing that may be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextToken {
    /// An array, or the end of the stream.
    Array,
    /// An element, or the end of an empty array.
    First,
    /// An element.
    Next,
    /// A comma, or the end of the array.
    Separator,
}

impl<R: Read> ElementReader<R> {
    /// Reads from `source`. An element of more than `element_bytes_max` bytes is skipped without being stored.
    pub fn new(source: R, element_bytes_max: usize) -> Self {
        Self::within(Window::new(source, element_bytes_max))
    }

    fn within(window: Window<R>) -> Self {
        Self { window, next: NextToken::Array, n_elements: 0 }
    }

    /// Returns the next element, or `None` after the last array.
    pub fn next_element(&mut self) -> Result<Option<Line<'_>>, ArrayError> {
        loop {
            let Some(first) = self.next_byte()? else {
                return match self.next {
                    NextToken::Array => Ok(None),
                    _ => Err(self.unfinished()),
                };
            };
            if self.next == NextToken::Array && self.window.skip_mark()? {
                continue;
            }
            self.next = match (self.next, first) {
                (NextToken::Array, b'[') => NextToken::First,
                (NextToken::First | NextToken::Separator, b']') => NextToken::Array,
                (NextToken::Separator, b',') => NextToken::Next,
                (NextToken::Array, _) => return Err(self.unexpected(first, "[ or the end")),
                (NextToken::Separator, _) => return Err(self.unexpected(first, "a comma or ]")),
                (NextToken::First | NextToken::Next, b',' | b']' | b'}' | b':') => {
                    return Err(self.unexpected(first, "an element"));
                }
                (NextToken::First | NextToken::Next, _) => break,
            };
            self.window.take(1);
        }
        self.next = NextToken::Separator;
        self.element().map(Some)
    }

    /// Skips white space and returns the byte that follows it.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let unread = self.window.unread()?;
            let n_spaces = unread.iter().take_while(|byte| is_space(**byte)).count();
            match unread.get(n_spaces).copied() {
                None if unread.is_empty() => return Ok(None),
                found => {
                    self.window.take(n_spaces);
                    if found.is_some() {
                        return Ok(found);
                    }
                }
            }
        }
    }

    fn element(&mut self) -> Result<Line<'_>, ArrayError> {
        let offset = self.window.offset();
        let mut scan = ElementScan::default();
        match self.window.piece(|bytes| scan.end(bytes))? {
            Piece::Held { bytes, is_ended: true } => {
                self.n_elements += 1;
                Ok(Line { offset, content: LineContent::Bytes(self.window.take(bytes)) })
            }
            Piece::Held { is_ended: false, bytes } => {
                self.window.take(bytes);
                Err(self.unfinished())
            }
            Piece::TooLong => {
                let mut scan = ElementScan::default();
                let (bytes, is_ended) = self.window.read_past(|bytes| scan.end(bytes))?;
                if !is_ended {
                    return Err(self.unfinished());
                }
                self.n_elements += 1;
                Ok(Line { offset, content: LineContent::TooLong { bytes, blank: false } })
            }
        }
    }

    fn unfinished(&self) -> ArrayError {
        ArrayError::Unfinished { end: self.window.offset(), elements: self.n_elements }
    }

    fn unexpected(&self, found: u8, expected: &'static str) -> ArrayError {
        ArrayError::Unexpected { found, at: self.window.offset(), elements: self.n_elements, expected }
    }
}

/// Searches the end of an element.
#[derive(Debug, Default)]
pub(crate) struct ElementScan {
    /// Number of open brackets.
    depth: usize,
    /// The quote that ends the current string. Python literals have single quotes, which JSON has only inside strings.
    quote: Option<u8>,
    /// The last byte was a backslash in a string.
    is_escaped: bool,
    /// A number or a name has begun, outside of all brackets.
    is_scalar: bool,
}

impl ElementScan {
    /// The number of bytes before the end of the element, if it is in `bytes`.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if let Some(quote) = self.quote {
                if std::mem::take(&mut self.is_escaped) {
                    at += 1;
                    continue;
                }
                let found = memchr::memchr2(quote, b'\\', &bytes[at..])?;
                at += found + 1;
                if bytes[at - 1] == b'\\' {
                    self.is_escaped = true;
                } else {
                    self.quote = None;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                continue;
            }
            let byte = bytes[at];
            match byte {
                // After a number or a name, these begin something that is not its element.
                b'"' | b'\'' | b'{' | b'[' | b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'
                    if self.is_scalar =>
                {
                    return Some(at);
                }
                b'"' | b'\'' => self.quote = Some(byte),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ if self.depth == 0 => self.is_scalar = true,
                _ => {}
            }
            at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    type Owned = (u64, Result<Vec<u8>, u64>);

    fn elements(source: impl Read, bytes_max: usize, buffer_bytes: usize) -> Result<Vec<Owned>, ArrayError> {
        let mut reader = ElementReader::within(Window::with_buffer_bytes(source, bytes_max, buffer_bytes));
        let mut all = Vec::new();
        while let Some(line) = reader.next_element()? {
            let content = match line.content {
                LineContent::Bytes(bytes) => Ok(bytes.to_vec()),
                LineContent::TooLong { bytes, .. } => Err(bytes),
            };
            all.push((line.offset, content));
        }
        Ok(all)
    }

    fn texts(array: &str) -> Result<Vec<String>, String> {
        let all = elements(array.as_bytes(), 1000, 64).map_err(|error| error.to_string())?;
        Ok(all.into_iter().map(|(_, bytes)| String::from_utf8(bytes.unwrap()).unwrap()).collect())
    }

    #[test]
    fn elements_of_all_kinds_are_split() {
        let array = "\u{FEFF} [ {\"a\": \"]}\\\"\"}, [1, [2]] ,-1.5e3,\n\"a, b\",null , {'b': \"it's ]\"},\r\n{\n\"c\": [\n]\n}\n]\n";
        let expected = [
            "{\"a\": \"]}\\\"\"}",
            "[1, [2]]",
            "-1.5e3",
            "\"a, b\"",
            "null",
            "{'b': \"it's ]\"}",
            "{\n\"c\": [\n]\n}",
        ];
        assert_eq!(texts(array).unwrap(), expected);
        assert_eq!(texts("[]").unwrap(), [""; 0]);
        assert_eq!(texts("[1,2][]\n\u{FEFF}[3]").unwrap(), ["1", "2", "3"]);
    }

    #[test]
    fn the_offset_of_an_element_is_that_of_its_first_byte() {
        let all = elements(&b"[ {},\n  {\"a\": 1}]"[..], 10, 3).unwrap();
        assert_eq!(all, [(2, Ok(b"{}".to_vec())), (8, Ok(b"{\"a\": 1}".to_vec()))]);
    }

    #[test]
    fn an_element_beyond_the_limit_is_skipped_without_being_stored() {
        let long = 50_000_000;
        let source = b"[\"".chain(io::repeat(b'x').take(long)).chain(&b"\", 1]"[..]);
        let mut reader = ElementReader::within(Window::with_buffer_bytes(source, 1000, 64));
        let first = reader.next_element().unwrap().unwrap();
        assert_eq!(first.content, LineContent::TooLong { bytes: long + 2, blank: false });
        assert_eq!(reader.next_element().unwrap().unwrap().content, LineContent::Bytes(b"1"));
        assert!(reader.next_element().unwrap().is_none());
    }

    #[test]
    fn an_array_without_an_end_is_an_error() {
        for array in ["[", "[1", "[1,", "[1, {\"a\": 1", "[1, \"a", "[1, {\"a\": \"]}", "[1] [2"] {
            let message = texts(array).unwrap_err();
            assert!(message.starts_with("the JSON array is cut off: it ends at byte "), "{array}: {message}");
        }
        let long = format!("[1, {{\"a\": \"{}", "x".repeat(5000));
        let message = texts(&long).unwrap_err();
        assert!(message.contains("ends at byte 5011, after 1 elements"), "{message}");
    }

    #[test]
    fn bytes_between_elements_and_behind_the_array_are_errors() {
        for (array, expected) in [
            ("[1,]", "found ']' at byte 3, after 1 elements, expected an element"),
            ("[,1]", "found ',' at byte 1, after 0 elements, expected an element"),
            ("[1,,2]", "found ',' at byte 3, after 1 elements, expected an element"),
            ("[{} {}]", "found '{' at byte 4, after 1 elements, expected a comma or ]"),
            ("[1]\n{}", "found '{' at byte 4, after 1 elements, expected [ or the end"),
        ] {
            let message = texts(array).unwrap_err();
            assert!(message.contains(expected), "{array}: {message}");
        }
    }

    #[test]
    fn an_array_is_recognized_behind_white_space_and_a_mark() {
        assert!(is_array(b"[") && is_array(b"\xEF\xBB\xBF \r\n\t[{"));
        assert!(is_array(b"[\r") && is_array(b" [ {"));
        assert!(
            !is_array(b"") && !is_array(b" {") && !is_array(b"x[") && !is_array(b"[1, {") && !is_array(b"[]")
        );
    }

    #[test]
    fn only_a_first_line_that_is_an_array_before_other_lines_is_a_line() {
        for (text, expected) in [
            ("[{\"a\": \"]\"}]\n{}", Some(false)),
            ("\u{FEFF} \n[{}] \r\n\n\u{FEFF} {}", Some(false)),
            ("[{}]\nx", Some(false)),
            ("[{}]\n[{}]", Some(true)),
            ("[{}]\n\u{FEFF}[{}]", Some(true)),
            ("[{}][{}]", Some(true)),
            ("[{}] {}\n{}", Some(true)),
            ("[\n{}]\n{}", Some(true)),
            ("[{},\r\n{}]\n{}", Some(true)),
            ("[{\"a\": \"\n{}", Some(true)),
            ("[{}]", None),
            ("[{}] \n\t\r\n", None),
            ("[{", None),
        ] {
            for bytes in [1, 2, 100] {
                let mut first = FirstLine::default();
                let found = text.as_bytes().chunks(bytes).find_map(|chunk| first.is_of_array(chunk));
                assert_eq!(found, expected, "{text:?}, {bytes} bytes at once");
            }
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop::string::string_regex("[a'\"\\\\\\[\\]{},: \n\u{E9}]{0,6}").unwrap().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a\"'\\]}]{0,3}", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn elements_equal_those_of_serde_for_every_block_size(
            all in prop::collection::vec(values(), 0..6),
            is_pretty in any::<bool>(),
            buffer_bytes in 1..9usize,
        ) {
            let array = Value::from(all.clone());
            let text = if is_pretty { serde_json::to_string_pretty(&array) } else { serde_json::to_string(&array) };
            let found = elements(text.unwrap().as_bytes(), 1000, buffer_bytes).unwrap();
            let parsed: Vec<Value> =
                found.iter().map(|(_, bytes)| serde_json::from_slice(bytes.as_ref().unwrap()).unwrap()).collect();
            prop_assert_eq!(parsed, all);
        }
    }
}

//! Parses a Python-literal line of the older dumps into a review: `{'reviewerID': 'A1', "reviewText":
//! "it's"}`.
//!
//! Values equal those of `ast.literal_eval`. Excluded, because no dump contains them: bytes, sets, complex
//! numbers, comments, `\N{…}`, and nesting deeper than `DEPTH_MAX` (parentheses count). A surrogate pair
//! becomes its character, as in JSON. A lone surrogate becomes U+FFFD.

use crate::format::Fields;
use crate::review::{DEPTH_MAX, Entry, Rating, Reject};

mod number;
mod string;

use string::Unescaped;

/// Parses Python-literal lines and reuses its memory.
#[derive(Debug)]
pub struct LiteralParser {
    fields: Fields,
    name: Unescaped,
    text: Unescaped,
    rating: Unescaped,
}

/// The kind of a value. The content of a string is in the buffer of the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    String,
    /// A number without a sign. Only such a number may follow a sign.
    Number(f64),
    SignedNumber(f64),
    /// `True`, `False`, `None`, or a tuple that can be a key.
    Other,
    /// A list, a dict, or a tuple that contains a list or a dict. It cannot be a key.
    Unhashable,
}

impl LiteralParser {
    /// Creates a parser that reads these fields of the top-level dict.
    pub fn new(fields: Fields) -> Self {
        Self { fields, name: Unescaped::default(), text: Unescaped::default(), rating: Unescaped::default() }
    }

    /// Parses one line, passed without its line end.
    pub fn parse<'a>(&'a mut self, line: &str) -> Result<Entry<'a>, Reject> {
        let (has_text, rating) = self.find(line).ok_or(Reject::BadLine)?;
        if !has_text {
            return Err(Reject::NoText);
        }
        Ok(Entry { text: self.text.as_str(), rating })
    }

    /// Walks the whole line. Returns `None` if it is not a dict. Stores the text, if there is one, in
    /// `self.text`.
    fn find(&mut self, line: &str) -> Option<(bool, Option<Rating>)> {
        let mut cursor = Cursor { rest: line.as_bytes() };
        let mut has_text = false;
        let mut rating = None;
        cursor.skip_space();
        cursor.take(b'{').then_some(())?;
        while !cursor.closes(b'}') {
            let is_string = cursor.key(1, Some(&mut self.name))? == Value::String;
            if is_string && self.name.as_str() == self.fields.text {
                has_text = cursor.value(1, Some(&mut self.text))? == Value::String;
            } else if is_string && self.name.as_str() == self.fields.rating {
                rating = match cursor.value(1, Some(&mut self.rating))? {
                    Value::String => Rating::from_text(self.rating.as_str()),
                    Value::Number(number) | Value::SignedNumber(number) => Rating::from_number(number),
                    Value::Other | Value::Unhashable => None,
                };
            } else {
                cursor.value(1, None)?;
            }
            cursor.separator(b'}')?;
        }
        cursor.skip_space();
        cursor.rest.is_empty().then_some((has_text, rating))
    }
}

/// The unread bytes of a line. Every method returns `None` if the line is not a literal.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    /// Parses a key and its colon. `depth` is the number of open brackets.
    fn key(&mut self, depth: usize, wanted: Option<&mut Unescaped>) -> Option<Value> {
        let key = self.value(depth, wanted)?;
        self.skip_space();
        (key != Value::Unhashable && self.take(b':')).then_some(key)
    }

    fn value(&mut self, depth: usize, wanted: Option<&mut Unescaped>) -> Option<Value> {
        self.skip_space();
        match *self.rest.first()? {
            b'(' => self.parentheses(depth + 1, wanted),
            b'[' => self.list(depth + 1),
            b'{' => self.dict(depth + 1),
            b'0'..=b'9' | b'.' => self.number().map(Value::Number),
            sign @ (b'+' | b'-') => {
                self.rest = &self.rest[1..];
                self.skip_space();
                // A second sign would recurse, and Python refuses it too.
                if matches!(self.rest.first()?, b'+' | b'-') {
                    return None;
                }
                let Value::Number(number) = self.value(depth, None)? else { return None };
                Some(Value::SignedNumber(if sign == b'-' { -number } else { number }))
            }
            b'T' => self.constant(b"True"),
            b'F' => self.constant(b"False"),
            b'N' => self.constant(b"None"),
            _ => self.strings(wanted),
        }
    }

    fn constant(&mut self, name: &[u8]) -> Option<Value> {
        self.rest = self.rest.strip_prefix(name)?;
        Some(Value::Other)
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.open(depth)?;
        while !self.closes(b']') {
            self.value(depth, None)?;
            self.separator(b']')?;
        }
        Some(Value::Unhashable)
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        self.open(depth)?;
        while !self.closes(b'}') {
            self.key(depth, None)?;
            self.value(depth, None)?;
            self.separator(b'}')?;
        }
        Some(Value::Unhashable)
    }

    /// Parses a tuple, or a single value in parentheses.
    fn parentheses(&mut self, depth: usize, wanted: Option<&mut Unescaped>) -> Option<Value> {
        self.open(depth)?;
        if self.closes(b')') {
            return Some(Value::Other);
        }
        let first = self.value(depth, wanted)?;
        if self.closes(b')') {
            return Some(first);
        }
        self.separator(b')')?;
        let mut tuple = if first == Value::Unhashable { Value::Unhashable } else { Value::Other };
        while !self.closes(b')') {
            if self.value(depth, None)? == Value::Unhashable {
                tuple = Value::Unhashable;
            }
            self.separator(b')')?;
        }
        Some(tuple)
    }

    /// Consumes an opening bracket, which is the `depth`-th open one.
    fn open(&mut self, depth: usize) -> Option<()> {
        self.rest = &self.rest[1..];
        (depth <= DEPTH_MAX).then_some(())
    }

    fn closes(&mut self, closer: u8) -> bool {
        self.skip_space();
        self.take(closer)
    }

    /// Consumes a comma after an element. A closer stays for `closes`.
    fn separator(&mut self, closer: u8) -> Option<()> {
        self.skip_space();
        (self.take(b',') || *self.rest.first()? == closer).then_some(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.rest.strip_prefix(&[byte]);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    /// Skips the bytes that Python skips between the tokens of a line. These include the form feed.
    fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\x0C', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests;

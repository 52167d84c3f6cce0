//! Parses a Python-literal line of the older dumps into a review: `{'reviewerID': 'A1', "reviewText":
//! "it's"}`.
//!
//! Values equal those of `ast.literal_eval`. Excluded, because no dump contains them: bytes, sets, complex
//! numbers, comments, `\N{…}`, and nesting deeper than `DEPTH_MAX` (parentheses count). Added, because `repr` writes
//! them: the numbers `nan` and `inf`, and `2L` of Python 2. A surrogate pair becomes its character, as in JSON. A lone
//! surrogate becomes U+FFFD.

use std::ops::Range;

use crate::entry::{DEPTH_MAX, EachEntry, Entry, RatingValue, Reject};
use crate::fields::{FieldTree, Fields, NodeId};
use crate::rating_rule::{Rated, RatingRule};

mod number;
mod string;

use string::Unescaped;

/// Parses Python-literal lines and reuses its memory.
#[derive(Debug)]
pub struct LiteralParser {
    tree: FieldTree,
    pub(crate) ratings: RatingRule,
    /// The strings of the text fields.
    parts: Vec<UnescapedText>,
    /// `None` without the field.
    rating: Option<Rated>,
    /// The list of the last line whose elements are reviews.
    list: Option<Range<usize>>,
    name: Unescaped,
    /// The string of a field without a text.
    spelled: Unescaped,
    joined: String,
}

/// The string of a text field.
#[derive(Debug, Default)]
struct UnescapedText {
    is_present: bool,
    text: Unescaped,
}

/// The kind of a value. The content of a string is in the buffer of the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    String,
    /// A number without a sign. Only such a number may follow a sign.
    Number(f64),
    SignedNumber(f64),
    Bool(bool),
    None,
    /// A tuple that can be a key.
    Tuple,
    /// A dict. It cannot be a key.
    Dict,
    /// A list, or a tuple that contains a list or a dict. It cannot be a key.
    Unhashable,
}

impl Value {
    fn is_hashable(self) -> bool {
        !matches!(self, Self::Dict | Self::Unhashable)
    }
}

impl LiteralParser {
    /// Creates a parser that reads these fields.
    pub fn new(fields: &Fields) -> Self {
        Self {
            tree: FieldTree::of(fields),
            ratings: RatingRule::of(fields),
            parts: fields.text.iter().map(|_| UnescapedText::default()).collect(),
            rating: None,
            list: None,
            name: Unescaped::default(),
            spelled: Unescaped::default(),
            joined: String::new(),
        }
    }

    /// Parses one line, passed without its line end.
    pub fn parse<'a>(&'a mut self, line: &str) -> Result<Entry<'a>, Reject> {
        self.find(line).ok_or(Reject::BadLine)?;
        self.entry()
    }

    /// Parses one line and passes on the reviews of its list, as `JsonParser` does.
    pub(crate) fn each(&mut self, line: &str, visit: &mut EachEntry<'_>) -> Option<()> {
        self.find(line)?;
        let (Some(id), Some(list)) = (self.tree.list, self.list.clone()) else {
            visit(0..line.len(), self.entry());
            return Some(());
        };
        // The line was valid, and so are the elements.
        let mut cursor = Cursor { rest: &line.as_bytes()[list.clone()] };
        cursor.take(b'[').then_some(())?;
        let (rating, mut n_elements) = (self.rating, 0);
        while !cursor.closes(b']') {
            let start = list.end - cursor.rest.len();
            self.rating = rating;
            self.field(&mut cursor, id, 1)?;
            let end = list.end - cursor.rest.len();
            visit(start..end, self.entry());
            cursor.separator(b']')?;
            n_elements += 1;
        }
        if n_elements == 0 {
            visit(0..line.len(), Err(Reject::NoText));
        }
        Some(())
    }

    /// The review of the parts that were found last.
    fn entry(&mut self) -> Result<Entry<'_>, Reject> {
        let Self { parts, rating, ratings, joined, .. } = self;
        let rating = rating.unwrap_or_else(|| ratings.of_absent());
        let label = ratings.label();
        let mut present = parts.iter().filter(|part| part.is_present).map(|part| part.text.as_str());
        let first = present.next().ok_or(Reject::NoText)?;
        let Some(second) = present.next() else { return Ok(Entry { text: first, rating, label }) };
        joined.clear();
        joined.push_str(first);
        for text in [second].into_iter().chain(present) {
            joined.push(' ');
            joined.push_str(text);
        }
        Ok(Entry { text: joined, rating, label })
    }

    /// Walks the whole line. Returns `None` if it is not a dict. Stores the strings of the text fields and the
    /// rating.
    fn find(&mut self, line: &str) -> Option<()> {
        self.parts.iter_mut().for_each(|part| part.is_present = false);
        self.rating = None;
        self.list = None;
        let mut cursor = Cursor { rest: line.as_bytes() };
        cursor.skip_space();
        self.members(&mut cursor, FieldTree::ROOT, 1)?;
        cursor.skip_space();
        // Positions were counted from the end of the line.
        self.list = self.list.take().map(|list| line.len() - list.start..line.len() - list.end);
        cursor.rest.is_empty().then_some(())
    }

    /// Reads a dict, whose bracket is the `depth`-th open one.
    fn members(&mut self, cursor: &mut Cursor<'_>, dict: NodeId, depth: usize) -> Option<()> {
        cursor.take(b'{').then_some(())?;
        while !cursor.closes(b'}') {
            let is_string = cursor.key(depth, Some(&mut self.name))? == Value::String;
            let field = if is_string { self.tree.child(dict, self.name.as_str()) } else { None };
            match field {
                Some(field) => self.field(cursor, field, depth)?,
                None => _ = cursor.value(depth, None)?,
            }
            cursor.separator(b'}')?;
        }
        Some(())
    }

    /// Reads the value of a field inside of `depth` brackets.
    fn field(&mut self, cursor: &mut Cursor<'_>, id: NodeId, depth: usize) -> Option<()> {
        let Self { tree, ratings, parts, rating, list, spelled, .. } = self;
        let node = tree.node(id);
        // The last of duplicate fields counts, with all that is in it.
        node.texts_below.iter().for_each(|&text| parts[text].is_present = false);
        if node.has_rating_below {
            *rating = None;
        }
        if node.has_list_below {
            *list = None;
        }
        cursor.skip_space();
        let before = cursor.rest;
        let string = match node.text {
            Some(text) => &mut parts[text].text,
            None => spelled,
        };
        match cursor.value(depth, Some(&mut *string))? {
            Value::String => {
                if node.is_rating {
                    *rating = Some(ratings.of_text(string.as_str()));
                }
                if let Some(text) = node.text {
                    parts[text].is_present = true;
                }
            }
            Value::Number(number) | Value::SignedNumber(number) if node.is_rating => {
                *rating = Some(ratings.of_number(number));
            }
            Value::Bool(value) if node.is_rating => {
                *rating = Some(ratings.of_value(RatingValue::of_bool(value)));
            }
            Value::None if node.is_rating => *rating = Some(ratings.of_absent()),
            Value::Unhashable if node.is_list && before.starts_with(b"[") => {
                *list = Some(before.len()..cursor.rest.len());
            }
            // The dict is valid. It is read again, which happens at most once per name of a path.
            Value::Dict if node.has_children() => {
                let mut again = Cursor { rest: before };
                while again.rest.first() != Some(&b'{') {
                    // White space, or a parenthesis around the dict.
                    again.rest = again.rest.get(1..)?;
                }
                self.members(&mut again, id, depth + 1)?;
            }
            _ => {}
        }
        Some(())
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
        (key.is_hashable() && self.take(b':')).then_some(key)
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
            b'T' => self.constant(b"True", Value::Bool(true)),
            b'F' => self.constant(b"False", Value::Bool(false)),
            b'N' => self.constant(b"None", Value::None),
            b'n' => self.constant(b"nan", Value::Number(f64::NAN)),
            b'i' => self.constant(b"inf", Value::Number(f64::INFINITY)),
            _ => self.strings(wanted),
        }
    }

    fn constant(&mut self, name: &[u8], value: Value) -> Option<Value> {
        self.rest = self.rest.strip_prefix(name)?;
        Some(value)
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
        Some(Value::Dict)
    }

    /// Parses a tuple, or a single value in parentheses.
    fn parentheses(&mut self, depth: usize, wanted: Option<&mut Unescaped>) -> Option<Value> {
        self.open(depth)?;
        if self.closes(b')') {
            return Some(Value::Tuple);
        }
        let first = self.value(depth, wanted)?;
        if self.closes(b')') {
            return Some(first);
        }
        self.separator(b')')?;
        let mut tuple = if first.is_hashable() { Value::Tuple } else { Value::Unhashable };
        while !self.closes(b')') {
            if !self.value(depth, None)?.is_hashable() {
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

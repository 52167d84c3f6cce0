//! Parses a JSON line into a review. The whole line must be one valid RFC 8259 object, nested at most
//! `DEPTH_MAX` deep.
//!
//! sonic-rs parses the tokens: strings, numbers, white space. This module does the rest:
//! - Nesting. sonic-rs recurses without a limit, so containers are walked here, with their kinds on a bit
//!   stack.
//! - The hex digits of `\u` in skipped strings, which sonic-rs does not check.
//! - Field names. They are compared after unescaping, and the last of duplicate fields counts, so the walk
//!   always reaches the end of the line.
//! - Fields of nested objects and of the elements of a list, and several text fields (`json/nested.rs`). One text
//!   field at the top level, the usual case, is returned without a copy.
//!
//! The bytes between two values (`, "overall": `) repeat from line to line in one file. The parser remembers
//! them with their meaning, which avoids most of the work outside of the text.

use std::ops::Range;

use crate::entry::{DEPTH_MAX, Entry, Reject};
use crate::fields::{FieldTree, Fields, NodeId};
use crate::rating_rule::{Rated, RatingRule};
use sonic_rs::parser::{ParseStatus, Parser, Reference};
use sonic_rs::reader::{Read, Reader};

mod constants;
mod nested;

pub(crate) use constants::ConstantsParser;
use nested::TextPart;

/// Parses JSON lines and reuses its memory.
#[derive(Debug)]
pub struct JsonParser {
    tree: FieldTree,
    pub(crate) ratings: RatingRule,
    /// The fields at the top level that are read or contain such fields.
    top_level: Vec<(String, Field)>,
    /// The strings of the text fields, unless there is only one, at the top level.
    parts: Vec<TextPart>,
    /// The list of the last line whose elements are reviews.
    list: Option<Range<usize>>,
    separators: Separators,
    /// The last text that had escapes, unescaped.
    unescaped: Vec<u8>,
    /// A field name or a rating string that had escapes, unescaped.
    short: Vec<u8>,
}

type Tokens<'a> = Parser<Read<'a>>;

#[derive(Clone, Copy)]
struct Found<'a> {
    text: Text<'a>,
    /// `None` without the field.
    rating: Option<Rated>,
}

#[derive(Clone, Copy)]
enum Text<'a> {
    Absent,
    InLine(&'a str),
    /// The text had escapes. The unescaped text is in the memory of the parser.
    Unescaped,
}

/// The meaning of a field at the top level.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// The only text field.
    Text,
    Rating,
    /// A part of the text, or an object whose fields are read.
    Nested(NodeId),
    Other,
}

impl JsonParser {
    /// Creates a parser that reads these fields.
    pub fn new(fields: &Fields) -> Self {
        let tree = FieldTree::of(fields);
        let is_one = matches!(&fields.text[..], [path] if path.names().len() == 1) && tree.list.is_none();
        let meaning = |id| {
            let node = tree.node(id);
            match (node.text, node.is_rating) {
                _ if node.has_children() || node.is_list => Field::Nested(id),
                (Some(_), false) if is_one => Field::Text,
                (None, true) => Field::Rating,
                _ => Field::Nested(id),
            }
        };
        let named = |(name, id): &(String, NodeId)| (name.clone(), meaning(*id));
        let top_level: Vec<_> = tree.node(FieldTree::ROOT).children.iter().map(named).collect();
        let is_direct = top_level.iter().any(|(_, field)| matches!(field, Field::Text));
        let n_parts = if is_direct { 0 } else { fields.text.len() };
        Self {
            tree,
            ratings: RatingRule::of(fields),
            top_level,
            parts: vec![TextPart::default(); n_parts],
            list: None,
            separators: Separators::default(),
            unescaped: Vec::new(),
            short: Vec::new(),
        }
    }

    /// Parses one line, passed without its line end. A lone UTF-16 surrogate in an escape becomes U+FFFD.
    pub fn parse<'a>(&'a mut self, line: &'a str) -> Result<Entry<'a>, Reject> {
        let found = self.find(line).ok_or(Reject::BadLine)?;
        self.entry(found)
    }

    fn entry<'a>(&'a mut self, found: Found<'a>) -> Result<Entry<'a>, Reject> {
        let rating = found.rating.unwrap_or_else(|| self.ratings.of_absent());
        let text = match found.text {
            Text::Absent if nested::join(&self.parts, &mut self.unescaped) => self.unescaped()?,
            Text::Absent => return Err(Reject::NoText),
            Text::InLine(text) => text,
            Text::Unescaped => self.unescaped()?,
        };
        Ok(Entry { text, rating, label: self.ratings.label() })
    }

    fn unescaped(&self) -> Result<&str, Reject> {
        simdutf8::basic::from_utf8(&self.unescaped).map_err(|_| Reject::BadLine)
    }

    /// Walks the whole line. Returns `None` if it is not JSON.
    fn find<'a>(&mut self, line: &'a str) -> Option<Found<'a>> {
        let mut tokens = Parser::new(Read::from(line)).utf8_lossy();
        let mut found = Found { text: Text::Absent, rating: None };
        self.parts.iter_mut().for_each(|part| part.is_present = false);
        self.list = None;
        if tokens.skip_space()? != b'{' {
            return None;
        }
        if tokens.skip_space_peek()? == b'}' {
            tokens.skip_space();
        } else {
            let mut field = self.name(&mut tokens)?;
            loop {
                self.value(&mut tokens, field, &mut found)?;
                match self.next_name(line, &mut tokens)? {
                    Some(next) => field = next,
                    None => break,
                }
            }
        }
        tokens.skip_space().is_none().then_some(found)
    }

    /// Moves from the end of a value to the start of the next and returns the field of that value.
    /// `Some(None)` is the end of the object.
    // This and `value` are the body of the loop. Without these attributes both are calls, and parsing takes 4
    // % longer.
    #[inline(always)]
    fn next_name<'a>(&mut self, line: &'a str, tokens: &mut Tokens<'a>) -> Option<Option<Field>> {
        let start = tokens.offset();
        if let Some((length, field)) = self.separators.recall(&line.as_bytes()[start..]) {
            tokens.read.eat(length);
            return Some(Some(field));
        }
        match tokens.skip_space()? {
            b',' => {
                let field = self.name(tokens)?;
                tokens.skip_space_peek()?;
                self.separators.remember(&line.as_bytes()[start..tokens.offset()], field);
                Some(Some(field))
            }
            b'}' => Some(None),
            _ => None,
        }
    }

    /// Parses a name and its colon.
    fn name(&mut self, tokens: &mut Tokens<'_>) -> Option<Field> {
        if tokens.skip_space()? != b'"' {
            return None;
        }
        let name = tokens.parse_str(&mut self.short).ok()?;
        let known = self.top_level.iter().find(|(known, _)| **known == *name);
        let field = known.map_or(Field::Other, |&(_, field)| field);
        (tokens.skip_space()? == b':').then_some(field)
    }

    #[inline(always)]
    fn value<'a>(&mut self, tokens: &mut Tokens<'a>, field: Field, found: &mut Found<'a>) -> Option<()> {
        let first = tokens.skip_space_peek()?;
        match (field, first) {
            (Field::Text, b'"') => {
                tokens.skip_space();
                found.text = match tokens.parse_str(&mut self.unescaped).ok()? {
                    Reference::Borrowed(text) => Text::InLine(text),
                    Reference::Copied(_) => Text::Unescaped,
                };
            }
            (Field::Rating, b'"') => {
                tokens.skip_space();
                found.rating = Some(self.ratings.of_text(&tokens.parse_str(&mut self.short).ok()?));
            }
            (Field::Rating, b'-' | b'0'..=b'9') => {
                tokens.skip_space();
                // Rust parses every JSON number and rounds exactly. A number that is too large is infinite.
                found.rating = Some(self.ratings.of_number(tokens.skip_number(first).ok()?.parse().ok()?));
            }
            (Field::Nested(id), _) => self.nested(tokens, id, 1, &mut found.rating)?,
            _ => {
                skip_value(tokens, first, 1)?;
                match field {
                    Field::Text => found.text = Text::Absent,
                    Field::Rating => found.rating = Some(self.ratings.of_name(first)),
                    Field::Nested(_) | Field::Other => {}
                }
            }
        }
        Some(())
    }
}

/// Skips the value that starts with `first`, the next byte that is not white space, inside of `depth` containers.
fn skip_value(tokens: &mut Tokens<'_>, first: u8, depth: usize) -> Option<()> {
    match first {
        b'{' | b'[' => skip_container(tokens, depth),
        _ => skip_scalar(tokens),
    }
}

fn skip_scalar(tokens: &mut Tokens<'_>) -> Option<()> {
    let (raw, status) = tokens.skip_one(true).ok()?;
    (status == ParseStatus::None || unicode_escapes_are_whole(raw)).then_some(())
}

/// Skips a container without recursion, so that no line can exhaust the stack.
fn skip_container(tokens: &mut Tokens<'_>, depth: usize) -> Option<()> {
    let mut nesting = Nesting { depth, objects: 0 };
    nesting.open(tokens.skip_space()?)?;
    let mut may_close = true;
    loop {
        let mut first = tokens.skip_space_peek()?;
        if !(may_close && first == nesting.closer()) {
            if nesting.is_object() {
                if first != b'"' {
                    return None;
                }
                skip_scalar(tokens)?;
                if tokens.skip_space()? != b':' {
                    return None;
                }
                first = tokens.skip_space_peek()?;
            }
            if first == b'{' || first == b'[' {
                tokens.skip_space();
                nesting.open(first)?;
                may_close = true;
                continue;
            }
            skip_scalar(tokens)?;
        }
        // Position: after an element, or before the end of an empty container.
        loop {
            let next = tokens.skip_space()?;
            if next == nesting.closer() {
                nesting.close();
                if nesting.depth == depth {
                    return Some(());
                }
            } else if next == b',' {
                may_close = false;
                break;
            } else {
                return None;
            }
        }
    }
}

/// The open containers. The lowest bit states whether the innermost is an object.
struct Nesting {
    depth: usize,
    objects: u128,
}

const _: () = assert!(DEPTH_MAX <= u128::BITS as usize);

impl Nesting {
    fn open(&mut self, opener: u8) -> Option<()> {
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(opener == b'{');
        (self.depth <= DEPTH_MAX).then_some(())
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
    }

    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn closer(&self) -> u8 {
        if self.is_object() { b'}' } else { b']' }
    }
}

/// Whether four hex digits follow each `\u` in a string whose other escapes are known to be valid.
fn unicode_escapes_are_whole(mut rest: &[u8]) -> bool {
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let escape = &rest[at..];
        let escape_bytes = if escape.get(1) == Some(&b'u') { 6 } else { 2 };
        let Some((escape, after)) = escape.split_at_checked(escape_bytes) else { return false };
        if !escape[2..].iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    true
}

/// The bytes found so far between two values: a comma, a name, a colon, and white space between them.
#[derive(Debug, Default)]
struct Separators {
    known: Vec<(Box<[u8]>, Field)>,
    /// The separator that is compared first: the one after the last match, because lines keep the order of
    /// fields.
    expected: usize,
}

// Files have about ten fields. More or longer ones only cost speed.
const SEPARATORS_MAX: usize = 24;
const SEPARATOR_BYTES_MAX: usize = 64;

impl Separators {
    /// The length and the field of the separator at the start of `rest`.
    fn recall(&mut self, rest: &[u8]) -> Option<(usize, Field)> {
        let (before, from) = self.known.split_at(self.expected);
        let is_next = |(bytes, _): &(Box<[u8]>, Field)| rest.starts_with(bytes);
        let at = match from.iter().position(is_next) {
            Some(steps) => self.expected + steps,
            None => before.iter().position(is_next)?,
        };
        let (separator, field) = &self.known[at];
        self.expected = if at + 1 < self.known.len() { at + 1 } else { 0 };
        Some((separator.len(), *field))
    }

    /// Remembers a separator that was parsed.
    fn remember(&mut self, separator: &[u8], field: Field) {
        if separator.len() > SEPARATOR_BYTES_MAX {
            return;
        }
        if self.known.len() == SEPARATORS_MAX {
            // A few unusual lines have filled the list, and a full list would slow down all lines that
            // follow.
            self.known.clear();
            self.expected = 0;
        }
        self.known.push((separator.into(), field));
    }
}

#[cfg(test)]
mod tests;

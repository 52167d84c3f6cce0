//! Parses a JSON line into a review. The whole line must be one valid RFC 8259 object, nested at most
//! `DEPTH_MAX` deep.
//!
//! - `json/tokens.rs` takes strings, numbers and white space.
//! - Containers are walked without recursion, with their kinds on a bit stack.
//! - Field names are compared after unescaping, and the last of duplicate fields counts, so the walk always reaches the
//!   end of the line.
//! - `json/nested.rs` reads fields of nested objects and of the elements of a list, and several text fields. One text
//!   field at the top level, the usual case, is returned without a copy.
//!
//! The bytes between two values (`, "overall": `) repeat from line to line in one file. The parser remembers
//! them with their meaning, which avoids most of the work outside of the text.

use std::ops::Range;

use crate::entry::{DEPTH_MAX, Entry, Reject};
use crate::fields::{FieldTree, Fields, NodeId};
use crate::rating_rule::{Rated, RatingRule};

mod constants;
mod nested;
mod tokens;

pub(crate) use constants::ConstantsParser;
use nested::TextPart;
use tokens::{Text, Tokens};

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
    unescaped: String,
    /// A field name or a rating string that had escapes, unescaped.
    short: String,
}

#[derive(Clone, Copy)]
struct FoundFields<'a> {
    /// `None` without the field, and if the last one is no string.
    text: Option<Text<'a>>,
    /// `None` without the field.
    rating: Option<Rated>,
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
            unescaped: String::new(),
            short: String::new(),
        }
    }

    /// Parses one line, passed without its line end. A lone UTF-16 surrogate in an escape becomes U+FFFD.
    pub fn parse<'a>(&'a mut self, line: &'a str) -> Result<Entry<'a>, Reject> {
        let found = self.find(line).ok_or(Reject::BadLine)?;
        self.entry(found)
    }

    fn entry<'a>(&'a mut self, found: FoundFields<'a>) -> Result<Entry<'a>, Reject> {
        let rating = found.rating.unwrap_or_else(|| self.ratings.of_absent());
        let text = match found.text {
            Some(text) => text.or(&self.unescaped),
            None if nested::join(&self.parts, &mut self.unescaped) => &self.unescaped,
            None => return Err(Reject::NoText),
        };
        Ok(Entry { text, rating, label: self.ratings.label() })
    }

    /// Walks the whole line. Returns `None` if it is not JSON.
    fn find<'a>(&mut self, line: &'a str) -> Option<FoundFields<'a>> {
        let mut tokens = Tokens::of(line);
        let mut found = FoundFields { text: None, rating: None };
        self.parts.iter_mut().for_each(|part| part.is_present = false);
        self.list = None;
        if tokens.next()? != b'{' {
            return None;
        }
        if tokens.peek()? == b'}' {
            tokens.next();
        } else {
            let mut field = self.name(&mut tokens)?;
            loop {
                self.value(&mut tokens, field, &mut found)?;
                match self.next_name(&mut tokens)? {
                    Some(next) => field = next,
                    None => break,
                }
            }
        }
        tokens.next().is_none().then_some(found)
    }

    /// Moves from the end of a value to the start of the next and returns the field of that value.
    /// `Some(None)` is the end of the object.
    // This and `value` are the body of the loop. Without these attributes both are calls, and parsing takes 4
    // % longer.
    #[inline(always)]
    fn next_name(&mut self, tokens: &mut Tokens<'_>) -> Option<Option<Field>> {
        let (start, rest) = (tokens.offset(), tokens.rest());
        if let Some((length, field)) = self.separators.recall(rest) {
            tokens.take(length);
            return Some(Some(field));
        }
        match tokens.next()? {
            b',' => {
                let field = self.name(tokens)?;
                tokens.peek()?;
                self.separators.remember(&rest[..tokens.offset() - start], field);
                Some(Some(field))
            }
            b'}' => Some(None),
            _ => None,
        }
    }

    /// Parses a name and its colon.
    fn name(&mut self, tokens: &mut Tokens<'_>) -> Option<Field> {
        if tokens.next()? != b'"' {
            return None;
        }
        let name = tokens.string(&mut self.short)?.or(&self.short);
        let known = self.top_level.iter().find(|(known, _)| known == name);
        let field = known.map_or(Field::Other, |&(_, field)| field);
        (tokens.next()? == b':').then_some(field)
    }

    #[inline(always)]
    fn value<'a>(
        &mut self,
        tokens: &mut Tokens<'a>,
        field: Field,
        found: &mut FoundFields<'a>,
    ) -> Option<()> {
        let first = tokens.peek()?;
        match (field, first) {
            (Field::Text, b'"') => {
                tokens.next();
                found.text = Some(tokens.string(&mut self.unescaped)?);
            }
            (Field::Rating, b'"') => {
                tokens.next();
                let text = tokens.string(&mut self.short)?;
                found.rating = Some(self.ratings.of_text(text.or(&self.short)));
            }
            (Field::Rating, b'-' | b'0'..=b'9') => {
                // Rust parses every JSON number and rounds exactly. A number that is too large is infinite.
                found.rating = Some(self.ratings.of_number(tokens.number()?.parse().ok()?));
            }
            (Field::Nested(id), _) => self.nested(tokens, id, 1, &mut found.rating)?,
            _ => {
                skip_value(tokens, first, 1)?;
                match field {
                    Field::Text => found.text = None,
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
        _ => tokens.skip_scalar(),
    }
}

/// Skips a container without recursion, so that no line can exhaust the stack.
fn skip_container(tokens: &mut Tokens<'_>, depth: usize) -> Option<()> {
    let mut nesting = Nesting { depth, objects: 0 };
    nesting.open(tokens.next()?)?;
    let mut may_close = true;
    loop {
        let mut first = tokens.peek()?;
        if !(may_close && first == nesting.closer()) {
            if nesting.is_object() {
                if first != b'"' {
                    return None;
                }
                tokens.skip_scalar()?;
                if tokens.next()? != b':' {
                    return None;
                }
                first = tokens.peek()?;
            }
            if first == b'{' || first == b'[' {
                tokens.next();
                nesting.open(first)?;
                may_close = true;
                continue;
            }
            tokens.skip_scalar()?;
        }
        // Position: after an element, or before the end of an empty container.
        loop {
            let next = tokens.next()?;
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

//! A JSON line → its review. The whole line must be one valid RFC 8259 object, at most `DEPTH_MAX` deep.
//!
//! sonic-rs does the work on the tokens: strings, numbers, white space. What it leaves to its caller is done here:
//! * nesting: sonic-rs recurses without a limit, so containers are walked here, with their kinds on a bit stack;
//! * the hex digits of a `\u` in a skipped string, which sonic-rs does not look at;
//! * names are compared after unescaping, and of duplicates the last counts, so the walk never ends early.
//!
//! Lines of one file look alike: what stands between two values (`, "overall": `) is one of a few strings of bytes.
//! They are remembered with their meaning, which spares most of the work that is not the text's.

use crate::format::Fields;
use crate::review::{DEPTH_MAX, Entry, Rating, Reject};
use sonic_rs::parser::{ParseStatus, Parser, Reference};
use sonic_rs::reader::{Read, Reader};

/// Reads JSON lines, keeping its memory between them.
#[derive(Debug)]
pub struct JsonParser {
    fields: Fields,
    separators: Separators,
    /// The last text that had escapes, without them.
    unescaped: Vec<u8>,
    /// A name or a spelled rating, if it had escapes.
    short: Vec<u8>,
}

type Tokens<'a> = Parser<Read<'a>>;

struct Found<'a> {
    text: Text<'a>,
    rating: Option<Rating>,
}

enum Text<'a> {
    Absent,
    InLine(&'a str),
    /// It had escapes and lies in the parser's memory.
    Unescaped,
}

#[derive(Clone, Copy, Debug)]
enum Field {
    Text,
    Rating,
    Other,
}

impl JsonParser {
    /// A parser that looks for these fields on the top level.
    pub fn new(fields: Fields) -> Self {
        Self { fields, separators: Separators::default(), unescaped: Vec::new(), short: Vec::new() }
    }

    /// Reads one line without its end. A lone UTF-16 surrogate in an escape becomes U+FFFD.
    pub fn parse<'a>(&'a mut self, line: &'a str) -> Result<Entry<'a>, Reject> {
        let found = self.find(line).ok_or(Reject::BadLine)?;
        let text = match found.text {
            Text::Absent => return Err(Reject::NoText),
            Text::InLine(text) => text,
            Text::Unescaped => simdutf8::basic::from_utf8(&self.unescaped).map_err(|_| Reject::BadLine)?,
        };
        Ok(Entry { text, rating: found.rating })
    }

    /// Walks the whole line; `None` if it is not JSON.
    fn find<'a>(&mut self, line: &'a str) -> Option<Found<'a>> {
        let mut tokens = Parser::new(Read::from(line)).utf8_lossy();
        let mut found = Found { text: Text::Absent, rating: None };
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

    /// From behind a value to the next one, whose field it tells; `Some(None)` at the end of the object.
    // This and `value` are the loop's body; without the attributes both are calls, and parsing takes 4 % longer.
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

    /// A name and its colon.
    fn name(&mut self, tokens: &mut Tokens<'_>) -> Option<Field> {
        if tokens.skip_space()? != b'"' {
            return None;
        }
        let name = tokens.parse_str(&mut self.short).ok()?;
        let field = if *name == *self.fields.text {
            Field::Text
        } else if *name == *self.fields.rating {
            Field::Rating
        } else {
            Field::Other
        };
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
                found.rating = Rating::from_text(&tokens.parse_str(&mut self.short).ok()?);
            }
            (Field::Rating, b'-' | b'0'..=b'9') => {
                tokens.skip_space();
                // Rust reads every JSON number, rounding exactly; one too large is infinite.
                found.rating = Rating::from_number(tokens.skip_number(first).ok()?.parse().ok()?);
            }
            _ => {
                skip_value(tokens, first)?;
                match field {
                    Field::Text => found.text = Text::Absent,
                    Field::Rating => found.rating = None,
                    Field::Other => {}
                }
            }
        }
        Some(())
    }
}

/// Skips the value that begins with `first`, the next byte that is no white space.
fn skip_value(tokens: &mut Tokens<'_>, first: u8) -> Option<()> {
    match first {
        b'{' | b'[' => skip_container(tokens),
        _ => skip_scalar(tokens),
    }
}

fn skip_scalar(tokens: &mut Tokens<'_>) -> Option<()> {
    let (raw, status) = tokens.skip_one(true).ok()?;
    (status == ParseStatus::None || unicode_escapes_are_whole(raw)).then_some(())
}

/// Skips a container without recursion, so that no line can exhaust the stack.
fn skip_container(tokens: &mut Tokens<'_>) -> Option<()> {
    let mut nesting = Nesting { depth: 1, objects: 0 };
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
        // Behind an element, or before the end of an empty container.
        loop {
            let next = tokens.skip_space()?;
            if next == nesting.closer() {
                nesting.close();
                if nesting.depth == 1 {
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

/// The containers around the current place; the lowest bit says whether the innermost is an object.
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

/// Whether four hex digits follow each `\u` in a string whose other escapes are known to be good.
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

/// The bytes between two values that were met so far: a comma, a name, a colon, and white space between them.
#[derive(Debug, Default)]
struct Separators {
    known: Vec<(Box<[u8]>, Field)>,
    /// The one that is tried first: that behind the last one found, as the fields keep their order.
    expected: usize,
}

// Files have some ten fields. Where there are more, or longer ones, only speed suffers.
const SEPARATORS_MAX: usize = 24;
const SEPARATOR_BYTES_MAX: usize = 64;

impl Separators {
    /// The length and meaning of the separator that `rest` begins with.
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

    /// Takes what the grammar has found to be a whole separator.
    fn remember(&mut self, separator: &[u8], field: Field) {
        if separator.len() > SEPARATOR_BYTES_MAX {
            return;
        }
        if self.known.len() == SEPARATORS_MAX {
            // Some odd lines filled the list, which shall not slow down all that follow.
            self.known.clear();
            self.expected = 0;
        }
        self.known.push((separator.into(), field));
    }
}

#[cfg(test)]
mod tests;

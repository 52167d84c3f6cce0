//! Finds the kind of a value of JSON, or of Python's literals, and the names in an object, by brackets and quotes. Nothing is
//! parsed, so that a damaged line has some result, too. The results serve messages alone.

use std::fmt;

use crate::fields::FieldPath;
use crate::json_array::ElementScan;

/// Maximum number of names in a message, and of names that are found in an object.
const NAMES_MAX: usize = 8;
/// Maximum length of a name in a message.
const NAME_BYTES_MAX: usize = 24;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKind {
    Null,
    Boolean,
    Number,
    NotANumber,
    Text,
    List,
    Object,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::NotANumber => "NaN",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

/// The first names of an object. In place of the name of a list of objects there are the names in these.
pub(super) fn paths(object: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, value) in members(object).take(names(object).len()) {
        let name = FieldPath::of(name);
        let inside = match kind(value) {
            ValueKind::List => first_of(value).map_or(Vec::new(), names),
            _ => Vec::new(),
        };
        match inside.is_empty() {
            true => paths.push(name.to_string()),
            false => paths.extend(inside.iter().map(|inner| format!("{name}[].{inner}"))),
        }
    }
    paths.truncate(2 * NAMES_MAX);
    paths
}

/// The first names of an object; none if they are long, as texts are.
pub(super) fn names(object: &str) -> Vec<String> {
    let names: Vec<_> =
        members(object).take(NAMES_MAX).map(|(name, _)| FieldPath::of(name).to_string()).collect();
    let are_names = names.iter().all(|name| name.len() < NAME_BYTES_MAX && !name.contains(char::is_control));
    if are_names { names } else { Vec::new() }
}

/// Whether a list has more than one element.
pub(super) fn is_long(list: &str) -> bool {
    let elements = list.trim_start().get(1..).unwrap_or_default().trim_start();
    behind(elements).is_some_and(|rest| rest.trim_start().starts_with(','))
}

/// The members of an object: names without quotes, and all that follows from the start of the value.
pub(super) fn members(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = object.trim_start().get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let start = rest.trim_start_matches([' ', '\t', '\r', '\n', ',']);
        let after = behind(start)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        rest = behind(value)?;
        let name = start[..start.len() - after.len()].trim_start_matches('u');
        name.get(1..name.len().checked_sub(1)?).map(|name| (name, value))
    })
}

/// What follows a value.
fn behind(value: &str) -> Option<&str> {
    // The prefix of strings of Python 2.
    let value = value.strip_prefix('u').filter(|rest| rest.starts_with(['\'', '"'])).unwrap_or(value);
    value.get(ElementScan::default().end(value.as_bytes())?..)
}

/// The kind of the value at the start of a text.
pub(super) fn kind(value: &str) -> ValueKind {
    let value = value.trim_start();
    match value.as_bytes().first() {
        Some(b'{') => ValueKind::Object,
        Some(b'[' | b'(') => ValueKind::List,
        Some(b'"' | b'\'' | b'u') => ValueKind::Text,
        Some(b't' | b'f' | b'T' | b'F') => ValueKind::Boolean,
        _ if ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"]
            .iter()
            .any(|name| value.starts_with(name)) =>
        {
            ValueKind::NotANumber
        }
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => ValueKind::Number,
        _ => ValueKind::Null,
    }
}

/// The object at the start of a list.
pub(super) fn first_of(list: &str) -> Option<&str> {
    let first = list.trim_start().get(1..)?;
    (kind(first) == ValueKind::Object).then_some(first)
}

//! Step 1: decodes HTML character references that end in `;`, once.
//!
//! Covers all names of the HTML standard, and decimal `&#…;` and hexadecimal `&#x…;` references of any
//! length. Anything else that starts with `&` is kept unchanged.

use memchr::memchr;

include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// A name of the HTML standard: `length` bytes from `start` in `NAMES_TEXT`, and its one or two characters.
struct Name {
    start: u16,
    length: u8,
    first: char,
    second: Option<char>,
}

impl Name {
    fn text(&self) -> &'static [u8] {
        let start = usize::from(self.start);
        &NAMES_TEXT.as_bytes()[start..start + usize::from(self.length)]
    }
}

/// Returns the text with its references decoded, which is either `text` or stored in `decoded`.
pub(super) fn decode<'a>(text: &str, decoded: &'a mut String) -> &'a str {
    decoded.clear();
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match reference(rest.as_bytes()) {
            Some(Reference { first, second, length }) => {
                decoded.push(first);
                decoded.extend(second);
                rest = &rest[length..];
            }
            None => decoded.push('&'),
        }
    }
    decoded.push_str(rest);
    decoded
}

/// The one or two characters of a reference, and its length in bytes after the `&`, including the `;`.
struct Reference {
    first: char,
    second: Option<char>,
    length: usize,
}

fn reference(text: &[u8]) -> Option<Reference> {
    match text {
        [b'#', b'x' | b'X', digits @ ..] => numeric(digits, 16, 2),
        [b'#', digits @ ..] => numeric(digits, 10, 1),
        _ => named(text),
    }
}

fn numeric(text: &[u8], radix: u32, prefix: usize) -> Option<Reference> {
    let mut code = 0_u32;
    let mut n_digits = 0;
    while let Some(digit) = text.get(n_digits).and_then(|&byte| char::from(byte).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        n_digits += 1;
    }
    let ends = n_digits > 0 && text.get(n_digits) == Some(&b';');
    ends.then(|| Reference { first: character(code), second: None, length: prefix + n_digits + 1 })
}

/// The character for the code of a numeric reference, by the rules of the HTML standard.
fn character(code: u32) -> char {
    match code {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => WINDOWS_1252[code as usize - 0x80],
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// Bytes 0x80 to 0x9f. The five that windows-1252 does not define are the control characters with the same
/// code.
#[rustfmt::skip]
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn named(text: &[u8]) -> Option<Reference> {
    let length = text.iter().take(LONGEST_NAME + 1).position(|byte| !byte.is_ascii_alphanumeric())?;
    let (name, rest) = text.split_at(length);
    if !rest.starts_with(b";") {
        return None;
    }
    let at = NAMES.binary_search_by(|entry| entry.text().cmp(name)).ok()?;
    Some(Reference { first: NAMES[at].first, second: NAMES[at].second, length: length + 1 })
}

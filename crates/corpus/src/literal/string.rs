//! Parses Python's string tokens: single, double and triple quotes, the prefixes u and r, and Python's
//! escapes.

use super::{Cursor, Value};

/// The content of a string. Two escapes can form a surrogate pair, so a high surrogate is held until the next
/// code point.
#[derive(Debug, Default)]
pub(super) struct Unescaped {
    content: String,
    high_surrogate: Option<u32>,
}

impl Unescaped {
    pub(super) fn as_str(&self) -> &str {
        &self.content
    }

    fn clear(&mut self) {
        self.content.clear();
        self.high_surrogate = None;
    }

    fn push_str(&mut self, content: &str) {
        if !content.is_empty() {
            self.close();
            self.content.push_str(content);
        }
    }

    /// Appends a code point, which may be a surrogate.
    fn push(&mut self, code: u32) {
        if let (Some(high), 0xDC00..=0xDFFF) = (self.high_surrogate, code) {
            self.high_surrogate = None;
            self.content.extend(char::from_u32(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)));
            return;
        }
        self.close();
        if (0xD800..=0xDBFF).contains(&code) {
            self.high_surrogate = Some(code);
        } else {
            self.content.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    /// Ends the string: a held high surrogate has no low one.
    fn close(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.content.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

impl Cursor<'_> {
    /// Parses one string, or several adjacent strings that form one. The content replaces that of `wanted`.
    pub(super) fn strings(&mut self, mut wanted: Option<&mut Unescaped>) -> Option<Value> {
        if let Some(wanted) = &mut wanted {
            wanted.clear();
        }
        loop {
            let is_raw = match self.rest {
                [b'u' | b'U', b'\'' | b'"', ..] => {
                    self.rest = &self.rest[1..];
                    false
                }
                [b'r' | b'R', b'\'' | b'"', ..] => {
                    self.rest = &self.rest[1..];
                    true
                }
                _ => false,
            };
            self.string(is_raw, wanted.as_deref_mut())?;
            self.skip_space();
            if !matches!(self.rest, [b'\'' | b'"', ..] | [b'u' | b'U' | b'r' | b'R', b'\'' | b'"', ..]) {
                break;
            }
        }
        if let Some(wanted) = wanted {
            wanted.close();
        }
        Some(Value::String)
    }

    fn string(&mut self, is_raw: bool, mut wanted: Option<&mut Unescaped>) -> Option<()> {
        let quote = *self.rest.first().filter(|&&byte| byte == b'\'' || byte == b'"')?;
        let triple = [quote; 3];
        let closer = if self.rest.starts_with(&triple) { &triple[..] } else { &triple[..1] };
        self.rest = &self.rest[closer.len()..];
        loop {
            // Python refuses a line with a zero byte.
            let plain_bytes = memchr::memchr3(quote, b'\\', 0, self.rest)?;
            let (plain, rest) = self.rest.split_at(plain_bytes);
            self.rest = rest;
            if let Some(wanted) = &mut wanted {
                wanted.push_str(simdutf8::basic::from_utf8(plain).ok()?);
            }
            if let Some(rest) = self.rest.strip_prefix(closer) {
                self.rest = rest;
                return Some(());
            }
            match self.rest {
                [b'\\', rest @ ..] if !is_raw => {
                    self.rest = rest;
                    self.escape(wanted.as_deref_mut())?;
                }
                // In a raw string the backslash is kept, and so is the next byte, even if it is a quote.
                [b'\\', b'\'' | b'"' | b'\\', ..] => self.keep(2, wanted.as_deref_mut())?,
                [0, ..] => return None,
                // A raw backslash before any other byte, or a quote within triple quotes.
                _ => self.keep(1, wanted.as_deref_mut())?,
            }
        }
    }

    fn keep(&mut self, bytes: usize, wanted: Option<&mut Unescaped>) -> Option<()> {
        let (kept, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        if let Some(wanted) = wanted {
            wanted.push_str(simdutf8::basic::from_utf8(kept).ok()?);
        }
        Some(())
    }

    /// Parses the rest of an escape, after the backslash.
    fn escape(&mut self, wanted: Option<&mut Unescaped>) -> Option<()> {
        let (&kind, rest) = self.rest.split_first()?;
        let before = self.rest;
        self.rest = rest;
        let code = match kind {
            b'\\' | b'\'' | b'"' => u32::from(kind),
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => 0x0A,
            b'r' => 0x0D,
            b't' => 0x09,
            b'v' => 0x0B,
            b'x' => self.hex(2)?,
            b'u' => self.hex(4)?,
            b'U' => self.hex(8).filter(|&code| code <= 0x10FFFF)?,
            b'0'..=b'7' => {
                let digits = before.iter().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
                self.rest = &before[digits..];
                before[..digits].iter().fold(0, |code, digit| code * 8 + u32::from(digit - b'0'))
            }
            b'N' | 0 => return None,
            // Python keeps the backslash of an unknown escape. The next byte is then read as an ordinary one.
            _ => {
                self.rest = before;
                u32::from(b'\\')
            }
        };
        if let Some(wanted) = wanted {
            wanted.push(code);
        }
        Some(())
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let (hex, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        hex.iter().try_fold(0, |code: u32, &digit| Some((code << 4) | char::from(digit).to_digit(16)?))
    }
}

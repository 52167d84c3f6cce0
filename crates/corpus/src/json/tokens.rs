//! Tokens of RFC 8259: strings, numbers, names of constants, and white space between them. Nesting is up to the caller.

use memchr::memchr2;

/// The first bytes of a string are compared eight at a time. Most strings are short, and a call of memchr costs more.
const SHORT_BYTES: usize = 32;

/// Takes tokens from a line, one after the other. Methods that return an option return `None` for a token that is not valid
/// and at the end of the line.
pub(super) struct Tokens<'a> {
    line: &'a str,
    at: usize,
}

/// The content of a string.
#[derive(Clone, Copy)]
pub(super) enum Text<'a> {
    InLine(&'a str),
    /// The string had escapes. It is in the buffer that was passed.
    Unescaped,
}

impl<'a> Text<'a> {
    /// The text, of the line or of the buffer that was passed.
    pub fn or<'b>(self, unescaped: &'b str) -> &'b str
    where
        'a: 'b,
    {
        match self {
            Self::InLine(text) => text,
            Self::Unescaped => unescaped,
        }
    }
}

impl<'a> Tokens<'a> {
    pub fn of(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// Number of bytes taken.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The bytes after those taken.
    pub fn rest(&self) -> &'a [u8] {
        &self.line.as_bytes()[self.at..]
    }

    /// Takes this number of bytes, whose content is known.
    pub fn take(&mut self, n: usize) {
        self.at += n;
    }

    /// Takes white space. Returns the byte after it.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.line.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Takes white space and the byte after it.
    #[inline(always)]
    pub fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Takes a string whose opening quote was taken. A lone surrogate in an escape becomes U+FFFD.
    #[inline(always)]
    pub fn string(&mut self, unescaped: &mut String) -> Option<Text<'a>> {
        let start = self.at;
        if self.quote_or_escape()? == b'"' {
            return Some(Text::InLine(&self.line[start..self.at - 1]));
        }
        self.unescape(start, unescaped)?;
        Some(Text::Unescaped)
    }

    /// Takes the rest of a string that began at `start`, and whose first backslash was taken.
    fn unescape(&mut self, mut start: usize, unescaped: &mut String) -> Option<()> {
        unescaped.clear();
        loop {
            unescaped.push_str(&self.line[start..self.at - 1]);
            unescaped.push(self.escape()?);
            start = self.at;
            if self.quote_or_escape()? == b'"' {
                unescaped.push_str(&self.line[start..self.at - 1]);
                return Some(());
            }
        }
    }

    /// Takes a string whose opening quote was taken.
    pub fn skip_string(&mut self) -> Option<()> {
        while self.quote_or_escape()? != b'"' {
            self.escape()?;
        }
        Some(())
    }

    /// Takes the part of a string until a quote or a backslash, and that byte, which it returns.
    #[inline(always)]
    fn quote_or_escape(&mut self) -> Option<u8> {
        let rest = self.rest();
        let mut n = 0;
        loop {
            if let Some(word) = rest[n..].first_chunk()
                && n < SHORT_BYTES
            {
                let ends = ends(u64::from_le_bytes(*word));
                if ends == 0 {
                    n += word.len();
                    continue;
                }
                n += ends.trailing_zeros() as usize / 8;
            } else {
                let begin = n;
                n += memchr2(b'"', b'\\', &rest[n..])?;
                // Without a branch per byte.
                if rest[begin..n].iter().fold(false, |has_control, byte| has_control | (*byte < b' ')) {
                    return None;
                }
            }
            break;
        }
        self.at += n + 1;
        Some(rest[n]).filter(|end| *end >= b' ')
    }

    /// Takes an escape whose backslash was taken.
    fn escape(&mut self) -> Option<char> {
        let kind = *self.rest().first()?;
        self.at += 1;
        Some(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.unicode()?,
            _ => return None,
        })
    }

    /// Takes the digits of an escape, and the next escape if both are the surrogates of one character.
    fn unicode(&mut self) -> Option<char> {
        let unit = self.hexadecimal()?;
        if (0xD800..0xDC00).contains(&unit) && self.rest().starts_with(b"\\u") {
            let first = self.at;
            self.at += 2;
            let low = self.hexadecimal()?;
            if (0xDC00..0xE000).contains(&low) {
                return char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            }
            self.at = first;
        }
        Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = self.rest().first_chunk::<4>()?;
        self.at += 4;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    }

    /// Takes a number.
    pub fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.take_if(|byte| byte == b'-');
        if !self.take_if(|byte| byte == b'0') {
            self.digits()?;
        }
        if self.take_if(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.take_if(|byte| byte | 0x20 == b'e') {
            self.take_if(|byte| byte == b'+' || byte == b'-');
            self.digits()?;
        }
        Some(&self.line[start..self.at])
    }

    /// Takes the next byte if `is` accepts it.
    #[inline(always)]
    fn take_if(&mut self, is: impl Fn(u8) -> bool) -> bool {
        let is_taken = self.line.as_bytes().get(self.at).is_some_and(|byte| is(*byte));
        self.at += usize::from(is_taken);
        is_taken
    }

    fn digits(&mut self) -> Option<()> {
        let n = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += n;
        (n > 0).then_some(())
    }

    /// Takes a string, a number or a constant.
    pub fn skip_scalar(&mut self) -> Option<()> {
        let constant: &[u8] = match self.peek()? {
            b'"' => {
                self.at += 1;
                return self.skip_string();
            }
            b'-' | b'0'..=b'9' => return self.number().map(drop),
            b't' => b"true",
            b'f' => b"false",
            _ => b"null",
        };
        self.rest().starts_with(constant).then(|| self.at += constant.len())
    }
}

/// The highest bit of the first byte that is a quote, a backslash or a control character; bits of bytes after it are
/// undefined.
#[inline(always)]
fn ends(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let is_below = |bytes: u64, limit: u8| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes;
    let is = |byte: u8| is_below(word ^ (ONES * u64::from(byte)), 1);
    (is(b'"') | is(b'\\') | is_below(word, b' ')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of a string and the number of its bytes, found character by character.
    fn expected(line: &str) -> Option<(String, usize)> {
        let (mut text, mut characters) = (String::new(), line.char_indices());
        loop {
            match characters.next()?.1 {
                '"' => return Some((text, characters.offset())),
                '\\' if characters.next()?.1 == 'n' => text.push('\n'),
                '\\' | '\0'..='\u{1F}' => return None,
                character => text.push(character),
            }
        }
    }

    fn found(line: &str) -> Option<(String, usize)> {
        let (mut tokens, mut unescaped) = (Tokens::of(line), String::new());
        let text = tokens.string(&mut unescaped)?.or(&unescaped).to_owned();
        let mut skipping = Tokens::of(line);
        skipping.skip_string()?;
        assert_eq!(tokens.offset(), skipping.offset(), "{line:?}");
        Some((text, tokens.offset()))
    }

    #[test]
    fn each_byte_is_seen_at_each_place() {
        for (filler, length) in ["a", "\u{80}", "\u{E9}", "\u{65E5}", "\u{1F600}"]
            .into_iter()
            .flat_map(|filler| (0..=48 / filler.len()).map(move |length| (filler, length)))
        {
            let begin = filler.repeat(length);
            for byte in 0..=u8::MAX {
                for end in ["", "\"", "n\"", "n\\n\" ", &format!("n{begin}\"{begin}\"")] {
                    let line = format!("{begin}{}{end}", char::from(byte));
                    assert_eq!(found(&line), expected(&line), "{line:?}");
                }
            }
        }
    }
}

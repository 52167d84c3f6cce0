//! Parses Python's number tokens: decimal, hexadecimal, octal and binary integers, and floats, all with
//! underscores. A decimal integer may end in `L`, as in Python 2.

use super::Cursor;

impl Cursor<'_> {
    /// Parses a number without a sign and returns the nearest double. A number that is too large is infinite.
    pub(super) fn number(&mut self) -> Option<f64> {
        let base = match self.rest {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'o' | b'O', ..] => 8,
            [b'0', b'b' | b'B', ..] => 2,
            _ => return self.decimal(),
        };
        self.rest = &self.rest[2..];
        let mut number = 0.0;
        self.take(b'_');
        self.digits(base, |digit| number = number * f64::from(base) + f64::from(digit))?;
        self.ends().then_some(number)
    }

    fn decimal(&mut self) -> Option<f64> {
        let mut number = String::new();
        let mut push = |digit| number.extend(char::from_digit(digit, 10));
        let has_whole = self.rest.first()?.is_ascii_digit();
        if has_whole {
            self.digits(10, &mut push)?;
        }
        let starts_with_zero = number.starts_with('0');
        let is_zero = number.bytes().all(|digit| digit == b'0');
        let mut is_float = false;
        if self.take(b'.') {
            is_float = true;
            number.push('.');
            if self.rest.first().is_some_and(u8::is_ascii_digit) {
                self.digits(10, |digit| number.extend(char::from_digit(digit, 10)))?;
            } else if !has_whole {
                return None;
            }
        }
        if self.take(b'e') || self.take(b'E') {
            is_float = true;
            number.push('e');
            if self.take(b'-') {
                number.push('-');
            } else {
                self.take(b'+');
            }
            self.digits(10, |digit| number.extend(char::from_digit(digit, 10)))?;
        }
        // 007 was octal in Python 2 and is refused; 00 and 007.5 are valid.
        if !is_float && starts_with_zero && !is_zero {
            return None;
        }
        // Python 2 wrote large integers so.
        if !is_float {
            self.take(b'L');
        }
        if self.ends() { number.parse().ok() } else { None }
    }

    /// One or more digits with single underscores between them.
    fn digits(&mut self, base: u32, mut each: impl FnMut(u32)) -> Option<()> {
        loop {
            let (&first, rest) = self.rest.split_first()?;
            each(char::from(first).to_digit(base)?);
            self.rest = rest;
            let is_digit = |byte: &u8| char::from(*byte).is_digit(base);
            if self.take(b'_') {
                continue;
            }
            if !self.rest.first().is_some_and(is_digit) {
                return Some(());
            }
        }
    }

    /// Whether the number is followed by no letter, digit, `_` or `.`. `1j`, `0x1g`, `1_` and `5else` are
    /// refused.
    fn ends(&self) -> bool {
        !self.rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    }
}

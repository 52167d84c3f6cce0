//! How a table is written: the character between columns, and the meaning of quotes.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The character between two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// CSV.
    Comma,
    /// TSV.
    Tab,
    /// CSV of countries with a decimal comma.
    Semicolon,
    /// `|`
    Bar,
}

/// How a column contains delimiters and line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote {
    /// Inside quotes, where `""` is a quote: RFC 4180.
    Double,
    /// Inside quotes, where `""` and `\"` are quotes, or behind a backslash. `\\` is a backslash, and `\n`, `\r` and `\t` are
    /// line ends and a tab.
    Backslash,
    /// Never. Quotes are characters.
    None,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The character between columns.
    pub delimiter: Delimiter,
    /// The meaning of quotes.
    pub quote: Quote,
}

/// What is known of the dialect of a table before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedDialect {
    /// The delimiter of the format: that of a file, unless another one is more consistent.
    pub default: Delimiter,
    /// The delimiter that was set.
    pub delimiter: Option<Delimiter>,
    /// The meaning of quotes that was set.
    pub quote: Option<Quote>,
}

/// Each delimiter with its value in options, in a shell, and its name in messages.
const DELIMITERS: [(Delimiter, u8, &str, &str, &str); 4] = [
    (Delimiter::Comma, b',', ",", ",", "commas"),
    (Delimiter::Tab, b'\t', "tab", "tab", "tabs"),
    (Delimiter::Semicolon, b';', ";", "';'", "semicolons"),
    (Delimiter::Bar, b'|', "|", "'|'", "vertical bars"),
];

/// Each meaning of quotes with its value in options, in their order of preference.
const QUOTES: [(Quote, &str); 3] =
    [(Quote::Double, "double"), (Quote::Backslash, "backslash"), (Quote::None, "none")];

impl Delimiter {
    fn row(self) -> &'static (Self, u8, &'static str, &'static str, &'static str) {
        DELIMITERS.iter().find(|(delimiter, ..)| *delimiter == self).expect("all delimiters are listed")
    }

    /// The character.
    pub fn byte(self) -> u8 {
        self.row().1
    }

    /// The delimiter that is this character.
    pub fn of(character: char) -> Option<Self> {
        DELIMITERS.iter().find(|row| char::from(row.1) == character).map(|row| row.0)
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        self.row().4
    }

    /// The flag that sets it.
    pub fn flag(self) -> String {
        format!("--delimiter {}", self.row().3)
    }
}

impl Dialect {
    /// The bytes that divide records and columns, besides line ends.
    pub fn syntax(self) -> [u8; 3] {
        let escape = if self.quote == Quote::Backslash { b'\\' } else { b'"' };
        [self.delimiter.byte(), b'"', escape]
    }

    /// RFC 4180.
    pub fn rfc4180(delimiter: Delimiter) -> Self {
        Self { delimiter, quote: Quote::Double }
    }

    /// The flags that set it.
    pub fn flags(self) -> String {
        format!("{} --quote {}", self.delimiter.flag(), self.quote)
    }
}

/// `columns separated by tabs, quotes are characters`
impl fmt::Display for Dialect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "columns separated by {}", self.delimiter.name())?;
        out.write_str(match self.quote {
            Quote::Double => "",
            Quote::Backslash => ", backslashes are escapes",
            Quote::None => ", quotes are characters",
        })
    }
}

impl AskedDialect {
    /// The dialect of a format, of which nothing was set.
    pub fn of(default: Delimiter) -> Self {
        Self { default, delimiter: None, quote: None }
    }

    /// The dialect of a file in which no other one is more consistent.
    pub fn default_dialect(self) -> Dialect {
        Dialect {
            delimiter: self.delimiter.unwrap_or(self.default),
            quote: self.quote.unwrap_or(Quote::Double),
        }
    }

    /// Whether a part of the dialect was not set.
    pub fn is_open(self) -> bool {
        self.delimiter.is_none() || self.quote.is_none()
    }

    /// The dialects that a file may have, in their order of preference.
    pub fn all(self) -> impl Iterator<Item = Dialect> {
        let others = DELIMITERS.iter().map(|row| row.0).filter(move |&other| other != self.default);
        let delimiters = [self.default].into_iter().chain(others);
        let is_allowed = move |delimiter: &Delimiter| self.delimiter.is_none_or(|asked| asked == *delimiter);
        let quotes = QUOTES
            .iter()
            .map(|row| row.0)
            .filter(move |&quote| self.quote.is_none_or(|asked| asked == quote));
        delimiters
            .filter(is_allowed)
            .flat_map(move |delimiter| quotes.clone().map(move |quote| Dialect { delimiter, quote }))
    }
}

/// The value of `--delimiter`.
impl fmt::Display for Delimiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.row().2)
    }
}

impl FromStr for Delimiter {
    type Err = NoDelimiter;

    fn from_str(value: &str) -> Result<Self, NoDelimiter> {
        let is_tab = [r"\t", "\t"].contains(&value);
        let value = if is_tab { "tab" } else { value };
        DELIMITERS.iter().find(|row| row.2 == value).map(|row| row.0).ok_or(NoDelimiter)
    }
}

/// The value of `--quote`.
impl fmt::Display for Quote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = QUOTES.iter().find(|(quote, _)| quote == self).expect("all meanings are listed");
        out.write_str(row.1)
    }
}

impl FromStr for Quote {
    type Err = NoQuote;

    fn from_str(value: &str) -> Result<Self, NoQuote> {
        QUOTES.iter().find(|row| row.1 == value).map(|row| row.0).ok_or(NoQuote)
    }
}

/// The delimiter is unknown.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a comma, tab, ';' or '|'")]
pub struct NoDelimiter;

/// The meaning of quotes is unknown.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected double, backslash or none")]
pub struct NoQuote;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options_survive_the_round_trip() {
        for dialect in AskedDialect::of(Delimiter::Comma).all() {
            assert_eq!(dialect.delimiter.to_string().parse(), Ok(dialect.delimiter));
            assert_eq!(dialect.quote.to_string().parse(), Ok(dialect.quote));
        }
        assert_eq!([r"\t", "\t"].map(str::parse), [Ok(Delimiter::Tab), Ok(Delimiter::Tab)]);
        assert_eq!(":".parse::<Delimiter>(), Err(NoDelimiter));
        assert_eq!("single".parse::<Quote>(), Err(NoQuote));
    }

    #[test]
    fn a_dialect_is_described_with_its_flags() {
        let dialect = Dialect { delimiter: Delimiter::Semicolon, quote: Quote::None };
        assert_eq!(dialect.to_string(), "columns separated by semicolons, quotes are characters");
        assert_eq!(dialect.flags(), "--delimiter ';' --quote none");
        assert_eq!(Dialect::rfc4180(Delimiter::Tab).to_string(), "columns separated by tabs");
    }

    #[test]
    fn what_was_set_limits_the_dialects() {
        let all = |delimiter, quote| -> Vec<_> {
            AskedDialect { default: Delimiter::Tab, delimiter, quote }.all().collect()
        };
        assert_eq!((all(None, None).len(), all(None, None)[0]), (12, Dialect::rfc4180(Delimiter::Tab)));
        assert_eq!(all(Some(Delimiter::Bar), None).len(), 3);
        let both = Dialect { delimiter: Delimiter::Comma, quote: Quote::None };
        assert_eq!(all(Some(Delimiter::Comma), Some(Quote::None)), [both]);
    }
}

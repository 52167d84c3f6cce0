//! Searches the end of a record of CSV or TSV, in pieces of any size.

use super::dialect::{Dialect, Quote};

/// The number of bytes before the end of a line.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\n', b'\r', bytes)
}

/// Searches the end of a record.
#[derive(Debug)]
pub(super) struct RecordScan {
    delimiter: u8,
    within: Within,
    /// Number of columns so far.
    pub n_columns: usize,
    /// Whether the current or last quoted column has a line break.
    has_break: bool,
    /// Whether any column has one.
    pub is_multiline: bool,
    /// Whether such a column does not end properly.
    pub is_broken: bool,
    /// If backslashes are escapes: whether the last byte was one.
    is_escaped: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// In a record without quotes, which ends with its line.
    Line,
    /// At the start of a column.
    Start,
    Unquoted,
    Quoted,
    /// Behind a quote that closes a column, or that is the first of two.
    Closed,
}

impl RecordScan {
    pub fn new(Dialect { delimiter, quote }: Dialect) -> Self {
        let within = if quote == Quote::None { Within::Line } else { Within::Start };
        let is_escaped = (quote == Quote::Backslash).then_some(false);
        let (has_break, is_multiline, is_broken) = (false, false, false);
        Self {
            delimiter: delimiter.byte(),
            within,
            n_columns: 1,
            has_break,
            is_multiline,
            is_broken,
            is_escaped,
        }
    }

    /// The number of bytes before the end of the record, if it is in `bytes`.
    pub fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.is_escaped.is_some() {
            return self.end_with_escapes(bytes);
        }
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            match self.within {
                Within::Line => return line_end(rest),
                Within::Start if rest[0] == b'"' => {
                    (self.within, self.has_break) = (Within::Quoted, false);
                    at += 1;
                }
                Within::Start => self.within = Within::Unquoted,
                Within::Unquoted => {
                    at += memchr::memchr3(self.delimiter, b'\n', b'\r', rest)?;
                    if bytes[at] != self.delimiter {
                        return Some(at);
                    }
                    self.next_column();
                    at += 1;
                }
                Within::Quoted if self.has_break => {
                    at += memchr::memchr(b'"', rest)? + 1;
                    self.within = Within::Closed;
                }
                Within::Quoted => {
                    at += memchr::memchr3(b'"', b'\n', b'\r', rest)? + 1;
                    match bytes[at - 1] {
                        b'"' => self.within = Within::Closed,
                        _ => (self.has_break, self.is_multiline) = (true, true),
                    }
                }
                Within::Closed => match rest[0] {
                    b'"' => {
                        self.within = Within::Quoted;
                        at += 1;
                    }
                    byte if byte == self.delimiter => {
                        self.next_column();
                        at += 1;
                    }
                    b'\n' | b'\r' => return Some(at),
                    _ if self.has_break => {
                        self.is_broken = true;
                        return Some(at);
                    }
                    _ => self.within = Within::Unquoted,
                },
            }
        }
    }

    /// Whether the search has ended inside quotes with a line break.
    pub fn is_open(&self) -> bool {
        self.has_break && self.is_in_quotes()
    }

    /// Whether the search has ended inside quotes.
    pub fn is_in_quotes(&self) -> bool {
        self.within == Within::Quoted
    }

    /// Number of columns, if the search has shown it.
    pub fn n_whole_columns(&self) -> Option<usize> {
        (!matches!(self.within, Within::Line | Within::Quoted)).then_some(self.n_columns)
    }

    fn next_column(&mut self) {
        self.within = Within::Start;
        self.n_columns += 1;
    }

    /// As [`Self::end`], where a backslash escapes the next byte.
    fn end_with_escapes(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut is_escaped = self.is_escaped == Some(true);
        for (at, &byte) in bytes.iter().enumerate() {
            let is_line_end = byte == b'\n' || byte == b'\r';
            match self.within {
                _ if is_escaped => {
                    is_escaped = false;
                    self.is_multiline |= is_line_end;
                    self.has_break |= is_line_end && self.within == Within::Quoted;
                    continue;
                }
                Within::Start if byte == b'"' => (self.within, self.has_break) = (Within::Quoted, false),
                Within::Quoted if byte == b'"' => self.within = Within::Closed,
                Within::Closed if byte == b'"' => self.within = Within::Quoted,
                Within::Quoted if is_line_end => (self.has_break, self.is_multiline) = (true, true),
                Within::Quoted => {}
                _ if is_line_end => return Some(at),
                _ if byte == self.delimiter => self.next_column(),
                Within::Closed if self.has_break => {
                    self.is_broken = true;
                    return Some(at);
                }
                _ => self.within = Within::Unquoted,
            }
            is_escaped = byte == b'\\';
        }
        self.is_escaped = Some(is_escaped);
        None
    }
}

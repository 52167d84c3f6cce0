//! Finds the text of a line for an n-gram model. Ratings and labels are not read.

use ::ngrams::{LABEL_PREFIX, Words};
use corpus::clean::Cleaner;
use corpus::ledger::Fate;
use corpus::lines::LineContent;
use corpus::review::ReviewParser;

use crate::predict::Refusal;

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A review, in a format of the mapper.
    Review(corpus::format::Format),
    /// Words between white space; those with fastText's prefix of labels are no part of the text.
    FastText,
    /// A plain text.
    Text,
}

/// Finds the text of lines in a format.
pub struct Parser {
    kind: Kind,
    /// For models of cleaned texts.
    cleaner: Option<Cleaner>,
    text: Vec<u8>,
}

enum Kind {
    Review(Box<ReviewParser>),
    FastText,
    Text,
}

impl Parser {
    /// A parser of lines for a model that splits texts into these words.
    pub fn of(format: &Format, words: Words) -> Self {
        let kind = match format {
            Format::Review(format) => Kind::Review(Box::new(ReviewParser::new(format.clone()))),
            Format::FastText => Kind::FastText,
            Format::Text => Kind::Text,
        };
        let cleaner = (words == Words::Cleaned).then(Cleaner::default);
        Self { kind, cleaner, text: Vec::new() }
    }

    /// The text of a line. Problems are checked in the mapper's order.
    pub fn text(&mut self, line: LineContent<'_>) -> Result<&[u8], Refusal> {
        let bytes = Fate::held(line).map_err(Refusal::Line)?;
        let Self { kind, cleaner, text } = self;
        text.clear();
        match kind {
            Kind::Review(parser) => {
                let found = parser.parse_text(bytes);
                text.extend_from_slice(
                    found.map_err(|reject| Refusal::Line(Fate::Rejected(reject)))?.as_bytes(),
                );
            }
            Kind::FastText => without_labels(bytes, text),
            Kind::Text => text.extend_from_slice(bytes),
        }
        if let Some(cleaner) = cleaner {
            let raw = String::from_utf8_lossy(text).into_owned();
            text.clear();
            if !cleaner.clean(&raw, text) {
                return Err(Refusal::Line(Fate::EmptyText));
            }
        }
        Ok(text)
    }
}

/// Appends a line without its labels.
fn without_labels(line: &[u8], text: &mut Vec<u8>) {
    let mut rest = line;
    while let Some(at) = find_label(rest) {
        text.extend_from_slice(&rest[..at]);
        let end = rest[at..].iter().position(|&byte| is_space(byte));
        rest = end.map_or(&[], |end| &rest[at + end..]);
    }
    text.extend_from_slice(rest);
}

/// The place of the first word with the prefix of labels.
fn find_label(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + line[from..].windows(LABEL_PREFIX.len()).position(|bytes| bytes == LABEL_PREFIX)?;
        let is_label = line.get(at + LABEL_PREFIX.len()).is_some_and(|&byte| !is_space(byte));
        if is_label && (at == 0 || is_space(line[at - 1])) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// White space of the fastText program.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c | 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> String {
        let mut text = Vec::new();
        without_labels(line.as_bytes(), &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn words_with_the_prefix_of_labels_are_no_part_of_the_text() {
        assert_eq!(text("__label__1 good film"), " good film");
        assert_eq!(text("good __label__a\t__label__b film __label__c"), "good \t film ");
        assert_eq!(text("x__label__1 good __label__ film"), "x__label__1 good __label__ film");
        assert_eq!(text("__label__1"), "");
    }

    #[test]
    fn cleaned_texts_have_the_words_of_a_dataset() {
        let mut parser = Parser::of(&Format::Text, Words::Cleaned);
        assert_eq!(parser.text(LineContent::Bytes(b"It's <b>GOOD</b>, 7 of 10")), Ok(&b"it's good of"[..]));
        assert_eq!(parser.text(LineContent::Bytes(b"7!")), Err(Refusal::Line(Fate::EmptyText)));
    }
}

//! Splits a line into words.

use clap::ValueEnum;
use corpus::clean::Rules;
use corpus::settings::Settings;
use serde::{Deserialize, Serialize};

/// fastText's word at the end of each line.
pub const END: &[u8] = b"</s>";
/// fastText's prefix of labels.
pub const LABEL_PREFIX: &[u8] = b"__label__";

/// How a line is split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Words {
    /// As fastText: the bytes between white space, unchanged, and `</s>` at the end. An `</s>` within the line ends
    /// the text, and a label within it is no word.
    Spaces,
    /// In lower case. Letters, digits and `'` form words. Every other visible character is a word by itself. A tag
    /// `<br />` and bytes that are not UTF-8 separate words.
    Punctuation,
    /// The text is cleaned by the mapper: words between single spaces.
    Cleaned,
    /// As [`Self::Cleaned`], by `mapper --punctuation`.
    CleanedPunctuation,
}

impl Words {
    /// The words of rows that were prepared with these settings.
    pub fn of_rows(settings: &Settings) -> Self {
        match settings.rules().unwrap_or_default() {
            Rules::Letters => Self::Cleaned,
            Rules::Punctuation => Self::CleanedPunctuation,
        }
    }

    /// The rules by which texts are cleaned, if they are.
    pub fn rules(self) -> Option<Rules> {
        match self {
            Self::Spaces | Self::Punctuation => None,
            Self::Cleaned => Some(Rules::Letters),
            Self::CleanedPunctuation => Some(Rules::Punctuation),
        }
    }

    /// The name of the value of `--words`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spaces => "spaces",
            Self::Punctuation => "punctuation",
            Self::Cleaned => "cleaned",
            Self::CleanedPunctuation => "cleaned-punctuation",
        }
    }

    /// The letters and digits of [`Self::Punctuation`] as the content of a class of a regular expression: `0-9A-Za-z…`.
    pub fn alphanumeric() -> String {
        let mut all = ('\0'..=char::MAX).filter(|character| character.is_alphanumeric()).peekable();
        let mut class = String::new();
        while let Some(first) = all.next() {
            let mut last = first;
            while let Some(next) = all.next_if(|&next| u32::from(next) == u32::from(last) + 1) {
                last = next;
            }
            class.extend([first, '-', last]);
        }
        class
    }

    /// Calls `each` with each word of a line. `scratch` holds one word at a time.
    pub fn each(self, line: &[u8], scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) {
        match self {
            Self::Spaces => {
                let words = line.split(|&byte| is_space(byte)).filter(|word| !word.is_empty());
                let words = words.take_while(|&word| word != END);
                words.filter(|word| !is_label(word)).for_each(&mut each);
                each(END);
            }
            Self::Cleaned | Self::CleanedPunctuation => {
                line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).for_each(each);
            }
            Self::Punctuation => {
                for chunk in line.utf8_chunks() {
                    lower_case(chunk.valid(), scratch, &mut each);
                }
            }
        }
    }
}

fn is_label(word: &[u8]) -> bool {
    word.starts_with(LABEL_PREFIX) && word.len() > LABEL_PREFIX.len()
}

/// fastText's white space.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c | 0)
}

fn lower_case(text: &str, word: &mut Vec<u8>, each: &mut impl FnMut(&[u8])) {
    word.clear();
    let mut end = |word: &mut Vec<u8>| {
        if !word.is_empty() {
            each(word);
            word.clear();
        }
    };
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let tag_bytes = if character == '<' { line_break(rest) } else { 0 };
        rest = &rest[tag_bytes.max(character.len_utf8())..];
        if character.is_ascii_alphanumeric() || character == '\'' {
            word.push(character.to_ascii_lowercase() as u8);
        } else if character.is_alphanumeric() {
            for lower in character.to_lowercase() {
                word.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
            }
        } else {
            end(word);
            if tag_bytes == 0 && !character.is_whitespace() && !character.is_control() {
                word.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                end(word);
            }
        }
    }
    end(word);
}

/// Length of the tag `<br>`, `<br/>` or `<br />` at the start of a text; 0 if there is none.
fn line_break(text: &str) -> usize {
    let tags = ["<br />", "<br/>", "<br>"];
    let is_start = |tag: &&str| text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    tags.into_iter().find(is_start).map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(words: Words, line: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        words.each(line, &mut Vec::new(), |word| found.push(String::from_utf8_lossy(word).into_owned()));
        found
    }

    #[test]
    fn words_between_white_space_are_unchanged_and_the_line_has_an_end() {
        let line = b"A\tFilm,\x0b \x0c\0great!\r\n";
        assert_eq!(split(Words::Spaces, line), ["A", "Film,", "great!", "</s>"]);
        assert_eq!(split(Words::Spaces, b"a </s> b"), ["a", "</s>"]);
        assert_eq!(split(Words::Spaces, b"a __label__x b __label__"), ["a", "b", "__label__", "</s>"]);
        assert_eq!(split(Words::Spaces, b""), ["</s>"]);
    }

    #[test]
    fn punctuation_is_kept_as_words_in_lower_case() {
        let line = "It's GREAT!!<br /><BR/>\u{c9}t\u{e9} 7/10 <b>".as_bytes();
        let expected = ["it's", "great", "!", "!", "\u{e9}t\u{e9}", "7", "/", "10", "<", "b", ">"];
        assert_eq!(split(Words::Punctuation, line), expected);
        assert_eq!(split(Words::Punctuation, b"a\xffb\x07c <"), ["a", "b", "c", "<"]);
    }

    #[test]
    fn cleaned_texts_are_split_at_spaces() {
        assert_eq!(split(Words::Cleaned, b"good film"), ["good", "film"]);
        assert!(split(Words::Cleaned, b"").is_empty());
    }
}

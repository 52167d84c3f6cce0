//! Lists of stop words.

use thiserror::Error;

use crate::clean::{Cleaner, Rules};

/// Words that are as frequent in product reviews, and as uninformative, as `the`.
const OF_REVIEWS: [&str; 3] = ["product", "would", "get"];

/// NLTK's 198 English words and three of product reviews, in byte order.
pub fn nltk() -> Vec<String> {
    let listed = stop_words::get("en").iter().chain(&OF_REVIEWS);
    in_byte_order(listed.map(|word| (*word).to_owned()).collect())
}

/// As [`nltk`], without the words of negation: `no`, `not`, `nor`, `never` and the forms of `n't`.
pub fn nltk_negations() -> Vec<String> {
    let mut words = nltk();
    words.retain(|word| !(["no", "not", "nor", "never"].contains(&&word[..]) || word.ends_with("n't")));
    words
}

/// A line of a list is not one word.
#[derive(Debug, Error, PartialEq, Eq)]
// The message does not show the line, because the file may be a file of reviews passed by mistake.
#[error("line {line}: {words} words are left after cleaning, expected one; write one stop word per line")]
pub struct NotOneWord {
    /// The line number, from 1.
    pub line: usize,
    /// Number of words in the line.
    pub words: usize,
}

/// Parses a custom list: one word per line, empty lines skipped. Words are cleaned, because the words of
/// texts are.
pub fn listed(lines: &str, rules: Rules) -> Result<Vec<String>, NotOneWord> {
    let mut cleaner = Cleaner::new(rules);
    let mut words = Vec::new();
    for (i, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut cleaned = Vec::new();
        cleaner.clean(line, &mut cleaned);
        let cleaned = String::from_utf8(cleaned).expect("a cleaned text is UTF-8");
        match cleaned.split_whitespace().count() {
            1 => words.push(cleaned),
            words => return Err(NotOneWord { line: i + 1, words }),
        }
    }
    Ok(in_byte_order(words))
}

fn in_byte_order(mut words: Vec<String>) -> Vec<String> {
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nltk_has_198_words_and_three_of_reviews() {
        let words = nltk();
        assert_eq!(words.len(), 201);
        for word in ["the", "don't", "needn't", "you've", "product", "would", "get", "not"] {
            assert!(words.iter().any(|listed| listed == word), "{word}");
        }
        assert!(words.is_sorted());
    }

    #[test]
    fn nltk_negations_keeps_negations_in_the_text() {
        let words = nltk_negations();
        for word in ["no", "not", "nor", "never", "don't", "isn't", "won't"] {
            assert!(!words.iter().any(|listed| listed == word), "{word}");
        }
        for word in ["the", "don", "you've", "product"] {
            assert!(words.iter().any(|listed| listed == word), "{word}");
        }
    }

    #[test]
    fn a_custom_list_is_cleaned_and_sorted() {
        assert_eq!(
            listed("The\n\n don’t \r\nthe\n", Rules::Letters),
            Ok(vec!["don't".to_owned(), "the".to_owned()])
        );
    }

    #[test]
    fn a_line_of_two_words_is_refused_with_its_line_number() {
        assert_eq!(listed("the\nof course\n", Rules::Letters), Err(NotOneWord { line: 2, words: 2 }));
        assert_eq!(listed("42", Rules::Letters), Err(NotOneWord { line: 1, words: 0 }));
        assert_eq!(listed("42", Rules::Punctuation), Ok(vec!["42".to_owned()]));
    }
}

//! The lists of words that rows leave out.

use thiserror::Error;

use crate::clean::Cleaner;

/// Words so frequent in product reviews that they tell as little as `the`.
const OF_REVIEWS: [&str; 3] = ["product", "would", "get"];

/// NLTK's 198 English words and three of product reviews, in byte order.
pub fn nltk() -> Vec<String> {
    let listed = stop_words::get("en").iter().chain(&OF_REVIEWS);
    in_byte_order(listed.map(|word| (*word).to_owned()).collect())
}

/// As [`nltk`], but the words that turn a sentence round stay in the text: `no`, `not`, `nor`, `never` and the
/// forms of `n't`.
pub fn nltk_negations() -> Vec<String> {
    let mut words = nltk();
    words.retain(|word| !(["no", "not", "nor", "never"].contains(&&word[..]) || word.ends_with("n't")));
    words
}

/// A line of a list that is not one word.
#[derive(Debug, Error, PartialEq, Eq)]
// The line itself is not shown: a file of reviews named by mistake would be.
#[error("line {line}: {words} words are left after cleaning, expected one; write one stop word a line")]
pub struct NotOneWord {
    /// The line's number, from 1.
    pub line: usize,
    /// The words it holds.
    pub words: usize,
}

/// A list of the user's own: one word a line, empty lines skipped. Words are cleaned as reviews are, since only
/// such words can ever be met.
pub fn listed(lines: &str) -> Result<Vec<String>, NotOneWord> {
    let mut cleaner = Cleaner::default();
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
    fn negations_stay_in_the_text_when_asked() {
        let words = nltk_negations();
        for word in ["no", "not", "nor", "never", "don't", "isn't", "won't"] {
            assert!(!words.iter().any(|listed| listed == word), "{word}");
        }
        for word in ["the", "don", "you've", "product"] {
            assert!(words.iter().any(|listed| listed == word), "{word}");
        }
    }

    #[test]
    fn a_list_of_ones_own_is_cleaned_and_ordered() {
        assert_eq!(listed("The\n\n don’t \r\nthe\n"), Ok(vec!["don't".to_owned(), "the".to_owned()]));
    }

    #[test]
    fn a_line_of_two_words_is_refused_by_number() {
        assert_eq!(listed("the\nof course\n"), Err(NotOneWord { line: 2, words: 2 }));
        assert_eq!(listed("42"), Err(NotOneWord { line: 1, words: 0 }));
    }
}

//! The vocabulary, which maps token ids to words.

use std::cmp::Reverse;

use corpus::digest::{Digest, VocabularyDigester};

use crate::dataset_settings::DatasetSettings;
use crate::error::Violation;
use crate::row_columns::TokenType;
use crate::words::{WordList, WordViolation};

/// The id of padding.
pub const PADDING: u32 = 0;
/// The id of every word that is not in the vocabulary.
pub const UNKNOWN: u32 = 1;
/// The id of the vocabulary's first word.
pub const FIRST_WORD: u32 = 2;

/// Words in id order, from [`FIRST_WORD`], with their counts in the data from which the vocabulary was built
/// or to which it was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// The words.
    pub words: WordList,
    /// Count of each word in all distinct texts, before rows are truncated to their kept tokens.
    pub counts: Vec<u64>,
}

impl Vocabulary {
    /// The largest id of a row.
    pub fn largest_id(&self) -> u64 {
        self.words.len() as u64 + u64::from(UNKNOWN)
    }

    /// The type of stored ids.
    pub fn token_type(&self) -> TokenType {
        TokenType::holding(self.largest_id())
    }

    /// The rule of FORMAT.md that words and counts from a file break, given the settings and the digest
    /// recorded in it.
    pub(crate) fn violation(&self, settings: &DatasetSettings, claimed: Digest) -> Option<Violation> {
        let (n_words, size) = (self.words.len() as u64, settings.vocabulary_size);
        let is_another = settings.vocabulary_of.is_some();
        if n_words > size || (is_another && n_words != size) {
            let expected =
                format!("{}{n_words}, the number of words", if is_another { "" } else { "at least " });
            return Some(Violation::new("F15", "attribute vocabulary_size", size.to_string(), expected));
        }
        if let Err(WordViolation { rule, at, found, expected }) = self.words.check(&settings.rows) {
            return Some(Violation::new(rule, format!("word {at} of the vocabulary"), found, expected));
        }
        if !is_another && let Some(violation) = self.order_violation() {
            return Some(violation);
        }
        let found = self.digest();
        (found != claimed).then(|| {
            let expected = format!("{claimed}, as in its attribute");
            Violation::new("F23", "the digest of the vocabulary", found.to_string(), expected)
        })
    }

    /// Checks a vocabulary built from this data: every word occurs, and words descend by count. Returns the
    /// rule broken.
    fn order_violation(&self) -> Option<Violation> {
        let thing = |at: usize| format!("the count of word {at} of the vocabulary");
        if let Some(at) = self.counts.iter().position(|&count| count == 0) {
            return Some(Violation::new("F22", thing(at), "0", "1 or more"));
        }
        let is_behind = |at: &usize| {
            let place = |at: usize| (Reverse(self.counts[at]), self.words.get(at));
            place(*at) <= place(*at - 1)
        };
        (1..self.counts.len()).find(is_behind).map(|at| {
            let (found, before) = (self.counts[at], self.counts[at - 1]);
            let expected = format!(
                "at most {before}, the count of the previous word; words of equal count in byte order"
            );
            Violation::new("F21", thing(at), found.to_string(), expected)
        })
    }

    /// The digest of words and counts.
    pub fn digest(&self) -> Digest {
        let mut digester = VocabularyDigester::default();
        for (word, &count) in self.words.iter().zip(&self.counts) {
            digester.add(word, count);
        }
        digester.digest()
    }
}

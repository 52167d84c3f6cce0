//! The words that ids stand for.

use corpus::digest::{Digest, VocabularyDigester};

use crate::rows::TokenType;
use crate::words::WordList;

/// The id of padding.
pub const PADDING: u32 = 0;
/// The id of every word that is not in the vocabulary.
pub const UNKNOWN: u32 = 1;
/// The id of the vocabulary's first word.
pub const FIRST_WORD: u32 = 2;

/// Words in id order, from [`FIRST_WORD`] on, with their counts in the data that they were cut for or applied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// The words.
    pub words: WordList,
    /// How often each occurs in all distinct texts, before rows are cut to their kept words.
    pub counts: Vec<u64>,
}

impl Vocabulary {
    /// The largest id of a row.
    pub fn largest_id(&self) -> u64 {
        self.words.len() as u64 + u64::from(UNKNOWN)
    }

    /// The type that ids are stored in.
    pub fn token_type(&self) -> TokenType {
        TokenType::holding(self.largest_id())
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

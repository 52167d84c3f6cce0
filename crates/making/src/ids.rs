//! Maps the words of a vocabulary to their ids.

use dataset::WordList;
use dataset::vocabulary::{FIRST_WORD, UNKNOWN};
use hashbrown::HashMap;

/// The ids of a vocabulary by word.
pub struct Ids<'a> {
    ids: HashMap<&'a [u8], u32, std::hash::RandomState>,
}

impl<'a> Ids<'a> {
    /// For these words.
    pub fn of(words: &'a WordList) -> Self {
        Self { ids: words.iter().zip(FIRST_WORD..).collect() }
    }

    /// The id of a word, if the vocabulary has it.
    #[inline]
    pub fn get(&self, word: &[u8]) -> Option<u32> {
        self.ids.get(word).copied()
    }

    /// The id of a word, or that of unknown words.
    #[inline]
    pub fn of_word(&self, word: &[u8]) -> u32 {
        self.get(word).unwrap_or(UNKNOWN)
    }
}

//! The rows of the character n-grams of words, by the numbers of the words. N-grams are hashed as in fastText.
//!
//! A stream changes the lists of few words at a time while threads train with older ones. The lists are therefore in
//! pages that versions share: a change copies the pages of the words that it concerns.

use std::sync::Arc;

use classifiers::Features;
use serde::{Deserialize, Serialize};

/// Words per page.
const PAGE: usize = 256;

/// Lengths of character n-grams, and the number of rows that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NgramBuckets {
    /// Characters of the shortest n-gram.
    pub min: u32,
    /// Characters of the longest n-gram.
    pub max: u32,
    /// Number of rows, the buckets of hashes.
    pub buckets: u32,
}

impl NgramBuckets {
    /// Replaces the content of `numbers` with the buckets of the n-grams of a word.
    pub(crate) fn buckets_of(self, word: &[u8], numbers: &mut Vec<u32>) {
        let Self { min: characters_min, max: characters_max, buckets } = self;
        numbers.clear();
        Features { ngrams: 1, buckets, characters_min, characters_max, hashes_unknown: false }
            .characters(0, word, numbers);
    }
}

/// The rows of the n-grams of all words of a vocabulary.
#[derive(Clone, Debug, Default)]
pub struct Subwords {
    pages: Vec<Arc<Page>>,
}

/// The lists of [`PAGE`] words, or fewer on the last page.
#[derive(Clone, Debug)]
struct Page {
    rows: Vec<u32>,
    /// The begin of the first list, which is 0, and the end of each.
    ends: Vec<u32>,
}

impl Subwords {
    /// The rows of the n-grams of a word.
    #[inline(always)]
    pub fn rows(&self, word: u32) -> &[u32] {
        let Page { rows, ends } = &*self.pages[word as usize / PAGE];
        let at = word as usize % PAGE;
        &rows[ends[at] as usize..ends[at + 1] as usize]
    }

    /// Replaces the list of a word, or appends that of the next word.
    pub(crate) fn set(&mut self, word: u32, of_word: &[u32]) {
        let at = word as usize % PAGE;
        if word as usize / PAGE == self.pages.len() {
            self.pages.push(Arc::new(Page { rows: Vec::new(), ends: vec![0] }));
        }
        let Page { rows, ends } = Arc::make_mut(&mut self.pages[word as usize / PAGE]);
        if at + 1 == ends.len() {
            ends.push(ends[at]);
        }
        let (begin, end) = (ends[at], ends[at + 1]);
        rows.splice(begin as usize..end as usize, of_word.iter().copied());
        let moved = of_word.len() as u32;
        ends[at + 1..].iter_mut().for_each(|to| *to = *to - (end - begin) + moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_buckets_of_fasttext() {
        // N-grams of `<cat>`, by FNV-1a.
        let fnv = |text: &str| {
            text.bytes()
                .fold(2_166_136_261u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
        };
        let expected: Vec<u32> = ["<ca", "<cat", "cat", "cat>", "at>"].map(|gram| fnv(gram) % 1000).into();
        let mut buckets = vec![7];
        NgramBuckets { min: 3, max: 4, buckets: 1000 }.buckets_of(b"cat", &mut buckets);
        assert_eq!(buckets, expected);
    }

    #[test]
    fn lists_are_replaced_and_older_versions_keep_theirs() {
        let list = |word: u32| (0..word % 7).map(|at| 10 * word + at).collect::<Vec<_>>();
        let mut before = Subwords::default();
        (0..600).for_each(|word| before.set(word, &list(word)));
        let mut after = before.clone();
        after.set(300, &[1, 2]);
        after.set(599, &[]);
        after.set(600, &[9]);
        after.set(300, &[3]);
        for word in 0..600 {
            assert_eq!(before.rows(word), list(word), "{word}");
            match word {
                300 => assert_eq!(after.rows(word), [3]),
                599 => assert_eq!(after.rows(word), [0; 0]),
                _ => assert_eq!(after.rows(word), list(word), "{word}"),
            }
        }
        assert_eq!(after.rows(600), [9]);
    }
}

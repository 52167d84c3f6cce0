//! Numbers the n-grams of a text.
//!
//! The hash of an n-gram is that of fastText: the sign-extended hash of its first word, and for each further word
//! multiplied by 116049371 plus the sign-extended hash of the word. A number of `bits` bits is drawn from it by a
//! multiplication. A single word is an n-gram of one word. A pair is two words with others between them. Words and pairs
//! of neighbours at the end of a text are also n-grams of their own.

use std::collections::HashMap;

use super::settings::LinearSettings;
use crate::dictionary::Dictionary;
use crate::features::NGRAM_FACTOR;
use crate::texts::TextRef;

/// What follows the words of an n-gram of the end of a text.
pub const AT_THE_END: &str = " (at the end)";

/// The words of an n-gram in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ngram {
    /// Index of the first word.
    pub first: usize,
    /// Index of the last word.
    pub last: usize,
    /// Whether the words between them do not belong to it.
    pub is_pair: bool,
    /// Whether it is counted as one of the end of the text.
    pub is_ending: bool,
}

impl Ngram {
    /// The words of an n-gram of a text, with ` … ` in a pair and [`AT_THE_END`] for one of the end; `None` if a word is
    /// unknown.
    pub fn name<'a>(self, word: impl Fn(usize) -> Option<&'a [u8]>) -> Option<String> {
        let (separator, indices) = if self.is_pair {
            (" … ", vec![self.first, self.last])
        } else {
            (" ", (self.first..=self.last).collect())
        };
        let words: Option<Vec<_>> =
            indices.into_iter().map(|index| word(index).map(String::from_utf8_lossy)).collect();
        let ending = if self.is_ending { AT_THE_END } else { "" };
        words.map(|words| words.join(separator) + ending)
    }
}

/// Hashes of the words of a text.
pub(super) fn word_hashes(text: TextRef<'_>, dictionary: &Dictionary, hashes: &mut Vec<u32>) {
    hashes.clear();
    let all = dictionary.hashes();
    hashes.extend(text.words().map(|word| word.map_or_else(|hash| hash, |word| all[word as usize])));
}

/// Maximum number of n-grams of a text of `n_words` words.
pub(super) fn n_ngrams(settings: &LinearSettings, n_words: usize) -> usize {
    n_words * (settings.ngrams + settings.gap) as usize + 2 * n_words.min(settings.ending as usize)
}

/// Calls `each` with the hash of each n-gram of a text.
#[inline]
pub(super) fn each_hash(
    settings: &LinearSettings,
    bits: u32,
    words: &[u32],
    mut each: impl FnMut(u32, Ngram),
) {
    let (ngrams, gap) = (settings.ngrams as usize, settings.gap as usize);
    for (first, &word) in words.iter().enumerate() {
        let start = extended(word);
        let mut hash = start;
        each(mixed(hash, bits), Ngram { first, last: first, is_pair: false, is_ending: false });
        for (last, &next) in (first + 1..).zip(words[first + 1..].iter().take(ngrams - 1)) {
            hash = hash.wrapping_mul(NGRAM_FACTOR).wrapping_add(extended(next));
            each(mixed(hash, bits), Ngram { first, last, is_pair: false, is_ending: false });
        }
        if gap > 0 {
            for (last, &next) in (first + 2..).zip(words[first + 1..].iter().skip(1).take(gap)) {
                let pair = start.wrapping_mul(NGRAM_FACTOR).wrapping_add(extended(next));
                // Pairs of the same words at other distances are other n-grams.
                let pair = pair.wrapping_mul(NGRAM_FACTOR).wrapping_add(1 << 40 | (last - first) as u64);
                each(mixed(pair, bits), Ngram { first, last, is_pair: true, is_ending: false });
            }
        }
    }
    let from = words.len().saturating_sub(settings.ending as usize);
    for (first, &word) in (from..).zip(&words[from..]) {
        // No hash of a word is added here, so the n-gram differs from all above.
        let hash = extended(word).wrapping_mul(NGRAM_FACTOR).wrapping_add(1 << 41);
        each(mixed(hash, bits), Ngram { first, last: first, is_pair: false, is_ending: true });
        if let Some(&next) = words.get(first + 1) {
            let hash = hash.wrapping_mul(NGRAM_FACTOR).wrapping_add(extended(next));
            each(mixed(hash, bits), Ngram { first, last: first + 1, is_pair: false, is_ending: true });
        }
    }
}

#[inline]
fn extended(hash: u32) -> u64 {
    i64::from(hash as i32) as u64
}

#[inline]
fn mixed(hash: u64, bits: u32) -> u32 {
    ((hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as u32
}

/// The words of an n-gram as numbers of the dictionary plus one, in 32 bits each.
pub(super) type Exact = u128;

/// Calls `each` with each n-gram whose words are all in the dictionary.
pub(super) fn each_exact(
    settings: &LinearSettings,
    words: &[Option<u32>],
    mut each: impl FnMut(Exact, Ngram),
) {
    let (ngrams, gap) = (settings.ngrams as usize, settings.gap as usize);
    let key = |word: u32| Exact::from(word) + 1;
    for (first, word) in words.iter().enumerate() {
        let Some(word) = *word else { continue };
        let mut joined = key(word);
        each(joined, Ngram { first, last: first, is_pair: false, is_ending: false });
        let known = words[first + 1..].iter().take(ngrams - 1).map_while(|next| *next);
        for (last, next) in (first + 1..).zip(known) {
            joined = joined << 32 | key(next);
            each(joined, Ngram { first, last, is_pair: false, is_ending: false });
        }
        for (last, next) in (first + 2..).zip(words[first + 1..].iter().skip(1).take(gap)) {
            if let Some(next) = *next {
                // No word has a number near 2^32, so the distance cannot be mistaken for a word.
                let distance = Exact::from(u32::MAX) - (last - first) as Exact;
                each(
                    (key(word) << 32 | distance) << 32 | key(next),
                    Ngram { first, last, is_pair: true, is_ending: false },
                );
            }
        }
    }
    let from = words.len().saturating_sub(settings.ending as usize);
    for (first, word) in (from..).zip(&words[from..]) {
        let Some(word) = *word else { continue };
        let joined = key(word) << 32 | ENDING;
        each(joined, Ngram { first, last: first, is_pair: false, is_ending: true });
        if let Some(Some(next)) = words.get(first + 1) {
            let last = first + 1;
            each(joined << 32 | key(*next), Ngram { first, last, is_pair: false, is_ending: true });
        }
    }
}

/// Follows the first word of an n-gram at the end of a text.
const ENDING: Exact = u32::MAX as Exact;

/// Numbers exact n-grams in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct NgramNumbering {
    pub numbers: HashMap<Exact, u32>,
}

impl NgramNumbering {
    /// The number of an n-gram; a new one gets the next number.
    pub fn number(&mut self, ngram: Exact) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(ngram).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::NgramTable;
    use super::*;
    use crate::dictionary::hash;

    fn settings(ngrams: u32, gap: u32) -> LinearSettings {
        LinearSettings { ngrams, gap, ending: 0, ..LinearSettings::default() }
    }

    #[test]
    fn ngrams_and_pairs_of_a_text_are_listed_by_first_word() {
        let words: Vec<u32> = ["not", "a", "good", "film"].iter().map(|word| hash(word.as_bytes())).collect();
        let mut hashed = Vec::new();
        each_hash(&settings(2, 1), 24, &words, |number, ngram| hashed.push((number, ngram)));
        let mut exact = Vec::new();
        let numbers = [Some(0), Some(1), Some(2), Some(3)];
        each_exact(&settings(2, 1), &numbers, |number, ngram| exact.push((number, ngram)));
        let spans =
            |found: Vec<Ngram>| found.iter().map(|n| (n.first, n.last, n.is_pair)).collect::<Vec<_>>();
        let expected = [
            (0, 0, false),
            (0, 1, false),
            (0, 2, true),
            (1, 1, false),
            (1, 2, false),
            (1, 3, true),
            (2, 2, false),
            (2, 3, false),
            (3, 3, false),
        ];
        assert_eq!(spans(hashed.iter().map(|(_, ngram)| *ngram).collect()), expected);
        assert_eq!(spans(exact.iter().map(|(_, ngram)| *ngram).collect()), expected);
        let distinct = |mut numbers: Vec<u128>| {
            numbers.sort_unstable();
            numbers.dedup();
            numbers.len()
        };
        assert_eq!(distinct(hashed.iter().map(|(number, _)| u128::from(*number)).collect()), 9);
        assert_eq!(distinct(exact.iter().map(|(number, _)| *number).collect()), 9);
        assert!(expected.len() <= n_ngrams(&settings(2, 1), words.len()));
    }

    #[test]
    fn words_at_the_end_of_a_text_are_also_ngrams_of_their_own() {
        let settings = LinearSettings { ending: 2, ..settings(2, 0) };
        let words: Vec<u32> =
            ["a", "good", "film", "a", "good"].iter().map(|word| hash(word.as_bytes())).collect();
        let mut hashed = Vec::new();
        each_hash(&settings, 24, &words, |number, ngram| hashed.push((u128::from(number), ngram)));
        let mut exact = Vec::new();
        let numbers = [0, 1, 2, 0, 1].map(Some);
        each_exact(&settings, &numbers, |number, ngram| exact.push((number, ngram)));
        for found in [hashed, exact] {
            assert!(found.len() <= n_ngrams(&settings, 5));
            let (endings, others): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|(_, ngram)| ngram.is_ending);
            assert_eq!(
                endings.iter().map(|(_, n)| (n.first, n.last)).collect::<Vec<_>>(),
                [(3, 3), (3, 4), (4, 4)]
            );
            assert!(endings.iter().all(|(number, _)| others.iter().all(|(other, _)| other != number)));
        }
    }

    #[test]
    fn an_unknown_word_is_in_no_exact_ngram() {
        let mut found = Vec::new();
        let settings = LinearSettings { table: NgramTable::Exact, ..settings(3, 1) };
        each_exact(&settings, &[Some(4), None, Some(5), Some(6)], |_, ngram| {
            found.push((ngram.first, ngram.last));
        });
        assert_eq!(found, [(0, 0), (0, 2), (2, 2), (2, 3), (3, 3)]);
    }
}

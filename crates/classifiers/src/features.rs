//! Numbers the rows of a text: its words, then its word n-grams, hashed as in fastText.
//!
//! A row below the number of words is the row of a word. The other rows are buckets of hashes. The hash of a word
//! n-gram starts with the sign-extended hash of its first word. For each further word it is multiplied by 116049371,
//! and the sign-extended hash of the word is added, modulo 2^64. Words that are not in the dictionary have no row, but
//! take part in n-grams by their hash.
//!
//! The character n-grams of a word are those of `<word>`, by the hash of their bytes. `</s>` has none.

use std::ops::Range;

use crate::dictionary::{Dictionary, hash};
use crate::texts::Tokens;
use crate::words::{END, Words};

/// fastText's factor of hashes of word n-grams.
pub const NGRAM_FACTOR: u64 = 116_049_371;

/// Which words and n-grams of a text have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Maximum length of word n-grams; 1 for words only.
    pub ngrams: u32,
    /// Number of rows for hashed n-grams; 0 for none.
    pub buckets: u32,
    /// Minimum length of character n-grams.
    pub characters_min: u32,
    /// Maximum length of character n-grams; 0 for none.
    pub characters_max: u32,
    /// Whether a word that is not in the dictionary has a row among the buckets, by its hash. In fastText it has none.
    pub hashes_unknown: bool,
}

impl Default for Features {
    /// Words only.
    fn default() -> Self {
        Self { ngrams: 1, buckets: 0, characters_min: 0, characters_max: 0, hashes_unknown: false }
    }
}

impl Features {
    /// Number of rows with a dictionary of this size.
    pub fn n_rows(&self, n_words: usize) -> u64 {
        n_words as u64 + u64::from(self.buckets)
    }

    /// Appends the rows of the character n-grams of a word, where the rows of words precede those of buckets.
    pub fn characters(&self, n_words: u32, word: &[u8], rows: &mut Vec<u32>) {
        let Features { characters_min, characters_max, buckets, .. } = *self;
        if characters_max == 0 || buckets == 0 || word == END {
            return;
        }
        let word = [b"<", word, b">"].concat();
        // A byte of the form 10xxxxxx continues a character of UTF-8.
        let continues = |at: usize| word.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        for from in (0..word.len()).filter(|&from| !continues(from)) {
            let mut to = from;
            for length in 1..=characters_max {
                if to == word.len() {
                    break;
                }
                to += 1;
                while continues(to) {
                    to += 1;
                }
                // `<` and `>` alone are no n-grams.
                let is_mark = length == 1 && (from == 0 || to == word.len());
                if length >= characters_min && !is_mark {
                    // The hash is not sign-extended here.
                    rows.push(n_words + hash(&word[from..to]) % buckets);
                }
            }
        }
    }
}

/// Numbers the rows of texts with one dictionary.
#[derive(Clone, Debug)]
pub struct FeatureRows {
    features: Features,
    n_words: u32,
    buckets: Buckets,
    subwords: Subwords,
}

/// Reusable lists of [`FeatureRows`].
#[derive(Clone, Debug, Default)]
pub struct FeatureScratch {
    hashes: Vec<u64>,
    is_dropped: Vec<bool>,
    word: Vec<u8>,
}

impl FeatureRows {
    /// Lists the character n-grams of all words of the dictionary.
    ///
    /// # Panics
    /// If the number of rows exceeds 2^32 - 2.
    pub fn new(features: Features, dictionary: &Dictionary) -> Self {
        assert!(features.n_rows(dictionary.n_words()) < u64::from(u32::MAX), "too many rows");
        let mut rows = Self {
            features,
            n_words: dictionary.n_words() as u32,
            buckets: Buckets::of(features.buckets),
            subwords: Subwords::default(),
        };
        if features.characters_max > 0 && features.buckets > 0 {
            let mut all = Subwords::default();
            for word in dictionary.words().iter() {
                features.characters(rows.n_words, word, &mut all.rows);
                all.ends.push(all.rows.len());
            }
            rows.subwords = all;
        }
        rows
    }

    /// The features.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_words as usize + self.features.buckets as usize
    }

    /// Appends the rows of a text of [`crate::Texts`]. Of words that are not in the dictionary only the hash is known,
    /// so they have no character n-grams.
    #[inline]
    pub fn of_tokens(
        &self,
        dictionary: &Dictionary,
        tokens: &[u32],
        scratch: &mut FeatureScratch,
        rows: &mut Vec<u32>,
    ) {
        scratch.hashes.clear();
        for word in Tokens(tokens) {
            let hash = match word {
                Ok(word) => {
                    self.of_word(word, rows);
                    dictionary.hash_of(word)
                }
                Err(hash) => {
                    rows.extend(self.of_unknown(hash));
                    hash
                }
            };
            scratch.hashes.push(extended(hash));
        }
        self.add_ngrams(&scratch.hashes, rows);
    }

    /// Appends the rows of a text without the words for which `keeps` returns false and without the n-grams that
    /// contain them.
    pub fn of_sampled(
        &self,
        dictionary: &Dictionary,
        tokens: &[u32],
        mut keeps: impl FnMut(u32) -> bool,
        scratch: &mut FeatureScratch,
        rows: &mut Vec<u32>,
    ) {
        let FeatureScratch { hashes, is_dropped, .. } = scratch;
        hashes.clear();
        is_dropped.clear();
        for word in Tokens(tokens) {
            let is_kept = word.map_or(true, &mut keeps);
            if is_kept {
                match word {
                    Ok(word) => self.of_word(word, rows),
                    Err(hash) => rows.extend(self.of_unknown(hash)),
                }
            }
            hashes.push(extended(word.map_or_else(|hash| hash, |word| dictionary.hash_of(word))));
            is_dropped.push(!is_kept);
        }
        self.each_ngram(hashes, |row, words| {
            if !is_dropped[words].contains(&true) {
                rows.push(row);
            }
        });
    }

    /// Calls `each` with the row and the span of words of each word n-gram of a text of [`crate::Texts`].
    pub fn each_ngram_of_tokens(
        &self,
        dictionary: &Dictionary,
        tokens: &[u32],
        scratch: &mut FeatureScratch,
        each: impl FnMut(u32, Range<usize>),
    ) {
        let hash_of = |word: Result<u32, u32>| word.map_or_else(|hash| hash, |word| dictionary.hash_of(word));
        scratch.hashes.clear();
        scratch.hashes.extend(Tokens(tokens).map(|word| extended(hash_of(word))));
        self.each_ngram(&scratch.hashes, each);
    }

    /// Appends the rows of a line.
    pub fn of_line(
        &self,
        dictionary: &Dictionary,
        words: Words,
        line: &[u8],
        scratch: &mut FeatureScratch,
        rows: &mut Vec<u32>,
    ) {
        let FeatureScratch { hashes, word: bytes, .. } = scratch;
        hashes.clear();
        words.each(line, bytes, |word| {
            let hash = self.of_bytes(dictionary, word, rows);
            hashes.push(extended(hash));
        });
        self.add_ngrams(hashes, rows);
    }

    /// Calls `each` with the rows of a list of words and the span of words of each. The rows of a word and its character
    /// n-grams have the span of the word.
    pub fn each_of_words(
        &self,
        dictionary: &Dictionary,
        words: &[&[u8]],
        mut each: impl FnMut(u32, Range<usize>),
    ) {
        let mut hashes = Vec::with_capacity(words.len());
        let mut rows = Vec::new();
        for (at, word) in words.iter().enumerate() {
            rows.clear();
            hashes.push(extended(self.of_bytes(dictionary, word, &mut rows)));
            rows.iter().for_each(|&row| each(row, at..at + 1));
        }
        self.each_ngram(&hashes, each);
    }

    /// Appends the rows of a word and returns its hash.
    fn of_bytes(&self, dictionary: &Dictionary, word: &[u8], rows: &mut Vec<u32>) -> u32 {
        match dictionary.word(word) {
            Some(number) => {
                self.of_word(number, rows);
                dictionary.hash_of(number)
            }
            None => {
                let hash = hash(word);
                rows.extend(self.of_unknown(hash));
                self.features.characters(self.n_words, word, rows);
                hash
            }
        }
    }

    #[inline]
    fn of_word(&self, word: u32, rows: &mut Vec<u32>) {
        rows.push(word);
        if !self.subwords.ends.is_empty() {
            rows.extend_from_slice(self.subwords.of(word));
        }
    }

    #[inline]
    fn of_unknown(&self, hash: u32) -> Option<u32> {
        (self.features.hashes_unknown && self.features.buckets > 0).then(|| self.bucket(extended(hash)))
    }

    #[inline]
    fn bucket(&self, hash: u64) -> u32 {
        self.n_words + self.buckets.remainder(hash)
    }

    /// Appends the rows of word n-grams.
    #[inline]
    fn add_ngrams(&self, hashes: &[u64], rows: &mut Vec<u32>) {
        if self.features.buckets == 0 || self.features.ngrams < 2 {
            return;
        }
        if self.features.ngrams == 2 {
            let pairs = hashes.iter().zip(hashes.iter().skip(1));
            return rows.extend(pairs.map(|(&first, &next)| self.bucket(joined(first, next))));
        }
        self.each_ngram(hashes, |row, _| rows.push(row));
    }

    #[inline]
    fn each_ngram(&self, hashes: &[u64], mut each: impl FnMut(u32, Range<usize>)) {
        if self.features.buckets == 0 {
            return;
        }
        for (from, &first) in hashes.iter().enumerate() {
            let others = hashes[from + 1..].iter().take(self.features.ngrams.saturating_sub(1) as usize);
            let mut hash = first;
            for (to, &next) in (from + 2..).zip(others) {
                hash = joined(hash, next);
                each(self.bucket(hash), from..to);
            }
        }
    }
}

/// The sign-extended hash of a word.
#[inline]
fn extended(hash: u32) -> u64 {
    i64::from(hash as i32) as u64
}

#[inline]
fn joined(hash: u64, next: u64) -> u64 {
    hash.wrapping_mul(NGRAM_FACTOR).wrapping_add(next)
}

/// The character n-grams of all words.
#[derive(Clone, Debug, Default)]
struct Subwords {
    ends: Vec<usize>,
    rows: Vec<u32>,
}

impl Subwords {
    #[inline]
    fn of(&self, word: u32) -> &[u32] {
        let word = word as usize;
        let from = if word == 0 { 0 } else { self.ends[word - 1] };
        &self.rows[from..self.ends[word]]
    }
}

/// Divides by a constant with one multiplication.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    n: u64,
    reciprocal: u64,
}

impl Buckets {
    fn of(n: u32) -> Self {
        let n = u64::from(n);
        Self { n, reciprocal: u64::MAX / n.max(1) }
    }

    /// The remainder of a division by the number of buckets.
    #[inline]
    fn remainder(self, hash: u64) -> u32 {
        // The reciprocal is less than 2^64 / n by at most 1, so the quotient is too small by at most 1.
        let quotient = ((u128::from(hash) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = hash.wrapping_sub(quotient.wrapping_mul(self.n));
        (if rest >= self.n { rest - self.n } else { rest }) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::Names;
    use crate::texts::UNKNOWN;

    fn dictionary(words: &[&str]) -> Dictionary {
        let names: Names = words.iter().map(|word| word.as_bytes()).collect();
        Dictionary::new(names, vec![1; words.len()], Names::default(), Vec::new())
    }

    #[test]
    fn rows_of_a_text_are_those_of_fasttext() {
        let dictionary = dictionary(&["good", "film", "</s>"]);
        let features = Features { ngrams: 3, buckets: 1000, ..Features::default() };
        let rows = FeatureRows::new(features, &dictionary);
        let mut found = Vec::new();
        rows.of_line(
            &dictionary,
            Words::Spaces,
            b"good new film",
            &mut FeatureScratch::default(),
            &mut found,
        );
        let hashes =
            ["good", "new", "film", "</s>"].map(|word| i64::from(hash(word.as_bytes()) as i32) as i128);
        let bucket = |words: Range<usize>| {
            let joined =
                |hash: i128, word: &i128| (hash * i128::from(NGRAM_FACTOR) + word).rem_euclid(1 << 64);
            let first = hashes[words.start].rem_euclid(1 << 64);
            3 + (hashes[words.start + 1..words.end].iter().fold(first, joined) % 1000) as u32
        };
        let expected = [0, 1, 2, bucket(0..2), bucket(0..3), bucket(1..3), bucket(1..4), bucket(2..4)];
        assert_eq!(found, expected);

        let mut of_tokens = Vec::new();
        let tokens = [0, UNKNOWN, hash(b"new"), 1, 2];
        rows.of_tokens(&dictionary, &tokens, &mut FeatureScratch::default(), &mut of_tokens);
        assert_eq!(of_tokens, expected);

        let mut spans = Vec::new();
        let words: [&[u8]; 4] = [b"good", b"new", b"film", b"</s>"];
        rows.each_of_words(&dictionary, &words, |row, span| spans.push((row, span)));
        assert_eq!(spans.iter().map(|span| span.0).collect::<Vec<_>>(), expected);
        assert_eq!(spans[4].1, 0..3);
    }

    #[test]
    fn an_unknown_word_has_a_row_by_its_hash_if_requested() {
        let dictionary = dictionary(&["good"]);
        let features = Features { buckets: 10, hashes_unknown: true, ..Features::default() };
        let mut found = Vec::new();
        let rows = FeatureRows::new(features, &dictionary);
        rows.of_line(&dictionary, Words::Cleaned, b"bad good", &mut FeatureScratch::default(), &mut found);
        let expected = 1 + (i64::from(hash(b"bad") as i32) as u64 % 10) as u32;
        assert_eq!(found, [expected, 0]);
    }

    #[test]
    fn character_ngrams_are_those_of_fasttext() {
        let dictionary = dictionary(&["\u{e9}a", "</s>"]);
        let features =
            Features { buckets: 1000, characters_min: 1, characters_max: 2, ..Features::default() };
        let rows = FeatureRows::new(features, &dictionary);
        let mut found = Vec::new();
        rows.of_line(
            &dictionary,
            Words::Spaces,
            "\u{e9}a b".as_bytes(),
            &mut FeatureScratch::default(),
            &mut found,
        );
        let bucket = |part: &str| 2 + hash(part.as_bytes()) % 1000;
        let known = [0, bucket("<\u{e9}"), bucket("\u{e9}"), bucket("\u{e9}a"), bucket("a"), bucket("a>")];
        let unknown = [bucket("<b"), bucket("b"), bucket("b>")];
        assert_eq!(found, [&known[..], &unknown[..], &[1]].concat());
    }

    #[test]
    fn a_dropped_word_has_no_row_and_no_ngrams() {
        let dictionary = dictionary(&["a", "b", "c", "d"]);
        let rows = FeatureRows::new(Features { ngrams: 2, buckets: 50, ..Features::default() }, &dictionary);
        let (mut all, mut kept, mut scratch) = (Vec::new(), Vec::new(), FeatureScratch::default());
        rows.of_tokens(&dictionary, &[0, 1, 2, 3], &mut scratch, &mut all);
        rows.of_sampled(&dictionary, &[0, 1, 2, 3], |word| word != 1, &mut scratch, &mut kept);
        assert_eq!(kept, [0, 2, 3, all[6]]);
        kept.clear();
        rows.of_sampled(&dictionary, &[0, 1, 2, 3], |_| true, &mut scratch, &mut kept);
        assert_eq!(kept, all);
    }

    proptest! {
        #[test]
        fn the_remainder_is_that_of_a_division(hash in any::<u64>(), n in 1u32..) {
            for hash in [hash, 0, u64::MAX, u64::from(n), u64::MAX - u64::from(n)] {
                prop_assert_eq!(u64::from(Buckets::of(n).remainder(hash)), hash % u64::from(n));
            }
        }
    }
}

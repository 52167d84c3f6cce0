//! Numbers and counts words as they arrive, in bounded memory.
//!
//! Up to a limit of words, counts are exact. When the vocabulary is full, further words are counted in a count-min sketch
//! (Cormode and Muthukrishnan 2005), whose estimates are never too low. A word whose estimate exceeds the count of the rarest
//! of some random words of the vocabulary takes its number. The count of the evicted word is kept in the sketch.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use program::random::Random;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// Number of random words of which the rarest can be evicted.
const CANDIDATES: usize = 16;
/// Rows of the sketch: an estimate is wrong only if a word collides in each of them.
const SKETCH_ROWS: usize = 4;
/// Counters per row: 32 MiB for all rows.
const SKETCH_COUNTERS: usize = 1 << 21;
/// Purpose of the random words.
const EVICTION: u64 = 0x736b_6970_0003;

/// Words with their numbers and counts.
pub struct Vocabulary {
    words_max: usize,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Bytes of evicted words.
    n_bytes_unused: usize,
    /// Numbers by the hash of their word. Its order has no effect.
    table: HashTable<u32>,
    /// Random, so that crafted words cannot collide.
    hash_seed: u64,
    sketch: Option<Sketch>,
    n_tokens: u64,
    n_evicted: u64,
    /// Whether each word that was counted has a number, with its exact count.
    is_exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    begin: usize,
    length: u32,
    count: u64,
}

/// What the vocabulary did with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It has this number already.
    Known(u32),
    /// It has this new number.
    New(u32),
    /// It takes this number from a rarer word.
    Replaced(u32),
    /// The vocabulary is full, and the word has no number.
    Rare,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Vocabulary({} words, {} tokens)", self.entries.len(), self.n_tokens)
    }
}

impl Vocabulary {
    /// An empty vocabulary for at most this number of words.
    pub fn new(words_max: usize) -> Self {
        Self {
            words_max,
            entries: Vec::new(),
            bytes: Vec::new(),
            n_bytes_unused: 0,
            table: HashTable::new(),
            hash_seed: RandomState::new().hash_one(0),
            sketch: None,
            n_tokens: 0,
            n_evicted: 0,
            is_exact: true,
        }
    }

    /// A vocabulary of these words with their counts, in their order, which has seen this number of tokens. The words are
    /// distinct.
    pub fn of<'a>(
        words_max: usize,
        words: impl IntoIterator<Item = (&'a [u8], u64)>,
        n_tokens: u64,
        n_evicted: u64,
    ) -> Self {
        let mut vocabulary = Self::new(words_max);
        for (word, count) in words {
            let hash = xxh3_64_with_seed(word, vocabulary.hash_seed);
            vocabulary.insert(hash, word, count);
        }
        (vocabulary.n_tokens, vocabulary.n_evicted) = (n_tokens, n_evicted);
        vocabulary
    }

    /// Counts an occurrence of a word.
    #[inline]
    pub fn count(&mut self, word: &[u8]) -> Counted {
        self.n_tokens += 1;
        let hash = xxh3_64_with_seed(word, self.hash_seed);
        if let Some(number) = self.find_hash(hash, word) {
            self.entries[number as usize].count += 1;
            return Counted::Known(number);
        }
        if self.entries.len() < self.words_max {
            return Counted::New(self.insert(hash, word, 1));
        }
        self.count_rare(hash, word)
    }

    /// The number of a word.
    #[inline]
    pub fn find(&self, word: &[u8]) -> Option<u32> {
        self.find_hash(xxh3_64_with_seed(word, self.hash_seed), word)
    }

    #[inline]
    fn find_hash(&self, hash: u64, word: &[u8]) -> Option<u32> {
        self.table.find(hash, |&number| self.word(number) == word).copied()
    }

    fn insert(&mut self, hash: u64, word: &[u8], count: u64) -> u32 {
        let number = self.entries.len() as u32;
        let entry = self.store(word, count);
        self.entries.push(entry);
        self.list(hash, number);
        number
    }

    fn store(&mut self, word: &[u8], count: u64) -> Entry {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(word);
        Entry { begin, length: word.len() as u32, count }
    }

    fn list(&mut self, hash: u64, number: u32) {
        let Self { table, entries, bytes, hash_seed, .. } = self;
        let hash_of = |&number: &u32| xxh3_64_with_seed(entries[number as usize].word(bytes), *hash_seed);
        table.insert_unique(hash, number, hash_of);
    }

    /// Counts a word that has no number in the sketch.
    #[cold]
    fn count_rare(&mut self, hash: u64, word: &[u8]) -> Counted {
        self.is_exact = false;
        let estimate = self.sketch.get_or_insert_with(Sketch::new).add(word, 1);
        // By the number of tokens, so that a vocabulary that was saved and restored evicts the same words.
        let mut random = Random::of(&[EVICTION, self.n_tokens]);
        let candidates = (0..CANDIDATES).map(|_| random.below(self.entries.len() as u64) as u32);
        let Some(rarest) = candidates.min_by_key(|&number| self.entries[number as usize].count) else {
            return Counted::Rare;
        };
        let evicted = self.entries[rarest as usize];
        if evicted.count >= estimate {
            return Counted::Rare;
        }
        let hash_evicted = xxh3_64_with_seed(evicted.word(&self.bytes), self.hash_seed);
        if let Ok(listed) = self.table.find_entry(hash_evicted, |&number| number == rarest) {
            listed.remove();
        }
        if let Some(sketch) = &mut self.sketch {
            sketch.raise(evicted.word(&self.bytes), evicted.count);
        }
        self.n_evicted += 1;
        self.n_bytes_unused += evicted.length as usize;
        self.entries[rarest as usize] = self.store(word, estimate);
        self.list(hash, rarest);
        self.compact();
        Counted::Replaced(rarest)
    }

    /// Removes the bytes of evicted words if they are the larger part.
    fn compact(&mut self) {
        if self.n_bytes_unused > self.bytes.len() / 2 {
            let mut bytes = Vec::with_capacity(self.bytes.len() - self.n_bytes_unused);
            for entry in &mut self.entries {
                let begin = bytes.len();
                bytes.extend_from_slice(entry.word(&self.bytes));
                entry.begin = begin;
            }
            (self.bytes, self.n_bytes_unused) = (bytes, 0);
        }
    }

    /// The word with this number.
    #[inline]
    pub fn word(&self, number: u32) -> &[u8] {
        self.entries[number as usize].word(&self.bytes)
    }

    /// The count of the word with this number. For a word that replaced another one, it is an estimate, which is never too
    /// low.
    #[inline]
    pub fn count_of(&self, number: u32) -> u64 {
        self.entries[number as usize].count
    }

    /// The counts of all words, by number.
    pub fn counts(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.count).collect()
    }

    /// All words with their counts, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.entries.iter().map(|entry| (entry.word(&self.bytes), entry.count))
    }

    /// Number of words.
    pub fn n_words(&self) -> usize {
        self.entries.len()
    }

    /// Maximum number of words.
    pub fn words_max(&self) -> usize {
        self.words_max
    }

    /// Number of tokens counted.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// Number of words that lost their number to another one.
    pub fn n_evicted(&self) -> u64 {
        self.n_evicted
    }

    /// Whether each word that was counted has a number, with its exact count.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The words that occur at least `min_count` times, by descending count and then in byte order; and for each number
    /// its new one.
    pub fn ranked(&self, min_count: u64) -> (Self, Vec<Option<u32>>) {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.retain(|&number| self.count_of(number) >= min_count);
        order.sort_unstable_by_key(|&number| (std::cmp::Reverse(self.count_of(number)), self.word(number)));
        let words = order.iter().map(|&number| (self.word(number), self.count_of(number)));
        let mut ranked = Self::of(order.len(), words, self.n_tokens, self.n_evicted);
        ranked.is_exact = self.is_exact;
        let mut numbers = vec![None; self.entries.len()];
        for (new, old) in (0..).zip(order) {
            numbers[old as usize] = Some(new);
        }
        (ranked, numbers)
    }

    /// The counters of the sketch, if words were counted in it.
    pub(crate) fn sketch(&self) -> Option<&[u32]> {
        self.sketch.as_ref().map(|sketch| &sketch.counters[..])
    }

    /// Number of counters of a sketch.
    pub(crate) const SKETCH_LENGTH: usize = SKETCH_ROWS * SKETCH_COUNTERS;

    /// Replaces the sketch by one with these counters, [`Self::SKETCH_LENGTH`] ones.
    pub(crate) fn set_sketch(&mut self, counters: Vec<u32>) {
        debug_assert_eq!(counters.len(), Self::SKETCH_LENGTH);
        self.sketch = Some(Sketch { counters });
        self.is_exact = false;
    }
}

impl Entry {
    #[inline]
    fn word(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.begin..self.begin + self.length as usize]
    }
}

/// A count-min sketch with conservative updates: only the counters that are too low are raised.
struct Sketch {
    counters: Vec<u32>,
}

impl Sketch {
    fn new() -> Self {
        Self { counters: vec![0; SKETCH_ROWS * SKETCH_COUNTERS] }
    }

    /// Adds occurrences of a word. Returns the estimate of its count.
    fn add(&mut self, word: &[u8], n: u64) -> u64 {
        let places = places(word);
        let estimate =
            places.iter().map(|&place| u64::from(self.counters[place])).min().unwrap_or_default() + n;
        self.raise_at(places, estimate);
        estimate
    }

    /// Raises the estimate of a word to at least `count`.
    fn raise(&mut self, word: &[u8], count: u64) {
        self.raise_at(places(word), count);
    }

    fn raise_at(&mut self, places: [usize; SKETCH_ROWS], count: u64) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        for place in places {
            self.counters[place] = self.counters[place].max(count);
        }
    }
}

/// The counter of a word in each row. The hash does not depend on the process, because checkpoints contain the sketch.
fn places(word: &[u8]) -> [usize; SKETCH_ROWS] {
    let hash = xxh3_128(word);
    let (low, high) = (hash as u64, (hash >> 64) as u64);
    std::array::from_fn(|row| {
        let hash = low.wrapping_add(high.wrapping_mul(row as u64 + 1));
        row * SKETCH_COUNTERS + (hash >> 32) as usize % SKETCH_COUNTERS
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn words(vocabulary: &Vocabulary) -> Vec<(String, u64)> {
        let text = |word: &[u8]| String::from_utf8(word.to_vec()).unwrap();
        vocabulary.iter().map(|(word, count)| (text(word), count)).collect()
    }

    #[test]
    fn words_are_numbered_in_order_and_ranked_by_count() {
        let mut vocabulary = Vocabulary::new(10);
        let found: Vec<Counted> =
            ["b", "a", "b", "", "c", "a", "b"].map(|word| vocabulary.count(word.as_bytes())).into();
        use Counted::{Known, New};
        assert_eq!(found, [New(0), New(1), Known(0), New(2), New(3), Known(1), Known(0)]);
        assert_eq!((vocabulary.find(b"a"), vocabulary.find(b"d")), (Some(1), None));
        let (ranked, numbers) = vocabulary.ranked(1);
        let expected = [("b", 3), ("a", 2), ("", 1), ("c", 1)].map(|(word, n)| (word.to_owned(), n));
        assert_eq!(words(&ranked), expected);
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3)]);
        let (ranked, numbers) = vocabulary.ranked(2);
        assert_eq!((words(&ranked), numbers), (expected[..2].to_vec(), vec![Some(0), Some(1), None, None]));
        assert_eq!((ranked.n_tokens(), ranked.is_exact()), (7, true));
    }

    #[test]
    fn a_full_vocabulary_keeps_the_frequent_words() {
        // Word w occurs in proportion to 1 / (w + 1), among 20,000 words; 1,000 are kept.
        let mut random = Random::of(&[4]);
        let mut vocabulary = Vocabulary::new(1000);
        let mut exact: HashMap<u64, u64> = HashMap::new();
        for _ in 0..400_000 {
            let word = (f64::from(random.uniform()) * 20_000f64.ln()).exp() as u64;
            *exact.entry(word).or_default() += 1;
            vocabulary.count(format!("w{word}").as_bytes());
        }
        assert!(!vocabulary.is_exact() && vocabulary.n_evicted() > 0);
        assert_eq!((vocabulary.n_words(), vocabulary.n_tokens()), (1000, 400_000));
        let mut frequent: Vec<(u64, u64)> = exact.iter().map(|(&word, &n)| (n, word)).collect();
        frequent.sort_unstable_by(|a, b| b.cmp(a));
        for &(n, word) in &frequent[..300] {
            let number = vocabulary.find(format!("w{word}").as_bytes());
            let number = number.unwrap_or_else(|| panic!("w{word} with {n} occurrences"));
            let count = vocabulary.count_of(number);
            assert!((n..=n + n / 10 + 5).contains(&count), "w{word}: {count} for {n}");
        }
    }

    #[test]
    fn numbers_of_evicted_words_are_used_again_and_their_bytes_too() {
        let mut vocabulary = Vocabulary::new(2);
        for word in ["aaaaaaaaaa", "bbbbbbbbbb", "c", "c", "d", "d", "d", "e", "e", "e", "e"] {
            vocabulary.count(word.as_bytes());
        }
        assert_eq!(vocabulary.n_words(), 2);
        assert!(vocabulary.find(b"e").is_some());
        assert!(vocabulary.bytes.len() < 20, "{}", vocabulary.bytes.len());
        let expected: Vec<u32> = (0..2).collect();
        let found: Vec<u32> = (0..2).filter_map(|number| vocabulary.find(vocabulary.word(number))).collect();
        assert_eq!(found, expected);
    }
}

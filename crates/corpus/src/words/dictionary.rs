//! Maps words to numbers and counts them. This is the hot table of the reducer.

use crate::record::RECORD_BYTES_MAX;

use crate::words::keys::{Key, Keys, SHORT_BYTES, Seed};
use crate::words::spans::Span;

/// All words seen since the last [`Dictionary::clear`], after the stop words, which are kept.
///
/// Lookups are the most frequent operation of the reducer, and cache misses dominate their cost. A short word
/// is therefore stored in the table itself with its count, in half a cache line. Words are looked up in
/// batches: all expected slots of a batch are read first, so that the processor waits for several cache lines
/// at once.
pub struct Dictionary {
    bytes: Vec<u8>,
    entries: Vec<WordRange>,
    /// Open addressing: the search for a word starts at the slot of its hash. The length is a power of two.
    table: Vec<Slot>,
    /// Keys are hashed with a random seed, so that crafted reviews cannot make all words collide. The order
    /// of the table never affects the output.
    seed: Seed,
    stop_words: usize,
    stop_bytes: usize,
}

struct WordRange {
    start: usize,
    length: u32,
}

/// A slot of the table. A slot with count zero is empty.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Slot {
    key: Key,
    count: u64,
    /// Index of the word in `entries`.
    place: u32,
}

/// A word of a text that is not a stop word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedWord {
    /// Its number in order of first appearance.
    pub number: u32,
    /// Its span in the text.
    pub span: Span,
}

/// Number of words per batch of lookups.
const TOGETHER: usize = 128;

/// The expected slots of a batch of words.
struct Expected {
    keys: [Key; TOGETHER],
    slots: [u32; TOGETHER],
    /// The first halves of the keys in these slots.
    firsts: [u64; TOGETHER],
}

impl Dictionary {
    /// Creates a dictionary with these stop words.
    pub fn new(stop_words: &[String]) -> Self {
        let mut dictionary = Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            table: vec![Slot::default(); slots_for(0)],
            seed: Seed::random(),
            stop_words: 0,
            stop_bytes: 0,
        };
        for word in stop_words {
            let span = Span { from: 0, length: word.len() as u32 };
            dictionary.count(word.as_bytes(), &[span], &mut Vec::new());
        }
        dictionary.stop_words = dictionary.entries.len();
        dictionary.stop_bytes = dictionary.bytes.len();
        dictionary
    }

    /// Looks up and counts these words of `text`. Replaces the content of `counted` with those that are not
    /// stop words.
    pub fn count(&mut self, text: &[u8], words: &[Span], counted: &mut Vec<CountedWord>) {
        counted.resize(words.len(), CountedWord::default());
        let mut n_counted = 0;
        let mut expected =
            Expected { keys: [Key::default(); TOGETHER], slots: [0; TOGETHER], firsts: [0; TOGETHER] };
        for words in words.chunks(TOGETHER) {
            self.reserve(words.len());
            self.expect(text, words, &mut expected);
            for (i, &span) in words.iter().enumerate() {
                let (key, mut at) = (expected.keys[i], expected.slots[i] as usize);
                // A word of this chunk may have taken the slot, which was empty when the first half was read.
                let is_there = expected.firsts[i] == key.first && self.table[at].key == key;
                if !is_there || span.length as usize > SHORT_BYTES {
                    at = self.find_or_insert(key, at, span.of(text));
                }
                let slot = &mut self.table[at];
                slot.count += 1;
                let place = slot.place as usize;
                // Branch-free, because a branch on stop words would be unpredictable.
                counted[n_counted] = CountedWord { number: place.wrapping_sub(self.stop_words) as u32, span };
                n_counted += usize::from(place >= self.stop_words);
            }
        }
        counted.truncate(n_counted);
    }

    /// Adds the counts of all words of another dictionary.
    pub fn add(&mut self, other: &Self) {
        for slot in other.table.iter().filter(|slot| slot.count > 0) {
            let Some(number) = (slot.place as usize).checked_sub(other.stop_words) else { continue };
            let word = other.get(number as u32);
            let key = Keys::of(word, self.seed).key(Span { from: 0, length: word.len() as u32 });
            self.reserve(1);
            let expected = key.hash(self.seed) as usize & (self.table.len() - 1);
            let at = self.find_or_insert(key, expected, word);
            self.table[at].count += slot.count;
        }
    }

    /// Computes the expected slot of each word.
    #[inline]
    fn expect(&self, text: &[u8], words: &[Span], expected: &mut Expected) {
        let keys = Keys::of(text, self.seed);
        for (i, &span) in words.iter().enumerate() {
            let key = keys.key(span);
            expected.keys[i] = key;
            expected.slots[i] = (key.hash(self.seed) as usize & (self.table.len() - 1)) as u32;
        }
        // A loop of few instructions, so that the processor runs far ahead and waits for many slots at once.
        for (first, &slot) in expected.firsts.iter_mut().zip(&expected.slots[..words.len()]) {
            *first = self.table[slot as usize].key.first;
        }
    }

    /// The slot of the word with this key, searched from slot `from`. A new word is inserted.
    #[inline(never)]
    fn find_or_insert(&mut self, key: Key, from: usize, word: &[u8]) -> usize {
        let mut at = from;
        loop {
            let slot = &mut self.table[at];
            if slot.count == 0 {
                *slot = Slot { key, count: 0, place: self.entries.len() as u32 };
                self.entries.push(WordRange { start: self.bytes.len(), length: word.len() as u32 });
                self.bytes.extend_from_slice(word);
                return at;
            }
            let is_same = slot.key == key
                && (word.len() <= SHORT_BYTES || self.entries[slot.place as usize].of(&self.bytes) == word);
            if is_same {
                return at;
            }
            at = (at + 1) & (self.table.len() - 1);
        }
    }

    /// Makes space for `n_words` new words.
    fn reserve(&mut self, n_words: usize) {
        if self.entries.len() + n_words > most_words(self.table.len()) {
            let larger = vec![Slot::default(); 2 * self.table.len()];
            for slot in std::mem::replace(&mut self.table, larger) {
                self.put(slot);
            }
        }
    }

    /// Inserts a slot of another table.
    fn put(&mut self, slot: Slot) {
        if slot.count > 0 {
            let mut at = slot.key.hash(self.seed) as usize & (self.table.len() - 1);
            while self.table[at].count > 0 {
                at = (at + 1) & (self.table.len() - 1);
            }
            self.table[at] = slot;
        }
    }

    /// The word with this number.
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        self.entries[self.stop_words + number as usize].of(&self.bytes)
    }

    /// Count of each word, by number.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.n_words()];
        for slot in self.table.iter().filter(|slot| slot.count > 0) {
            if let Some(number) = (slot.place as usize).checked_sub(self.stop_words) {
                counts[number] = slot.count;
            }
        }
        counts
    }

    /// Number of words that are not stop words.
    #[inline]
    pub fn n_words(&self) -> usize {
        self.entries.len() - self.stop_words
    }

    /// Whether another text could have more new words than there are free numbers.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() > u32::MAX as usize - RECORD_BYTES_MAX
    }

    /// The numbers of all words, in byte order of the words.
    pub fn in_byte_order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.n_words() as u32).collect();
        numbers.sort_unstable_by_key(|&number| self.get(number));
        numbers
    }

    /// Memory use in bytes. For a large table that is almost full it includes the next table.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        let is_almost_full = self.entries.len() > most_words(self.table.len()) / 16 * 15;
        // Growth of small tables is negligible. Spilling before it would produce many small runs.
        let tables = if is_almost_full && self.table.len() >= LARGE_SLOTS { 3 } else { 1 };
        self.bytes.len()
            + self.entries.len() * size_of::<WordRange>()
            + tables * self.table.len() * size_of::<Slot>()
    }

    /// Removes all words except the stop words, and shrinks the table. A table of the old size could fill the
    /// memory limit, and the next word would exceed it.
    pub fn clear(&mut self) {
        self.entries.truncate(self.stop_words);
        self.bytes.truncate(self.stop_bytes);
        let table = std::mem::replace(&mut self.table, vec![Slot::default(); slots_for(self.stop_words)]);
        let stop_words = self.stop_words;
        let is_kept = |slot: &Slot| slot.count > 0 && (slot.place as usize) < stop_words;
        table.into_iter().filter(is_kept).for_each(|slot| self.put(slot));
    }
}

/// From this number of slots, 16 MiB, the memory of the next table is accounted for in advance.
const LARGE_SLOTS: usize = 1 << 19;

/// The smallest table for this number of words and one batch.
fn slots_for(words: usize) -> usize {
    let mut slots = 4 * TOGETHER;
    while most_words(slots) < words + TOGETHER {
        slots *= 2;
    }
    slots
}

/// Maximum number of words of a table of this length.
fn most_words(slots: usize) -> usize {
    slots / 4 * 3
}

impl WordRange {
    #[inline]
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.start + self.length as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::words::spans::{find_words, room};

    /// The number of the word; `None` for a stop word.
    fn count(dictionary: &mut Dictionary, word: &str) -> Option<u32> {
        let mut counted = Vec::new();
        dictionary.count(word.as_bytes(), &[Span { from: 0, length: word.len() as u32 }], &mut counted);
        counted.first().map(|word| word.number)
    }

    #[test]
    fn words_are_numbered_and_counted_and_stop_words_are_recognized() {
        let mut dictionary = Dictionary::new(&["the".to_owned(), "a".to_owned()]);
        let words = ["the", "good", "a", "fit", "good"].map(|word| count(&mut dictionary, word));
        assert_eq!(words, [None, Some(0), None, Some(1), Some(0)]);
        assert_eq!((dictionary.get(0), dictionary.counts()), (&b"good"[..], vec![2, 1]));
        assert_eq!(dictionary.in_byte_order(), [1, 0]);
    }

    #[test]
    fn a_cleared_dictionary_holds_only_stop_words() {
        let stop_words = ["the".to_owned(), "notwithstanding it".to_owned()];
        let mut dictionary = Dictionary::new(&stop_words);
        for n in 0..1000 {
            count(&mut dictionary, &format!("word{n}"));
        }
        dictionary.clear();
        assert_eq!(dictionary.n_words(), 0);
        assert!(stop_words.iter().all(|word| count(&mut dictionary, word).is_none()));
        assert_eq!(count(&mut dictionary, "word5"), Some(0));
        assert_eq!((dictionary.get(0), dictionary.counts()), (&b"word5"[..], vec![1]));
    }

    #[test]
    fn counts_of_two_dictionaries_are_summed() {
        let (mut one, mut other) = (Dictionary::new(&["the".to_owned()]), Dictionary::new(&[]));
        for word in ["good", "the", "notwithstandingness"] {
            count(&mut one, word);
            count(&mut other, word);
            count(&mut other, &format!("{word}er"));
        }
        other.add(&one);
        let counted = |word: &str| (0..6).find(|&number| other.get(number) == word.as_bytes());
        let counts = other.counts();
        let counts = ["good", "gooder", "the", "notwithstandingness"]
            .map(|word| counts[counted(word).unwrap() as usize]);
        assert_eq!((counts, other.n_words()), ([2, 1, 1, 2], 6));
    }

    proptest! {
        #[test]
        fn counting_equals_a_map_of_counts(text in "(a|b|é|aaaaaaaa|bbbbbbb|\0| ){0,60}") {
            let mut expected: HashMap<&str, u64> = HashMap::new();
            let mut dictionary = Dictionary::new(&["é".to_owned()]);
            for word in text.split(' ').filter(|word| !word.is_empty()) {
                *expected.entry(word).or_default() += 1;
            }
            expected.remove("é");
            let (mut words, mut counted) = (vec![Span::default(); room(text.len())], Vec::new());
            let n_words = find_words(text.as_bytes(), &mut words);
            dictionary.count(text.as_bytes(), &words[..n_words], &mut counted);
            for word in counted {
                prop_assert_eq!(dictionary.get(word.number), word.span.of(text.as_bytes()));
            }
            prop_assert_eq!(dictionary.n_words(), expected.len());
            for (number, count) in (0..).zip(dictionary.counts()) {
                prop_assert_eq!(expected[std::str::from_utf8(dictionary.get(number)).unwrap()], count);
            }
        }
    }
}

//! Words to small numbers, with counts: the hot table of the reducer.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// All words seen since the last [`Dictionary::clear`], behind the stop words, which are never forgotten.
///
/// Looking a word up is the reducer's most frequent act, and its cost is that of memory not in a cache: a short word
/// lies in the table itself, so that one place is read to find it, not the three of table, entry and bytes.
pub struct Dictionary {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    table: HashTable<Slot>,
    /// Keys are hashed with a seed, so that nobody can write reviews whose words all meet in one slot. The table's
    /// order never reaches the output.
    seed: [u64; 2],
    stop_words: usize,
    stop_bytes: usize,
}

struct Entry {
    start: usize,
    length: u32,
}

struct Slot {
    key: Key,
    count: u64,
    /// The word's place in `entries`.
    place: u32,
}

/// A word of up to [`SHORT_BYTES`] bytes as it is, with its length in the last byte; of a longer one a hash, with
/// [`LONG`] there.
type Key = [u64; 2];

const SHORT_BYTES: usize = 15;
const LONG: u64 = 0xff << 56;

/// The key of the word that is the first `length` bytes of `text`.
#[inline]
fn key(text: &[u8], length: usize, seed: &[u64; 2]) -> Key {
    if length > SHORT_BYTES {
        let hash = xxh3_128_with_seed(&text[..length], seed[0]);
        return [hash as u64, (hash >> 64) as u64 | LONG];
    }
    // A load of known length is cheap; at the end of the text it would read too far.
    let bytes = text.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; SHORT_BYTES + 1];
        padded[..length].copy_from_slice(&text[..length]);
        padded
    });
    let word = u128::from_le_bytes(bytes) & !(u128::MAX << (8 * length));
    [word as u64, (word >> 64) as u64 | (length as u64) << 56]
}

/// Multiplies both halves of a key into one number and folds it, as wyhash does.
#[inline]
fn hash(key: &Key, seed: &[u64; 2]) -> u64 {
    let product = u128::from(key[0] ^ seed[0]) * u128::from(key[1] ^ seed[1]);
    product as u64 ^ (product >> 64) as u64
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// One to be left out.
    Stop,
    /// One to be kept, by its number in order of appearance.
    Number(u32),
}

impl Dictionary {
    /// A dictionary that knows these stop words.
    pub fn new(stop_words: &[String]) -> Self {
        let mut dictionary = Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            table: HashTable::new(),
            seed: [0, 1].map(|n| RandomState::new().hash_one(n)),
            stop_words: 0,
            stop_bytes: 0,
        };
        for word in stop_words {
            dictionary.place(word.as_bytes(), word.len());
        }
        dictionary.stop_words = dictionary.entries.len();
        dictionary.stop_bytes = dictionary.bytes.len();
        dictionary
    }

    /// Looks up the word that is the first `length` bytes of `text`, and counts it.
    #[inline]
    pub fn count(&mut self, text: &[u8], length: usize) -> Word {
        match self.place(text, length).checked_sub(self.stop_words) {
            None => Word::Stop,
            Some(number) => Word::Number(number as u32),
        }
    }

    #[inline]
    fn place(&mut self, text: &[u8], length: usize) -> usize {
        let Self { bytes, entries, table, seed, .. } = self;
        let key = key(text, length, seed);
        let same = |slot: &Slot| {
            slot.key == key
                && (length <= SHORT_BYTES || entries[slot.place as usize].of(bytes) == &text[..length])
        };
        if let Some(slot) = table.find_mut(hash(&key, seed), same) {
            slot.count += 1;
            return slot.place as usize;
        }
        let place = entries.len();
        entries.push(Entry { start: bytes.len(), length: length as u32 });
        bytes.extend_from_slice(&text[..length]);
        let slot = Slot { key, count: 1, place: place as u32 };
        table.insert_unique(hash(&key, seed), slot, |slot| hash(&slot.key, seed));
        place
    }

    /// The word with this number.
    pub fn get(&self, number: u32) -> &[u8] {
        self.entries[self.stop_words + number as usize].of(&self.bytes)
    }

    /// How often each word was counted, by number.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.n_words()];
        for slot in &self.table {
            if let Some(number) = (slot.place as usize).checked_sub(self.stop_words) {
                counts[number] = slot.count;
            }
        }
        counts
    }

    /// The number of words that are no stop words.
    pub fn n_words(&self) -> usize {
        self.entries.len() - self.stop_words
    }

    /// The numbers of all words, in the words' byte order.
    pub fn in_byte_order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.n_words() as u32).collect();
        numbers.sort_unstable_by_key(|&number| self.get(number));
        numbers
    }

    /// The memory that the words take.
    pub fn memory_bytes(&self) -> usize {
        // Each slot of the table has a control byte besides, and at most 7 of 8 slots are taken.
        self.bytes.len()
            + self.entries.len() * size_of::<Entry>()
            + self.table.capacity() * 8 / 7 * (size_of::<Slot>() + 1)
    }

    /// Forgets all words but the stop words.
    pub fn clear(&mut self) {
        self.entries.truncate(self.stop_words);
        self.bytes.truncate(self.stop_bytes);
        let Self { table, seed, stop_words, .. } = self;
        let mut kept = Vec::with_capacity(*stop_words);
        kept.extend(table.drain().filter(|slot| (slot.place as usize) < *stop_words));
        for slot in kept {
            table.insert_unique(hash(&slot.key, seed), slot, |slot| hash(&slot.key, seed));
        }
    }
}

impl Entry {
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

    fn count(dictionary: &mut Dictionary, word: &str) -> Word {
        dictionary.count(word.as_bytes(), word.len())
    }

    #[test]
    fn words_are_numbered_and_counted_and_stop_words_are_known() {
        let mut dictionary = Dictionary::new(&["the".to_owned(), "a".to_owned()]);
        let words = ["the", "good", "a", "fit", "good"].map(|word| count(&mut dictionary, word));
        assert_eq!(words, [Word::Stop, Word::Number(0), Word::Stop, Word::Number(1), Word::Number(0)]);
        assert_eq!((dictionary.get(0), dictionary.counts()), (&b"good"[..], vec![2, 1]));
        assert_eq!(dictionary.in_byte_order(), [1, 0]);
    }

    #[test]
    fn a_cleared_dictionary_knows_its_stop_words_only() {
        let stop_words = ["the".to_owned(), "notwithstanding it".to_owned()];
        let mut dictionary = Dictionary::new(&stop_words);
        for n in 0..1000 {
            count(&mut dictionary, &format!("word{n}"));
        }
        dictionary.clear();
        assert_eq!(dictionary.n_words(), 0);
        assert!(stop_words.iter().all(|word| count(&mut dictionary, word) == Word::Stop));
        assert_eq!(count(&mut dictionary, "word5"), Word::Number(0));
        assert_eq!((dictionary.get(0), dictionary.counts()), (&b"word5"[..], vec![1]));
    }

    proptest! {
        #[test]
        fn counting_equals_a_map_of_counts(text in "(a|b|é|aaaaaaaa|bbbbbbb| ){0,60}") {
            let mut expected: HashMap<&str, u64> = HashMap::new();
            let mut dictionary = Dictionary::new(&[]);
            for word in text.split(' ').filter(|word| !word.is_empty()) {
                *expected.entry(word).or_default() += 1;
                // Words are looked up where they lie, with the rest of the text behind them.
                let from = word.as_ptr() as usize - text.as_ptr() as usize;
                dictionary.count(&text.as_bytes()[from..], word.len());
            }
            prop_assert_eq!(dictionary.n_words(), expected.len());
            for (number, count) in (0..).zip(dictionary.counts()) {
                prop_assert_eq!(expected[std::str::from_utf8(dictionary.get(number)).unwrap()], count);
            }
        }
    }
}

//! Words to small numbers, with counts: the hot table of the reducer.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// All words seen since the last [`Dictionary::clear`], behind the stop words, which are never forgotten.
pub struct Dictionary {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Places in `entries`, found by the word's hash.
    table: HashTable<u32>,
    /// The hash is seeded, so that nobody can write reviews whose words all meet in one slot. Its order never
    /// reaches the output.
    seed: u64,
    stop_words: usize,
    stop_bytes: usize,
}

struct Entry {
    start: usize,
    length: u32,
    count: u64,
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
            seed: RandomState::new().hash_one(0),
            stop_words: 0,
            stop_bytes: 0,
        };
        for word in stop_words {
            dictionary.place(word.as_bytes());
        }
        dictionary.stop_words = dictionary.entries.len();
        dictionary.stop_bytes = dictionary.bytes.len();
        dictionary
    }

    /// Looks a word up, and counts it unless it is a stop word.
    #[inline]
    pub fn count(&mut self, word: &[u8]) -> Word {
        let place = self.place(word);
        match place.checked_sub(self.stop_words) {
            None => Word::Stop,
            Some(number) => {
                self.entries[place].count += 1;
                Word::Number(number as u32)
            }
        }
    }

    #[inline]
    fn place(&mut self, word: &[u8]) -> usize {
        let Self { bytes, entries, table, seed, .. } = self;
        let hash = xxh3_64_with_seed(word, *seed);
        if let Some(&place) = table.find(hash, |&place| entries[place as usize].of(bytes) == word) {
            return place as usize;
        }
        let place = entries.len();
        entries.push(Entry { start: bytes.len(), length: word.len() as u32, count: 0 });
        bytes.extend_from_slice(word);
        table.insert_unique(hash, place as u32, |&place| {
            xxh3_64_with_seed(entries[place as usize].of(bytes), *seed)
        });
        place
    }

    /// The word with this number, and its count.
    pub fn get(&self, number: u32) -> (&[u8], u64) {
        let entry = &self.entries[self.stop_words + number as usize];
        (entry.of(&self.bytes), entry.count)
    }

    /// The number of words that are no stop words.
    pub fn n_words(&self) -> usize {
        self.entries.len() - self.stop_words
    }

    /// The numbers of all words, in the words' byte order.
    pub fn in_byte_order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.n_words() as u32).collect();
        numbers.sort_unstable_by_key(|&number| self.get(number).0);
        numbers
    }

    /// The memory that the words take.
    pub fn memory_bytes(&self) -> usize {
        // A slot of the table is a number and a control byte, and at most 7 of 8 slots are taken.
        self.bytes.len() + self.entries.len() * size_of::<Entry>() + self.table.capacity() * 8 / 7 * 5
    }

    /// Forgets all words but the stop words.
    pub fn clear(&mut self) {
        self.entries.truncate(self.stop_words);
        self.bytes.truncate(self.stop_bytes);
        let Self { bytes, entries, table, seed, .. } = self;
        let hash = |place: &u32| xxh3_64_with_seed(entries[*place as usize].of(bytes), *seed);
        table.clear();
        for place in 0..entries.len() as u32 {
            table.insert_unique(hash(&place), place, hash);
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
    use super::*;

    #[test]
    fn words_are_numbered_and_counted_and_stop_words_are_known() {
        let mut dictionary = Dictionary::new(&["the".to_owned(), "a".to_owned()]);
        let words = ["the", "good", "a", "fit", "good"].map(|word| dictionary.count(word.as_bytes()));
        assert_eq!(words, [Word::Stop, Word::Number(0), Word::Stop, Word::Number(1), Word::Number(0)]);
        assert_eq!(dictionary.get(0), (&b"good"[..], 2));
        assert_eq!(dictionary.in_byte_order(), [1, 0]);
    }

    #[test]
    fn a_cleared_dictionary_knows_its_stop_words_only() {
        let mut dictionary = Dictionary::new(&["the".to_owned()]);
        for n in 0..1000 {
            dictionary.count(format!("word{n}").as_bytes());
        }
        dictionary.clear();
        assert_eq!(dictionary.n_words(), 0);
        assert_eq!(dictionary.count(b"the"), Word::Stop);
        assert_eq!(dictionary.count(b"word5"), Word::Number(0));
        assert_eq!(dictionary.get(0), (&b"word5"[..], 1));
    }
}

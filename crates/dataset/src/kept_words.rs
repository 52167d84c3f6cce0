//! Words in memory, by index, for joining the words of rows quickly.

/// Words by index. A short word is stored in the table, so that looking it up takes one memory access instead
/// of two.
#[derive(Clone, Default)]
pub struct KeptWords {
    words: Vec<KeptWord>,
    /// The bytes of long words, concatenated.
    long: Vec<u8>,
}

/// A word of up to [`SHORT_BYTES`] bytes followed by its length. For a longer word, its position in `long`:
/// the offset as u64, the length as u32, little-endian, and [`LONG`] as the length byte.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct KeptWord([u8; WORD_BYTES]);

const WORD_BYTES: usize = 16;
const SHORT_BYTES: usize = WORD_BYTES - 1;
const LONG: u8 = 0xff;

/// Number of words fetched together, so that the processor waits for their memory in parallel.
const TOGETHER: usize = 64;

impl KeptWords {
    /// Maximum memory use of `words` words with `word_bytes` bytes in total.
    pub fn memory_bytes(words: u64, word_bytes: u64) -> u64 {
        words * size_of::<KeptWord>() as u64 + word_bytes
    }

    /// An empty dictionary with capacity for this number of words.
    pub fn with_capacity(words: usize) -> Self {
        Self { words: Vec::with_capacity(words), long: Vec::new() }
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Appends a word.
    pub fn push(&mut self, word: &[u8]) {
        let mut kept = [0; WORD_BYTES];
        if word.len() <= SHORT_BYTES {
            kept[..word.len()].copy_from_slice(word);
            kept[SHORT_BYTES] = word.len() as u8;
        } else {
            kept[..8].copy_from_slice(&(self.long.len() as u64).to_le_bytes());
            kept[8..12].copy_from_slice(&(word.len() as u32).to_le_bytes());
            kept[SHORT_BYTES] = LONG;
            self.long.extend_from_slice(word);
        }
        self.words.push(KeptWord(kept));
    }

    /// The word at this index.
    pub fn get(&self, place: usize) -> &[u8] {
        let KeptWord(word) = &self.words[place];
        match word[SHORT_BYTES] {
            LONG => self.long(word),
            length => &word[..usize::from(length)],
        }
    }

    /// Removes all words from this index.
    pub fn truncate(&mut self, place: usize) {
        let mut forgotten = self.words.iter().skip(place);
        if let Some(KeptWord(word)) = forgotten.find(|KeptWord(word)| word[SHORT_BYTES] == LONG) {
            let (from, _) = long_place(word);
            self.long.truncate(from);
        }
        self.words.truncate(place);
    }

    /// Writes the words at these indexes to `joined`, separated by spaces.
    pub fn join(&self, places: &[u32], joined: &mut Vec<u8>) {
        // A short word with its space fits in one copy. Long words reserve more.
        joined.resize(WORD_BYTES * places.len(), 0);
        let mut end = 0;
        let mut fetched = [KeptWord::default(); TOGETHER];
        for places in places.chunks(TOGETHER) {
            for (word, &place) in fetched.iter_mut().zip(places) {
                *word = self.words[place as usize];
            }
            for KeptWord(word) in &fetched[..places.len()] {
                let mut length = usize::from(word[SHORT_BYTES]);
                if length <= SHORT_BYTES {
                    joined[end..][..WORD_BYTES].copy_from_slice(word);
                } else {
                    let word = self.long(word);
                    length = word.len();
                    joined.resize(joined.len() + length, 0);
                    joined[end..][..length].copy_from_slice(word);
                }
                joined[end + length] = b' ';
                end += length + 1;
            }
        }
        joined.truncate(end.saturating_sub(1));
    }

    fn long(&self, word: &[u8; WORD_BYTES]) -> &[u8] {
        let (from, length) = long_place(word);
        &self.long[from..][..length]
    }
}

/// Position of a long word.
fn long_place(word: &[u8; WORD_BYTES]) -> (usize, usize) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *word;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]) as usize, u32::from_le_bytes([i, j, k, l]) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn joined_words_equal_those_of_a_list(
            words in prop::collection::vec("[a-zé]{1,6}|[a-zé]{5,40}", 1..20),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let mut kept = KeptWords::with_capacity(words.len());
            words.iter().for_each(|word| kept.push(word.as_bytes()));
            // Removed words leave nothing behind.
            words.iter().for_each(|word| kept.push(format!("{word}{word}").as_bytes()));
            kept.truncate(words.len());
            words.iter().for_each(|word| kept.push(word.as_bytes()));
            let places: Vec<usize> = places.iter().map(|place| place.index(2 * words.len())).collect();
            let words = [&words[..], &words].concat();
            let expected: Vec<&str> = places.iter().map(|&place| words[place].as_str()).collect();
            let mut joined = b"what was there before".to_vec();
            kept.join(&places.iter().map(|&place| place as u32).collect::<Vec<_>>(), &mut joined);
            prop_assert_eq!(String::from_utf8(joined).unwrap(), expected.join(" "));
        }
    }
}

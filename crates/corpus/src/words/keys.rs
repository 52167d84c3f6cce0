//! Converts words into table keys of two integers, which fit in registers.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::words::spans::Span;

/// Seed of the hashes of keys. It is random, so that crafted reviews cannot make all words collide.
#[derive(Clone, Copy, Debug)]
pub struct Seed([u64; 2]);

impl Seed {
    /// An unpredictable seed.
    pub fn random() -> Self {
        Self([0, 1].map(|n| RandomState::new().hash_one(n)))
    }
}

/// The key of a word. A word of up to [`SHORT_BYTES`] bytes is its own key, with its length in the last byte.
/// The key of a longer word is a hash, with 255 in the last byte. No word has the default key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The first eight bytes.
    pub first: u64,
    /// The last eight bytes.
    pub last: u64,
}

/// Maximum length of a word that is its own key. Longer words also have to be compared by bytes.
pub const SHORT_BYTES: usize = 15;
const LONG: u64 = 0xff << 56;

/// Masks of the key bits that a short word of each length uses.
const MASKS: [Key; SHORT_BYTES + 1] = {
    let mut masks = [Key { first: 0, last: 0 }; SHORT_BYTES + 1];
    let mut length = 1;
    while length <= SHORT_BYTES {
        let mask = u128::MAX >> (128 - 8 * length);
        masks[length] = Key { first: mask as u64, last: (mask >> 64) as u64 };
        length += 1;
    }
    masks
};

impl Key {
    /// Multiplies both halves and folds the product, as wyhash does.
    #[inline]
    pub fn hash(self, Seed(seed): Seed) -> u64 {
        let product = u128::from(self.first ^ seed[0]) * u128::from(self.last ^ seed[1]);
        product as u64 ^ (product >> 64) as u64
    }
}

/// Computes the keys of the words of a text.
pub struct Keys<'a> {
    text: &'a [u8],
    seed: Seed,
    /// The end of the text, padded with zeros, so that sixteen bytes can be read from the start of every
    /// word.
    tail: [u8; 32],
    tail_from: usize,
}

impl<'a> Keys<'a> {
    /// For this text.
    #[inline]
    pub fn of(text: &'a [u8], seed: Seed) -> Self {
        let tail_from = text.len().saturating_sub(16);
        let mut tail = [0; 32];
        tail[..text.len() - tail_from].copy_from_slice(&text[tail_from..]);
        Self { text, seed, tail, tail_from }
    }

    /// The key of one word.
    #[inline]
    pub fn key(&self, span: Span) -> Key {
        let from = span.from as usize;
        let bytes = match self.text[from..].first_chunk() {
            Some(&bytes) => bytes,
            None => {
                let tail = self.tail[from - self.tail_from..].first_chunk();
                *tail.expect("a word begins before the text's end")
            }
        };
        let word = u128::from_le_bytes(bytes);
        match MASKS.get(span.length as usize) {
            Some(mask) => Key {
                first: word as u64 & mask.first,
                last: (word >> 64) as u64 & mask.last | u64::from(span.length) << 56,
            },
            None => long_key(span.of(self.text), self.seed),
        }
    }
}

#[cold]
#[inline(never)]
fn long_key(word: &[u8], Seed(seed): Seed) -> Key {
    let hash = xxh3_128_with_seed(word, seed[0]);
    Key { first: hash as u64, last: (hash >> 64) as u64 | LONG }
}

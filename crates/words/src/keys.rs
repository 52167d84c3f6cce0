//! Words as keys of tables: two numbers that stay in registers.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::spans::Span;

/// Keys are hashed with a seed, so that nobody can write reviews whose words all meet in one slot of a table.
#[derive(Clone, Copy, Debug)]
pub struct Seed([u64; 2]);

impl Seed {
    /// One that nobody knows beforehand.
    pub fn random() -> Self {
        Self([0, 1].map(|n| RandomState::new().hash_one(n)))
    }
}

/// A word of up to [`SHORT_BYTES`] bytes as it is, with its length in the last byte; of a longer one a hash, with 255
/// there. No word's key is the default one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The first eight bytes.
    pub first: u64,
    /// The others.
    pub last: u64,
}

/// Words of so many bytes are their keys; longer ones have to be compared besides.
pub const SHORT_BYTES: usize = 15;
const LONG: u64 = 0xff << 56;

/// The bits of a key that a short word of each length has.
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
    /// Multiplies both halves into one number and folds it, as wyhash does.
    #[inline]
    pub fn hash(self, Seed(seed): Seed) -> u64 {
        let product = u128::from(self.first ^ seed[0]) * u128::from(self.last ^ seed[1]);
        product as u64 ^ (product >> 64) as u64
    }
}

/// The keys of a text's words.
pub struct Keys<'a> {
    text: &'a [u8],
    seed: Seed,
    /// The text's end with zeros behind it, so that sixteen bytes can be read wherever a word begins.
    tail: [u8; 32],
    tail_from: usize,
}

impl<'a> Keys<'a> {
    /// Those of this text.
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

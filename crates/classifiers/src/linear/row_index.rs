//! Rows of the n-grams that a model has weights for.

use std::collections::HashMap;

use super::keys::Exact;

/// Finds the row of an n-gram.
#[derive(Clone, Debug)]
pub(super) enum RowIndex {
    /// One bit per hash. The row is the number of bits before it, so the table takes 16 bytes per 64 hashes.
    Hashed {
        bits: u32,
        n_rows: usize,
        words: Vec<Word>,
    },
    Exact {
        rows: HashMap<Exact, u32>,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    mask: u64,
    before: u32,
}

/// The keys of all rows in order, from which a table is built again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKeys {
    /// Increasing hashes of this number of bits.
    Hashed {
        /// Number of bits.
        bits: u32,
        /// The hashes.
        hashes: Vec<u32>,
    },
    /// N-grams: each word is its number plus one in 32 bits, the last word in the lowest bits. A pair has
    /// `2^32 - 1 - distance` between its words.
    Exact(Vec<u128>),
}

impl RowIndex {
    /// Rows of the hashes for which `keeps` is true.
    pub fn hashed(bits: u32, keeps: impl Fn(u32) -> bool) -> Self {
        let mut n_rows = 0;
        let mut words = vec![Word::default(); (1usize << bits).div_ceil(64)];
        for (index, word) in (0..).zip(&mut words) {
            let mask = (0..64).filter(|&bit| keeps(index * 64 + bit)).fold(0, |mask, bit| mask | 1 << bit);
            *word = Word { mask, before: n_rows };
            n_rows += mask.count_ones();
        }
        Self::Hashed { bits, n_rows: n_rows as usize, words }
    }

    /// Rows with these keys; `None` if they are not distinct, not in order or out of range.
    pub fn of(keys: &RowKeys) -> Option<Self> {
        match keys {
            RowKeys::Hashed { bits, hashes } => {
                let is_ordered = hashes.is_sorted_by(|a, b| a < b);
                if !(10..=30).contains(bits)
                    || !is_ordered
                    || hashes.last().is_some_and(|last| last >> bits != 0)
                {
                    return None;
                }
                let mut words = vec![Word::default(); (1usize << bits) / 64];
                for hash in hashes {
                    words[*hash as usize / 64].mask |= 1 << (hash % 64);
                }
                let mut before = 0;
                for word in &mut words {
                    word.before = before;
                    before += word.mask.count_ones();
                }
                Some(Self::Hashed { bits: *bits, n_rows: hashes.len(), words })
            }
            RowKeys::Exact(keys) => {
                let rows: HashMap<Exact, u32> = keys.iter().copied().zip(0..).collect();
                (rows.len() == keys.len()).then_some(Self::Exact { rows })
            }
        }
    }

    /// The keys of all rows in order.
    pub fn keys(&self) -> RowKeys {
        match self {
            Self::Hashed { bits, words, .. } => {
                let of = |(index, word): (usize, &Word)| {
                    let mask = word.mask;
                    (0..64).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| index as u32 * 64 + bit)
                };
                RowKeys::Hashed { bits: *bits, hashes: words.iter().enumerate().flat_map(of).collect() }
            }
            Self::Exact { rows } => {
                let mut keys: Vec<_> = rows.iter().map(|(&key, &row)| (row, key)).collect();
                keys.sort_unstable();
                RowKeys::Exact(keys.into_iter().map(|(_, key)| key).collect())
            }
        }
    }

    pub fn n_rows(&self) -> usize {
        match self {
            Self::Hashed { n_rows, .. } => *n_rows,
            Self::Exact { rows } => rows.len(),
        }
    }
}

impl Word {
    /// The row of a hash whose word this is.
    #[inline]
    fn row(self, hash: u32) -> Option<u32> {
        let bit = hash % 64;
        (self.mask >> bit & 1 == 1).then(|| self.before + (self.mask & ((1 << bit) - 1)).count_ones())
    }
}

/// The row of a hash.
#[inline]
pub(super) fn row_of_hash(words: &[Word], hash: u32) -> Option<u32> {
    words[hash as usize / 64].row(hash)
}

/// Appends the row of each hash. `found` is memory: all words are loaded before the first is tested, because loads behind a
/// branch on a word that is not in a cache would wait for it.
pub(super) fn rows_of_hashes(
    words: &[Word],
    hashes: &[u32],
    found: &mut Vec<Word>,
    rows: &mut Vec<Option<u32>>,
) {
    found.clear();
    found.extend(hashes.iter().map(|&hash| words[hash as usize / 64]));
    rows.extend(found.iter().zip(hashes).map(|(word, &hash)| word.row(hash)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_found_by_their_keys_and_keys_by_their_rows(hashes in prop::collection::btree_set(0u32..1 << 12, 0..300)) {
            let rows = RowIndex::hashed(12, |hash| hashes.contains(&hash));
            let keys = RowKeys::Hashed { bits: 12, hashes: hashes.iter().copied().collect() };
            prop_assert_eq!(rows.keys(), keys.clone());
            let again = RowIndex::of(&keys).unwrap();
            prop_assert_eq!(again.n_rows(), hashes.len());
            for rows in [rows, again] {
                let RowIndex::Hashed { words, .. } = rows else { panic!() };
                for hash in 0..1 << 12 {
                    let expected = hashes.iter().position(|&other| other == hash).map(|row| row as u32);
                    prop_assert_eq!(row_of_hash(&words, hash), expected);
                }
            }
        }
    }

    #[test]
    fn keys_that_are_out_of_order_or_out_of_range_are_refused() {
        let hashed = |bits, hashes: &[u32]| RowIndex::of(&RowKeys::Hashed { bits, hashes: hashes.to_vec() });
        assert!(hashed(10, &[1, 5, 1023]).is_some());
        assert!(hashed(10, &[5, 1]).is_none() && hashed(10, &[5, 5]).is_none());
        assert!(hashed(10, &[1024]).is_none() && hashed(40, &[]).is_none());
        assert!(
            RowIndex::of(&RowKeys::Exact(vec![7, 3])).is_some()
                && RowIndex::of(&RowKeys::Exact(vec![3, 3])).is_none()
        );
    }
}

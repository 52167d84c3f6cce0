//! Keys with rows. Workers count keys with their pushes; a key that was counted often enough gets the next row, on the first
//! server. Nothing here knows what keys are; those of word vectors are words.
//!
//! Counts of keys without a row are kept for as many keys as the table has rows. With more, each count is reduced by one, so that a
//! key that is rarer than one in as many counts may be forgotten (Misra and Gries 1982, "Finding repeated elements"). When all
//! rows are used, further keys get none.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use prost::encoding::{decode_varint, encode_varint};

use crate::messages::{KeyCount, KeysState};
use crate::refusal::Refusal;
use crate::spec::Spec;

/// Maximum length of a key, which is not empty.
pub const KEY_BYTES_MAX: usize = 256;
/// Bytes of keys in a reply, about.
const REPLY_BYTES: usize = 1 << 20;

/// Counts as bytes: of each key, its length less one, its bytes and the count as a varint. A list of messages would need much
/// more memory than its bytes.
pub(crate) fn to_bytes(counts: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, n) in counts {
        debug_assert!((1..=KEY_BYTES_MAX).contains(&key.len()), "a key of {} bytes", key.len());
        bytes.push((key.len() - 1) as u8);
        bytes.extend(key);
        encode_varint(*n, &mut bytes);
    }
    bytes
}

/// Refuses malformed counts.
pub(crate) fn check(counts: &[u8]) -> Result<(), Refusal> {
    Counts(counts).try_for_each(|count| count.map(drop))
}

/// Reads counts. After an error there are no more.
struct Counts<'a>(&'a [u8]);

impl<'a> Iterator for Counts<'a> {
    type Item = Result<(&'a [u8], u64), Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = std::mem::take(&mut self.0).split_first()?;
        let count = rest.split_at_checked(usize::from(*length) + 1).and_then(|(key, mut rest)| {
            let n = decode_varint(&mut rest).ok().filter(|&n| n > 0)?;
            self.0 = rest;
            Some((key, n))
        });
        Some(count.ok_or_else(|| Refusal::invalid("malformed counts of keys")))
    }
}

/// The keys of the tables whose rows they have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Number of rows, and the count from which on a key has one; 0: there is no such table.
    n_rows: u64,
    min_count: u64,
    rows: HashMap<Arc<[u8]>, u32>,
    /// By row, with their counts.
    keys: Vec<(Arc<[u8]>, u64)>,
    /// The counts of other keys.
    rare: HashMap<Box<[u8]>, u64>,
    /// Sum of all counts, and those of keys that came when all rows were used.
    pub(crate) n_counted: u64,
    pub(crate) n_left_out: u64,
}

impl Keys {
    /// Keys for the rows of the first table that has keys.
    pub(crate) fn of(specs: &[Spec]) -> Self {
        let mut keys = Self::default();
        keys.open(specs);
        keys
    }

    /// Begins to count when there is a table.
    pub(crate) fn open(&mut self, specs: &[Spec]) {
        if let (0, Some(spec)) = (self.min_count, specs.iter().find(|spec| spec.min_count > 0)) {
            (self.n_rows, self.min_count) = (spec.n_rows, spec.min_count);
        }
    }

    /// Counts occurrences of keys, which [`check`] has accepted.
    pub(crate) fn count(&mut self, counts: &[u8]) {
        for (key, n) in Counts(counts).map_while(Result::ok) {
            self.n_counted = self.n_counted.saturating_add(n);
            if let Some(&row) = self.rows.get(key) {
                let count = &mut self.keys[row as usize].1;
                *count = count.saturating_add(n);
            } else if self.keys.len() as u64 >= self.n_rows {
                self.n_left_out = self.n_left_out.saturating_add(n);
                self.rare = HashMap::new();
            } else {
                self.count_rare(key, n);
            }
        }
    }

    fn count_rare(&mut self, key: &[u8], n: u64) {
        let count = self.rare.get(key).copied().unwrap_or_default().saturating_add(n);
        if count >= self.min_count {
            self.rare.remove(key);
            let (key, row) = (Arc::<[u8]>::from(key), self.keys.len() as u32);
            self.keys.push((Arc::clone(&key), count));
            self.rows.insert(key, row);
            return;
        }
        self.rare.insert(key.into(), count);
        if self.rare.len() as u64 > self.n_rows {
            self.rare.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// Number of keys with a row.
    pub(crate) fn n_keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Keys with their counts by row, from a row on, as many as a message takes.
    pub(crate) fn from(&self, row: u64) -> Vec<KeyCount> {
        let mut left = REPLY_BYTES;
        let of_rows = self.keys.iter().skip(usize::try_from(row).unwrap_or(usize::MAX));
        let fits = |(key, _): &&(Arc<[u8]>, u64)| {
            let fits = left > 0;
            left = left.saturating_sub(key.len() + 16);
            fits
        };
        of_rows.take_while(fits).map(|(key, n)| KeyCount { key: key.to_vec().into(), n: *n }).collect()
    }

    /// The keys as bytes, for [`Keys::restore`].
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let keys = self.keys.iter().map(|(key, n)| KeyCount { key: key.to_vec().into(), n: *n }).collect();
        let rare = self.rare.iter().map(|(key, n)| KeyCount { key: key.to_vec().into(), n: *n });
        let mut rare: Vec<_> = rare.collect();
        rare.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        KeysState { keys, rare, n_counted: self.n_counted, n_left_out: self.n_left_out }.encode_to_vec()
    }

    /// Reads what [`Keys::to_bytes`] wrote; `None` if it is malformed.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let KeysState { keys, rare, n_counted, n_left_out } = KeysState::decode(bytes).ok()?;
        (self.n_counted, self.n_left_out) = (n_counted, n_left_out);
        self.keys = keys.into_iter().map(|KeyCount { key, n }| (Arc::from(&key[..]), n)).collect();
        self.rows = self.keys.iter().map(|(key, _)| Arc::clone(key)).zip(0..).collect();
        self.rare = rare.into_iter().map(|KeyCount { key, n }| (Box::from(&key[..]), n)).collect();
        (self.rows.len() == self.keys.len() && self.keys.len() as u64 <= self.n_rows).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Initial, Optimizer};

    fn keys(n_rows: u64, min_count: u64) -> Keys {
        Keys::of(&[Spec {
            name: "rows".to_owned(),
            n_rows,
            dim: 1,
            initial: Initial::Zero,
            optimizer: Optimizer::Sum,
            content: String::new(),
            min_count,
        }])
    }

    fn count(keys: &mut Keys, counts: &[(&str, u64)]) {
        let of = |&(key, n): &(&str, u64)| (key.as_bytes().to_vec(), n);
        keys.count(&to_bytes(&counts.iter().map(of).collect::<Vec<_>>()));
    }

    fn all(keys: &Keys) -> Vec<(String, u64)> {
        let text = |found: KeyCount| (String::from_utf8(found.key.to_vec()).unwrap(), found.n);
        keys.from(0).into_iter().map(text).collect()
    }

    fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect()
    }

    #[test]
    fn a_key_has_the_next_row_when_it_was_counted_often_enough() {
        let mut keys = keys(2, 3);
        count(&mut keys, &[("b", 2), ("a", 3), ("b", 1), ("c", 2)]);
        assert_eq!(all(&keys), named(&[("a", 3), ("b", 3)]));
        // All rows are used.
        count(&mut keys, &[("c", 9), ("a", 1)]);
        assert_eq!(all(&keys), named(&[("a", 4), ("b", 3)]));
        assert_eq!((keys.n_counted, keys.n_left_out), (18, 11));
        assert_eq!(keys.from(1).len(), 1);
        assert!(keys.from(2).is_empty() && keys.from(u64::MAX).is_empty());
    }

    #[test]
    fn rare_keys_need_bounded_memory_and_do_not_hide_frequent_ones() {
        let mut keys = keys(100, 5);
        for number in 0..5000u32 {
            let names = [format!("rare{number}"), format!("frequent{}", number % 20)];
            count(&mut keys, &[(&names[0], 1), (&names[1], 1)]);
            assert!(keys.rare.len() <= 100);
        }
        assert_eq!(keys.n_keys(), 20);
    }

    #[test]
    fn restored_keys_continue_with_the_same_rows() {
        let (mut whole, mut restored) = (keys(10, 2), keys(10, 2));
        count(&mut whole, &[("a", 2), ("b", 1), ("c", 1)]);
        restored.restore(&whole.to_bytes()).unwrap();
        for keys in [&mut whole, &mut restored] {
            count(keys, &[("c", 1), ("b", 1), ("a", 1)]);
        }
        assert_eq!(restored.to_bytes(), whole.to_bytes());
        assert_eq!(all(&restored), named(&[("a", 3), ("c", 2), ("b", 2)]));
        assert!(keys(2, 2).restore(&whole.to_bytes()).is_none(), "more keys than rows");
        assert!(keys(10, 2).restore(b"damaged").is_none());
    }

    #[test]
    fn malformed_counts_are_refused() {
        let counts = [(vec![b'a'; KEY_BYTES_MAX], 1), (b"b".to_vec(), u64::MAX), ("ü".into(), 300)];
        let bytes = to_bytes(&counts);
        let read: Vec<_> =
            Counts(&bytes).map(|count| count.map(|(key, n)| (key.to_vec(), n)).unwrap()).collect();
        assert_eq!((read, check(&bytes), check(b"")), (counts.to_vec(), Ok(()), Ok(())));
        let ends = [KEY_BYTES_MAX + 2, KEY_BYTES_MAX + 2 + 12, bytes.len()];
        for end in (0..bytes.len()).filter(|end| !ends.contains(end) && *end > 0) {
            assert_eq!(check(&bytes[..end]), Err(Refusal::invalid("malformed counts of keys")), "{end}");
        }
        assert!(check(&to_bytes(&[(b"never".to_vec(), 0)])).is_err());
    }
}

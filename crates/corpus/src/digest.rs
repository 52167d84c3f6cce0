//! Hashes of texts, and digests of rows and vocabularies. All use the XXH3 family with seed 0.
//!
//! The digest of rows is a sum modulo 2^128. It depends neither on the order of rows nor on their
//! distribution among shards, and the digests of shards add up to that of the dataset.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{AddAssign, SubAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use crate::record::Votes;

/// The hash of a cleaned text. Rows are ordered by it.
pub fn text_hash(text: &[u8]) -> u64 {
    xxh3_64(text)
}

/// Number of split values.
pub const SPLITS: u16 = 1000;

/// The value below [`SPLITS`] that assigns a row to the training split or to the test split. It depends only
/// on the kept tokens, so that rows which are equal for a model are in the same split.
///
/// `kept` is the kept tokens joined by one space.
pub fn split(kept: &[u8]) -> u16 {
    (xxh3_64(kept) % u64::from(SPLITS)) as u16
}

/// A digest of 128 bits, written as 32 hexadecimal digits, the most significant first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

impl Digest {
    /// Parses 32 lower-case hexadecimal digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let written_by_us =
            hex.len() == 32 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        u128::from_str_radix(hex, 16).ok().filter(|_| written_by_us).map(Self)
    }

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl AddAssign for Digest {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl SubAssign for Digest {
    fn sub_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_sub(other.0);
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        Self::from_hex(&hex).ok_or_else(|| {
            serde::de::Error::custom(format!("{hex:?} is not a digest of 32 hexadecimal digits"))
        })
    }
}

/// The digest of texts with labels, from the sum of the digests of the text hashes for each label: that of the lines
/// `label TAB sum LF` in the order of labels. It depends on the texts and on the names of their labels only.
pub fn of_labelled(sums: &BTreeMap<String, Digest>) -> Digest {
    let mut lines = String::new();
    sums.iter().for_each(|(label, sum)| lines.push_str(&format!("{label}\t{sum}\n")));
    Digest::of(lines.as_bytes())
}

/// Computes the digests of rows one by one and reuses its buffer.
///
/// Both digests of a row cover these values, little-endian: hash u64, label u8, votes 5 × u32, number of kept
/// tokens u32. In addition, the row digest covers each kept token in UTF-8 followed by LF, and the id digest
/// covers the id of each kept token as u32.
#[derive(Default)]
pub struct RowDigester {
    buffer: Vec<u8>,
}

impl RowDigester {
    /// The row digest of one row, whose tokens are joined by one space.
    pub fn of_words(&mut self, hash: u64, label: u8, votes: Votes, n_words: usize, joined: &[u8]) -> Digest {
        self.start(hash, label, votes, n_words);
        self.buffer.extend(joined.iter().map(|&byte| if byte == b' ' { b'\n' } else { byte }));
        self.buffer.push(b'\n');
        Digest::of(&self.buffer)
    }

    /// The id digest of one row.
    pub fn of_ids(
        &mut self,
        hash: u64,
        label: u8,
        votes: Votes,
        ids: impl ExactSizeIterator<Item = u32>,
    ) -> Digest {
        self.start(hash, label, votes, ids.len());
        self.buffer.extend(ids.flat_map(u32::to_le_bytes));
        Digest::of(&self.buffer)
    }

    fn start(&mut self, hash: u64, label: u8, votes: Votes, words: usize) {
        self.buffer.clear();
        self.buffer.extend_from_slice(&hash.to_le_bytes());
        self.buffer.push(label);
        self.buffer.extend(votes.0.iter().flat_map(|n| n.to_le_bytes()));
        self.buffer.extend_from_slice(&(words as u32).to_le_bytes());
    }
}

/// Computes the digest of a vocabulary, which covers the lines `word TAB count LF` in id order.
pub struct VocabularyDigester {
    state: Xxh3,
}

impl Default for VocabularyDigester {
    fn default() -> Self {
        Self { state: Xxh3::new() }
    }
}

impl VocabularyDigester {
    /// Adds the next word and its count.
    pub fn add(&mut self, word: &[u8], count: u64) {
        self.state.update(word);
        self.state.update(format!("\t{count}\n").as_bytes());
    }

    /// The digest of all words added.
    pub fn digest(&self) -> Digest {
        Digest(self.state.digest128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_the_round_trip_through_32_digits() {
        let digest = Digest(0xab);
        assert_eq!(digest.to_string(), "000000000000000000000000000000ab");
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        for bad in ["ab", "000000000000000000000000000000AB", "+00000000000000000000000000000ab"] {
            assert_eq!(Digest::from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_empty_text_has_the_published_hash_of_empty_input() {
        assert_eq!(text_hash(b""), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn a_row_digest_covers_the_documented_bytes() {
        let mut bytes = Vec::new();
        bytes.extend(7u64.to_le_bytes());
        bytes.push(1);
        for n in [0u32, 0, 0, 0, 2] {
            bytes.extend(n.to_le_bytes());
        }
        bytes.extend(2u32.to_le_bytes());
        let by_words = RowDigester::default().of_words(7, 1, Votes([0, 0, 0, 0, 2]), 2, b"good fit");
        assert_eq!(by_words, Digest::of(&[&bytes[..], b"good\nfit\n"].concat()));
        let by_ids = RowDigester::default().of_ids(7, 1, Votes([0, 0, 0, 0, 2]), [2, 9].into_iter());
        assert_eq!(by_ids, Digest::of(&[&bytes[..], &[2, 0, 0, 0, 9, 0, 0, 0]].concat()));
    }

    #[test]
    fn the_digest_of_labelled_texts_covers_labels_and_sums() {
        let sums = |labels: [&str; 2]| {
            labels
                .into_iter()
                .zip([Digest(1), Digest(2)])
                .map(|(label, sum)| (label.to_owned(), sum))
                .collect()
        };
        let lines = format!("bad\t{}\ngood\t{}\n", Digest(2), Digest(1));
        assert_eq!(of_labelled(&sums(["good", "bad"])), Digest::of(lines.as_bytes()));
        assert_ne!(of_labelled(&sums(["bad", "good"])), Digest::of(lines.as_bytes()));
    }

    #[test]
    fn a_vocabulary_digest_covers_its_lines() {
        let mut digester = VocabularyDigester::default();
        digester.add(b"good", 12);
        digester.add(b"fit", 3);
        assert_eq!(digester.digest(), Digest::of(b"good\t12\nfit\t3\n"));
    }
}

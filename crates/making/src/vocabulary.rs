//! Builds the vocabulary from words with their counts.

use std::cmp::Ordering;

use dataset::WordList;
use dataset::vocabulary::{FIRST_WORD, Vocabulary};

use crate::ids::Ids;

/// The most frequent words of those that `each_word` visits. Of equally frequent words, those that come first in byte
/// order are preferred.
pub(crate) fn most_frequent<E>(
    size: u64,
    each_word: impl FnOnce(&mut dyn FnMut(&[u8], u64)) -> Result<(), E>,
) -> Result<Vocabulary, E> {
    let mut kept = Kept::of(usize::try_from(size).unwrap_or(usize::MAX));
    each_word(&mut |word, count| kept.add(word, count))?;
    Ok(kept.vocabulary())
}

/// These words in their order, with the counts in the data whose words `each_word` visits.
pub(crate) fn recounted<E>(
    words: WordList,
    each_word: impl FnOnce(&mut dyn FnMut(&[u8], u64)) -> Result<(), E>,
) -> Result<Vocabulary, E> {
    let mut counts = vec![0; words.len()];
    let ids = Ids::of(&words);
    each_word(&mut |word, count| {
        if let Some(id) = ids.get(word) {
            counts[(id - FIRST_WORD) as usize] = count;
        }
    })?;
    drop(ids);
    Ok(Vocabulary { words, counts })
}

/// Up to twice as many words as the vocabulary will have. A vocabulary may have millions of words, so a word takes
/// 32 bytes and its own, and most comparisons read only these 32.
#[derive(Default)]
struct Kept {
    size: usize,
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The last word that was kept when words were dropped. No word after it is in the vocabulary.
    last: Option<(Place, Vec<u8>)>,
}

/// A word in the order of the vocabulary: by descending count, then by bytes.
#[derive(Clone, Copy)]
struct Place {
    count: u64,
    /// The first bytes of the word, so that their order is that of these numbers.
    first: u64,
    from: usize,
    length: usize,
}

/// Fewer words are not dropped one by one.
const DROPPED_MIN: usize = 1 << 12;

impl Kept {
    fn of(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    fn add(&mut self, word: &[u8], count: u64) {
        let place = Place { count, first: first_of(word), from: self.bytes.len(), length: word.len() };
        if let Some((last, last_word)) = &self.last
            && place.order(word, last, last_word).is_gt()
        {
            return;
        }
        self.bytes.extend_from_slice(word);
        self.places.push(place);
        if self.places.len() >= self.size.saturating_mul(2).max(self.size.saturating_add(DROPPED_MIN)) {
            self.drop_rare();
        }
    }

    /// Drops the words that cannot be in the vocabulary.
    fn drop_rare(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let order = |one: &Place, other: &Place| one.order(one.of(&bytes), other, other.of(&bytes));
        let Some(last) = self.size.checked_sub(1) else {
            self.places.clear();
            return;
        };
        let (_, &mut last, _) = self.places.select_nth_unstable_by(last, order);
        self.places.truncate(self.size);
        self.last = Some((last, last.of(&bytes).to_vec()));
        for place in &mut self.places {
            let from = self.bytes.len();
            self.bytes.extend_from_slice(place.of(&bytes));
            place.from = from;
        }
    }

    fn vocabulary(mut self) -> Vocabulary {
        let bytes = &self.bytes;
        self.places.sort_unstable_by(|one, other| one.order(one.of(bytes), other, other.of(bytes)));
        self.places.truncate(self.size);
        let mut vocabulary = Vocabulary::default();
        for place in &self.places {
            vocabulary.words.push(place.of(bytes));
            vocabulary.counts.push(place.count);
        }
        vocabulary
    }
}

impl Place {
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.from..self.from + self.length]
    }

    #[inline]
    fn order(&self, word: &[u8], other: &Self, other_word: &[u8]) -> Ordering {
        let by_first = other.count.cmp(&self.count).then(self.first.cmp(&other.first));
        by_first.then_with(|| word.cmp(other_word))
    }
}

fn first_of(word: &[u8]) -> u64 {
    let mut first = [0; 8];
    let n_bytes = word.len().min(first.len());
    first[..n_bytes].copy_from_slice(&word[..n_bytes]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_vocabulary_is_the_beginning_of_all_words_in_order(
            counts in prop::collection::vec(1..9_u64, 0..300),
            repeats in 1..60_usize,
            size in 0..400_usize,
        ) {
            // More words than are held at once, in an order that is not that of the vocabulary.
            let n = counts.len() * repeats;
            let word = |at: usize| format!("{}word{:06}", if at.is_multiple_of(7) { "a" } else { "" }, at * 7919 % n.max(1));
            let mut all: Vec<(String, u64)> = (0..n).map(|at| (word(at), counts[at % counts.len()])).collect();
            all.sort_by(|one, other| one.0.cmp(&other.0));
            all.dedup_by(|one, other| one.0 == other.0);
            all.sort_by_key(|(_, count)| count * 31 % 17);
            let mut kept = Kept::of(size);
            all.iter().for_each(|(word, count)| kept.add(word.as_bytes(), *count));
            prop_assert!(kept.places.len() < 2 * size + DROPPED_MIN);
            let found = kept.vocabulary();
            all.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
            all.truncate(size);
            let expected: Vec<_> = all.iter().map(|(word, count)| (word.as_bytes(), *count)).collect();
            let found: Vec<_> = found.words.iter().zip(found.counts.iter().copied()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

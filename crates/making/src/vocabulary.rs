//! Builds the vocabulary from words with their counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dataset::WordList;
use dataset::vocabulary::{FIRST_WORD, Vocabulary};

use crate::content::DatasetContent;
use crate::error::Result;
use crate::ids::Ids;

/// The most frequent words. Of equally frequent words, those that come first in byte order are preferred.
pub(crate) fn most_frequent<C: DatasetContent>(content: &mut C, size: u64) -> Result<Vocabulary, C::Error> {
    // The heap's greatest entry is dropped next. It is the rarest word; of equally rare words, it is the last
    // one in byte order.
    let mut kept: BinaryHeap<(Reverse<u64>, Vec<u8>)> = BinaryHeap::new();
    content.each_word(&mut |word, count| {
        if (kept.len() as u64) < size {
            kept.push((Reverse(count), word.to_vec()));
        } else if let Some(mut rarest) = kept.peek_mut()
            && (Reverse(count), word) < (rarest.0, &rarest.1[..])
        {
            *rarest = (Reverse(count), word.to_vec());
        }
    })?;
    let mut vocabulary = Vocabulary::default();
    for (Reverse(count), word) in kept.into_sorted_vec() {
        vocabulary.words.push(&word);
        vocabulary.counts.push(count);
    }
    Ok(vocabulary)
}

/// The words of another dataset, in its order, with their counts in this data.
pub(crate) fn recounted<C: DatasetContent>(words: WordList, content: &mut C) -> Result<Vocabulary, C::Error> {
    let mut counts = vec![0; words.len()];
    let ids = Ids::of(&words);
    content.each_word(&mut |word, count| {
        if let Some(id) = ids.get(word) {
            counts[(id - FIRST_WORD) as usize] = count;
        }
    })?;
    drop(ids);
    Ok(Vocabulary { words, counts })
}

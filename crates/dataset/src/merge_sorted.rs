//! Merges sorted sequences into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::{Error, Result};

/// Merges ascending sequences into one. Each entry is returned with the number of its sequence. Holds one
/// entry per sequence.
pub fn merge_sorted<T: Ord, I: Iterator<Item = Result<T>>>(
    sequences: impl IntoIterator<Item = I>,
) -> Result<MergeSorted<T, I>> {
    let mut sequences: Vec<I> = sequences.into_iter().collect();
    let mut heads = BinaryHeap::with_capacity(sequences.len());
    for (number, sequence) in sequences.iter_mut().enumerate() {
        if let Some(first) = sequence.next() {
            heads.push(Reverse((first?, number)));
        }
    }
    Ok(MergeSorted { sequences, heads })
}

/// Result of [`merge_sorted`].
pub struct MergeSorted<T, I> {
    sequences: Vec<I>,
    heads: BinaryHeap<Reverse<(T, usize)>>,
}

impl<T: Ord, I: Iterator<Item = Result<T>>> Iterator for MergeSorted<T, I> {
    type Item = Result<(T, usize)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut least = self.heads.peek_mut()?;
        let number = least.0.1;
        match self.sequences[number].next() {
            // Replacing the head restores the heap once instead of twice.
            Some(Ok(next)) => Some(Ok(std::mem::replace(&mut *least, Reverse((next, number))).0)),
            Some(Err(error)) => Some(Err(error)),
            None => Some(Ok(PeekMut::pop(least).0)),
        }
    }
}

/// Merges lists of words with counts, each in byte order. Visits each distinct word once, in byte order, with
/// its number from 0 and the sum of its counts. Before each visit, calls `met` for every list that contains
/// the word, with the list's index and the word's number. Sums wrap around, so that a list may have negative counts.
pub fn sum_words<I: Iterator<Item = Result<(Vec<u8>, u64)>>, E: From<Error>>(
    lists: impl IntoIterator<Item = I>,
    mut met: impl FnMut(usize, u64) -> std::result::Result<(), E>,
    mut visit: impl FnMut(&[u8], u64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut merged = merge_sorted(lists)?.peekable();
    for number in 0.. {
        let Some(first) = merged.next() else { break };
        let ((word, mut count), list) = first?;
        met(list, number)?;
        while let Some(same) = merged.next_if(|next| matches!(next, Ok(((other, _), _)) if *other == word)) {
            let ((_, more), list) = same?;
            count = count.wrapping_add(more);
            met(list, number)?;
        }
        visit(&word, count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merging_equals_sorting(sequences in prop::collection::vec(prop::collection::vec(0u32..50, 0..20), 0..6)) {
            let mut expected: Vec<(u32, usize)> = Vec::new();
            let mut sorted = sequences;
            for (number, sequence) in sorted.iter_mut().enumerate() {
                sequence.sort_unstable();
                expected.extend(sequence.iter().map(|&entry| (entry, number)));
            }
            expected.sort_unstable();
            let merged = merge_sorted(sorted.into_iter().map(|sequence| sequence.into_iter().map(Ok))).unwrap();
            prop_assert_eq!(merged.collect::<Result<Vec<_>>>().unwrap(), expected);
        }
    }

    #[test]
    fn words_of_several_lists_are_summed_and_numbered() {
        let list = |words: &[(&str, u64)]| {
            words.iter().map(|&(word, count)| Ok((word.as_bytes().to_vec(), count))).collect::<Vec<_>>()
        };
        let lists = [list(&[("b", 1), ("c", 2)]), list(&[]), list(&[("a", 3), ("b", 4)])];
        let (mut met, mut sums) = (Vec::new(), Vec::new());
        let summed: Result<()> = sum_words(
            lists.map(Vec::into_iter),
            |list, number| {
                met.push((list, number));
                Ok(())
            },
            |word, count| {
                sums.push((word.to_vec(), count));
                Ok(())
            },
        );
        summed.unwrap();
        assert_eq!(sums, [(b"a".to_vec(), 3), (b"b".to_vec(), 5), (b"c".to_vec(), 2)]);
        assert_eq!(met, [(2, 0), (0, 1), (2, 1), (0, 2)]);
    }
}

//! Many sorted sequences in, one out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::Result;

/// Merges sequences that ascend each by itself into one that ascends; every entry comes with the number of the
/// sequence that it came from. One entry of each sequence is held.
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

/// What [`merge_sorted`] gives.
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
            // Replacing the head lets the heap settle once instead of twice.
            Some(Ok(next)) => Some(Ok(std::mem::replace(&mut *least, Reverse((next, number))).0)),
            Some(Err(error)) => Some(Err(error)),
            None => Some(Ok(PeekMut::pop(least).0)),
        }
    }
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
}

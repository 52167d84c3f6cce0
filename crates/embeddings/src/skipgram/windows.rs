//! Vectors of words with character n-grams: the mean of a word's own row and the rows of its n-grams.
//!
//! A word is in the windows of several positions. Its mean is computed when it enters the first of them, the steps train
//! the mean, and its change is added to each of its rows when it has left the last one. So its rows are read and written
//! once per occurrence, not once per position. As in fastText, each row receives the whole change, not a share of it.

use kernels::simd::{Row, Table, Vector};

use crate::error::Result;
use crate::skipgram::characters::Subwords;
use crate::skipgram::training::SkipGramTraining;

/// Vectors of a block, whose sums stay in registers.
const BLOCK: usize = 8;

/// The means of the words of a sentence that are in a window of the current position.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Per slot the mean of a word, which is trained, and as it was at first. Words share a slot if their distance is a
    /// multiple of the number of slots.
    pub means: Table,
    /// The slot of each word of the sentence.
    pub slots: Vec<u32>,
    /// Maximum distance of a word from the current position.
    reach: usize,
    /// Number of words of the sentence whose mean was computed, and of those whose change was added to their rows.
    n_entered: usize,
    n_left: usize,
}

impl Windows {
    /// # Errors
    /// If the system has no memory for them.
    pub fn new(training: &SkipGramTraining) -> Result<Self> {
        let reach = training.settings().window as usize;
        let means = training.table(2 * reach + 1, 2)?;
        Ok(Self { means, slots: Vec::new(), reach, n_entered: 0, n_left: 0 })
    }

    /// Begins a sentence of `n_words` words.
    pub fn begin(&mut self, n_words: usize) {
        let n_slots = self.means.n_rows();
        self.slots.clear();
        self.slots.extend((0..n_words).map(|at| (at % n_slots) as u32));
        (self.n_entered, self.n_left) = (0, 0);
    }

    /// Moves to a position of a sentence.
    #[inline]
    pub fn move_to(&mut self, at: usize, training: &SkipGramTraining, subwords: &Subwords, words: &[u32]) {
        self.leave(at.saturating_sub(self.reach), training, subwords, words);
        while self.n_entered < words.len().min(at + self.reach + 1) {
            if let Some(&next) = words.get(self.n_entered + 1) {
                training.prefetch(next, subwords.rows(next));
            }
            let word = words[self.n_entered];
            training.mean_into(word, subwords.rows(word), &self.means, self.slots[self.n_entered]);
            self.n_entered += 1;
        }
    }

    /// Ends a sentence.
    #[inline]
    pub fn finish(&mut self, training: &SkipGramTraining, subwords: &Subwords, words: &[u32]) {
        self.leave(self.n_entered, training, subwords, words);
    }

    fn leave(&mut self, end: usize, training: &SkipGramTraining, subwords: &Subwords, words: &[u32]) {
        while self.n_left < end {
            let word = words[self.n_left];
            training.add_change(word, subwords.rows(word), &self.means, self.slots[self.n_left]);
            self.n_left += 1;
        }
    }
}

impl SkipGramTraining {
    /// Loads the rows of a word into the caches.
    #[inline]
    fn prefetch(&self, word: u32, characters: &[u32]) {
        let Some(buckets) = self.buckets() else { return };
        self.input().prefetch(word);
        characters.iter().for_each(|&row| buckets.rows.prefetch(row));
    }

    /// Writes the mean of the rows of a word into both parts of a slot.
    #[inline]
    fn mean_into(&self, word: u32, characters: &[u32], means: &Table, slot: u32) {
        let Some(buckets) = self.buckets() else { return };
        let (own, mean, first) = (self.input().row(word, 0), means.row(slot, 0), means.row(slot, 1));
        mean_on(self.processor, own, &buckets.rows, characters, mean, first);
    }

    /// Adds the change of the mean in a slot to each row of its word.
    #[inline]
    fn add_change(&self, word: u32, characters: &[u32], means: &Table, slot: u32) {
        let Some(buckets) = self.buckets() else { return };
        let (own, mean, first) = (self.input().row(word, 0), means.row(slot, 0), means.row(slot, 1));
        add_change_on(self.processor, own, &buckets.rows, characters, mean, first);
    }
}

kernels::simd::on_processor! {
    fn mean_on(own: Row<'_>, buckets: &Table, rows: &[u32], mean: Row<'_>, first: Row<'_>) = mean_of;
    fn add_change_on(own: Row<'_>, buckets: &Table, rows: &[u32], mean: Row<'_>, first: Row<'_>) = add_change;
}

/// Calls a function with the number of vectors of each block of the rows, as a constant.
macro_rules! by_blocks {
    ($function:ident::<$vector:ident>($buckets:ident, $($argument:expr),*)) => {
        let mut at = 0;
        while at < $buckets.stride() {
            let n = (($buckets.stride() - at) / $vector::LANES).min(BLOCK);
            match n {
                1 => $function::<$vector, 1>($buckets, at, $($argument),*),
                2 => $function::<$vector, 2>($buckets, at, $($argument),*),
                3 => $function::<$vector, 3>($buckets, at, $($argument),*),
                4 => $function::<$vector, 4>($buckets, at, $($argument),*),
                5 => $function::<$vector, 5>($buckets, at, $($argument),*),
                6 => $function::<$vector, 6>($buckets, at, $($argument),*),
                7 => $function::<$vector, 7>($buckets, at, $($argument),*),
                _ => $function::<$vector, BLOCK>($buckets, at, $($argument),*),
            }
            at += n * $vector::LANES;
        }
    };
}

#[inline(always)]
fn mean_of<V: Vector>(own: Row<'_>, buckets: &Table, rows: &[u32], mean: Row<'_>, first: Row<'_>) {
    by_blocks!(mean_of_block::<V>(buckets, own, rows, mean, first));
}

#[inline(always)]
fn mean_of_block<V: Vector, const N: usize>(
    buckets: &Table,
    begin: usize,
    own: Row<'_>,
    rows: &[u32],
    mean: Row<'_>,
    first: Row<'_>,
) {
    let mut sums = [V::splat(0.0); N];
    for (at, sum) in sums.iter_mut().enumerate() {
        *sum = V::load_row(own, begin + at * V::LANES);
    }
    for &row in rows {
        let row = buckets.row(row, 0);
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = sum.add(V::load_row(row, begin + at * V::LANES));
        }
    }
    let share = V::splat((1.0 / (rows.len() + 1) as f64) as f32);
    for (at, sum) in sums.into_iter().enumerate() {
        let value = sum.mul(share);
        value.store_row(mean, begin + at * V::LANES);
        value.store_row(first, begin + at * V::LANES);
    }
}

#[inline(always)]
fn add_change<V: Vector>(own: Row<'_>, buckets: &Table, rows: &[u32], mean: Row<'_>, first: Row<'_>) {
    by_blocks!(add_change_of_block::<V>(buckets, own, rows, mean, first));
}

#[inline(always)]
fn add_change_of_block<V: Vector, const N: usize>(
    buckets: &Table,
    begin: usize,
    own: Row<'_>,
    rows: &[u32],
    mean: Row<'_>,
    first: Row<'_>,
) {
    let mut changes = [V::splat(0.0); N];
    for (at, change) in changes.iter_mut().enumerate() {
        let place = begin + at * V::LANES;
        *change = V::load_row(mean, place).sub(V::load_row(first, place));
    }
    add::<V, N>(&changes, own, begin);
    // One after the other: an n-gram that the word has twice receives the change twice.
    for &row in rows {
        add::<V, N>(&changes, buckets.row(row, 0), begin);
    }
}

#[inline(always)]
fn add<V: Vector, const N: usize>(changes: &[V; N], row: Row<'_>, begin: usize) {
    for (at, change) in changes.iter().enumerate() {
        let place = begin + at * V::LANES;
        V::load_row(row, place).add(*change).store_row(row, place);
    }
}

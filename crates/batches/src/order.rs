//! The order of an epoch: which rows make batch k. A pure function of seed, epoch, the rows' lengths and the number of
//! rows of a batch, B.
//!
//! 1. The rows are permuted.
//! 2. The first ones, as many as make whole batches, are cut into pools of 64·B. A pool is sorted by length; rows of
//!    equal length stay in the order of the permutation. It is cut into batches of B.
//! 3. The batches of all pools are shuffled.
//! 4. The rows that are left, fewer than B, sorted in the same way, are the last batch: the only short one, and the
//!    epoch's last step. They come from no pool, so that they are a sample of all rows. (The end of a sorted pool
//!    would be its longest rows: in a dataset of one pool the same ones in every epoch.)
//!
//! So batch k is rows k·B up to (k+1)·B of the order, whatever the number of ranks.
//!
//! A dataset that is read in blocks has such an order for each *window*, the rows that are in memory together. There
//! step 4 differs: what is left is not a batch but begins the next window, in front of that window's own rows, and
//! only the last window ends with a short batch. What a window leaves are always rows of its own (the caller sees to
//! it that there are B or more), the last of its permutation: so they are known without the windows before it. Rows
//! that are all in memory are one window, number 0.
//!
//! Random numbers come from [`crate::random`]: the stream of [`Purpose::Order`] with the key seed, epoch, window is
//! used for the permutation, and then for the batches.

use serde::{Deserialize, Serialize};

use crate::random::{Purpose, Random};

/// Rows of so many batches are sorted by length together: enough for hardly any padding, few enough for batches that
/// differ from epoch to epoch.
pub const POOL_BATCHES: usize = 64;

/// How rows are brought into an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrangement {
    /// For training: another order in each epoch.
    Shuffled {
        /// The training's seed.
        seed: u64,
        /// The epoch, from 0.
        epoch: u64,
    },
    /// For evaluation: rows as they stand in the dataset, pools and batches in order.
    Fixed,
}

/// The batches of an epoch, or of one window of it, as places in the list of lengths they were made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    batch_rows: usize,
    /// Whole batches, one after the other, and behind them what is left.
    places: Vec<u32>,
    /// Which whole batch comes when.
    batches: Vec<u32>,
}

impl Order {
    /// The order of rows of these lengths, all in memory.
    pub fn of_epoch(arrangement: Arrangement, lengths: &[u32], batch_rows: usize) -> Self {
        Self::of_window(arrangement, 0, 0, lengths, batch_rows)
    }

    /// The order of a window: of the lengths the first `n_carried` are of rows that the window before has left.
    pub(crate) fn of_window(
        arrangement: Arrangement,
        window: u64,
        n_carried: usize,
        lengths: &[u32],
        batch_rows: usize,
    ) -> Self {
        let mut random = stream(arrangement, window);
        let mut places = permutation(random.as_mut(), n_carried, lengths.len() - n_carried);
        let n_batches = places.len() / batch_rows;
        let (whole, left) = places.split_at_mut(n_batches * batch_rows);
        for pool in whole.chunks_mut(POOL_BATCHES * batch_rows) {
            sort_by_length(pool, lengths);
        }
        sort_by_length(left, lengths);
        let mut batches: Vec<u32> = (0..n_batches as u32).collect();
        if let Some(random) = &mut random {
            random.shuffle(&mut batches);
        }
        Self { batch_rows, places, batches }
    }

    /// The number of whole batches.
    pub fn n_whole(&self) -> usize {
        self.batches.len()
    }

    /// The rows of batch `at`, by ascending length; behind the whole batches lies the short one, which may be empty.
    pub fn batch(&self, at: usize) -> &[u32] {
        match self.batches.get(at) {
            Some(&batch) => &self.places[batch as usize * self.batch_rows..][..self.batch_rows],
            None => self.left(),
        }
    }

    /// The rows that make no whole batch, by ascending length.
    pub fn left(&self) -> &[u32] {
        &self.places[self.batches.len() * self.batch_rows..]
    }
}

fn stream(arrangement: Arrangement, window: u64) -> Option<Random> {
    match arrangement {
        Arrangement::Shuffled { seed, epoch } => Some(Random::of(Purpose::Order, &[seed, epoch, window])),
        Arrangement::Fixed => None,
    }
}

/// Carried rows in front, own rows permuted behind them.
fn permutation(random: Option<&mut Random>, n_carried: usize, n_own: usize) -> Vec<u32> {
    let mut places: Vec<u32> = (0..(n_carried + n_own) as u32).collect();
    if let Some(random) = random {
        random.shuffle(&mut places[n_carried..]);
    }
    places
}

/// The sort is stable: that decides which of equals comes first.
fn sort_by_length(places: &mut [u32], lengths: &[u32]) {
    places.sort_by_cached_key(|&place| lengths[place as usize]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shuffled(seed: u64, epoch: u64) -> Arrangement {
        Arrangement::Shuffled { seed, epoch }
    }

    fn batches(order: &Order) -> Vec<Vec<u32>> {
        (0..=order.n_whole()).map(|at| order.batch(at).to_vec()).filter(|batch| !batch.is_empty()).collect()
    }

    fn lengths(n: u32) -> Vec<u32> {
        (0..n).map(|row| row * 7 % 5 + 1).collect()
    }

    #[test]
    fn the_order_is_what_it_has_always_been() {
        let order = Order::of_epoch(shuffled(42, 3), &lengths(11), 3);
        assert_eq!(batches(&order), [&[8, 6, 9][..], &[4, 2, 7], &[10, 5, 0], &[3, 1]]);
    }

    #[test]
    fn seed_and_epoch_change_the_order() {
        let of = |arrangement| batches(&Order::of_epoch(arrangement, &lengths(50), 4));
        assert_eq!(of(shuffled(1, 0)), of(shuffled(1, 0)));
        assert_ne!(of(shuffled(1, 0)), of(shuffled(1, 1)));
        assert_ne!(of(shuffled(1, 0)), of(shuffled(2, 0)));
    }

    #[test]
    fn no_rows_are_no_batches() {
        let order = Order::of_epoch(shuffled(1, 0), &[], 4);
        assert_eq!((order.n_whole(), order.left()), (0, &[][..]));
    }

    #[test]
    fn a_fixed_order_sorts_pools_and_shuffles_nothing() {
        let order = Order::of_epoch(Arrangement::Fixed, &[3, 1, 2, 1, 9, 8, 7], 2);
        assert_eq!(batches(&order), [&[1, 3][..], &[2, 0], &[5, 4], &[6]]);
    }

    /// The contract as it is written, for rows in memory.
    fn slowly(seed: u64, epoch: u64, lengths: &[u32], batch_rows: usize) -> Vec<Vec<u32>> {
        let mut random = Random::of(Purpose::Order, &[seed, epoch, 0]);
        let mut rows: Vec<u32> = (0..lengths.len() as u32).collect();
        random.shuffle(&mut rows);
        let mut short = rows.split_off(rows.len() / batch_rows * batch_rows);
        let mut batches = Vec::new();
        for pool in rows.chunks_mut(64 * batch_rows) {
            pool.sort_by_key(|&row| lengths[row as usize]);
            batches.extend(pool.chunks(batch_rows).map(<[u32]>::to_vec));
        }
        random.shuffle(&mut batches);
        short.sort_by_key(|&row| lengths[row as usize]);
        batches.extend((!short.is_empty()).then_some(short));
        batches
    }

    proptest! {
        #[test]
        fn the_order_is_the_one_that_is_written_down(
            seed: u64,
            epoch in 0u64..9,
            lengths in prop::collection::vec(1u32..12, 0..900),
            batch_rows in 1usize..6,
        ) {
            let order = Order::of_epoch(shuffled(seed, epoch), &lengths, batch_rows);
            prop_assert_eq!(batches(&order), slowly(seed, epoch, &lengths, batch_rows));
        }

        #[test]
        fn every_row_comes_exactly_once_and_only_the_last_batch_is_short(
            seed: u64,
            lengths in prop::collection::vec(1u32..12, 0..500),
            batch_rows in 1usize..9,
        ) {
            let batches = batches(&Order::of_epoch(shuffled(seed, 0), &lengths, batch_rows));
            let whole = lengths.len() / batch_rows;
            prop_assert!(batches.iter().take(whole).all(|batch| batch.len() == batch_rows));
            prop_assert_eq!(batches.len(), lengths.len().div_ceil(batch_rows));
            let mut rows: Vec<u32> = batches.concat();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..lengths.len() as u32).collect::<Vec<_>>());
        }

        #[test]
        fn what_a_window_leaves_does_not_depend_on_the_rows_it_was_left(
            seed: u64,
            window in 0u64..5,
            batch_rows in 1usize..9,
            n_carried in 0usize..9,
            lengths in prop::collection::vec(1u32..12, 20..200),
        ) {
            let n_carried = n_carried % batch_rows;
            let left = |lengths: &[u32]| {
                Order::of_window(shuffled(seed, 1), window, n_carried, lengths, batch_rows).left().to_vec()
            };
            let mut others = lengths.clone();
            others[..n_carried].fill(0);
            prop_assert_eq!(left(&lengths), left(&others));
            prop_assert!(left(&lengths).iter().all(|&place| place >= n_carried as u32));
        }
    }
}

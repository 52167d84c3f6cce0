//! The order of an epoch: which rows are in batch k. It is a pure function of seed, epoch, row lengths and the batch
//! size B.
//!
//! 1. Permute the rows.
//! 2. Take the first rows, up to the largest multiple of B, and split them into pools of 64·B rows. Sort each pool
//!    by length; rows of equal length stay in permuted order. Split each pool into batches of B rows.
//! 3. Shuffle the batches of all pools.
//! 4. Sort the remaining rows, fewer than B, by length. They are the last batch of the epoch and the only short one.
//!    They are taken before the pools are sorted, so they are a random sample. If they were the end of a sorted
//!    pool, they would be its longest rows. In a small dataset, these would be the same rows in every epoch.
//!
//! Batch k is rows k·B to (k+1)·B of this order, whatever the number of ranks.
//!
//! For a dataset that is read in blocks, each *window* of rows in memory has such an order. Step 4 differs: the
//! remaining rows are carried over and precede the rows of the next window. Only the last window ends with a short
//! batch. A window always carries over rows of its own, the last of its permutation, because it has at least B rows;
//! the caller ensures this. The carried rows are therefore known without reading earlier windows. Rows that are all
//! in memory are one window, number 0.
//!
//! Random numbers come from [`crate::random`], stream [`Purpose::Order`] with key seed, epoch, window. The
//! permutation draws first, then the shuffle of the batches.

use serde::{Deserialize, Serialize};

use crate::random::{Purpose, Random};

/// Number of batches per pool. Rows of a pool are sorted by length. The number is large enough to avoid most
/// padding, and small enough that each epoch has different batches.
pub const POOL_BATCHES: usize = 64;

/// How rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrangement {
    /// For training: a different order in each epoch.
    Shuffled {
        /// The training's seed.
        seed: u64,
        /// The epoch, from 0.
        epoch: u64,
    },
    /// For evaluation: rows in dataset order; pools and batches are not shuffled.
    Fixed,
}

/// The batches of an epoch or of one window, as indices into the list of lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    batch_rows: usize,
    /// Rows of the whole batches, followed by the remaining rows.
    places: Vec<u32>,
    /// The order of the whole batches.
    batches: Vec<u32>,
}

impl Order {
    /// The order of an epoch whose rows are all in memory.
    pub fn of_epoch(arrangement: Arrangement, lengths: &[u32], batch_rows: usize) -> Self {
        Self::of_window(arrangement, 0, 0, lengths, batch_rows)
    }

    /// The order of a window. The first `n_carried` lengths belong to rows carried over from the previous window.
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

    /// Number of whole batches.
    pub fn n_whole(&self) -> usize {
        self.batches.len()
    }

    /// The rows of batch `at`, by ascending length. After the whole batches follows the short one, which may be
    /// empty.
    pub fn batch(&self, at: usize) -> &[u32] {
        match self.batches.get(at) {
            Some(&batch) => &self.places[batch as usize * self.batch_rows..][..self.batch_rows],
            None => self.left(),
        }
    }

    /// The rows that do not fill a whole batch, by ascending length.
    pub fn left(&self) -> &[u32] {
        &self.places[self.batches.len() * self.batch_rows..]
    }
}

fn stream(arrangement: Arrangement, window: u64) -> Option<Random> {
    match arrangement {
        Arrangement::Shuffled { seed, epoch } => Some(Purpose::Order.stream(&[seed, epoch, window])),
        Arrangement::Fixed => None,
    }
}

/// Returns the carried rows, followed by the window's rows in permuted order.
fn permutation(random: Option<&mut Random>, n_carried: usize, n_own: usize) -> Vec<u32> {
    let mut places: Vec<u32> = (0..(n_carried + n_own) as u32).collect();
    if let Some(random) = random {
        random.shuffle(&mut places[n_carried..]);
    }
    places
}

/// The sort must be stable: rows of equal length keep their order.
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
    fn the_order_equals_recorded_batches() {
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
    fn no_rows_give_no_batches() {
        let order = Order::of_epoch(shuffled(1, 0), &[], 4);
        assert_eq!((order.n_whole(), order.left()), (0, &[][..]));
    }

    #[test]
    fn a_fixed_order_sorts_pools_without_shuffling() {
        let order = Order::of_epoch(Arrangement::Fixed, &[3, 1, 2, 1, 9, 8, 7], 2);
        assert_eq!(batches(&order), [&[1, 3][..], &[2, 0], &[5, 4], &[6]]);
    }

    /// A plain implementation of the module's description, for rows in memory.
    fn reference(seed: u64, epoch: u64, lengths: &[u32], batch_rows: usize) -> Vec<Vec<u32>> {
        let mut random = Purpose::Order.stream(&[seed, epoch, 0]);
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
        fn the_order_matches_the_description(
            seed: u64,
            epoch in 0u64..9,
            lengths in prop::collection::vec(1u32..12, 0..900),
            batch_rows in 1usize..6,
        ) {
            let order = Order::of_epoch(shuffled(seed, epoch), &lengths, batch_rows);
            prop_assert_eq!(batches(&order), reference(seed, epoch, &lengths, batch_rows));
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
        fn carried_rows_do_not_depend_on_earlier_windows(
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

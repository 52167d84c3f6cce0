//! Random numbers that are the same on every machine and in every release, because checkpoints depend on them.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"). Its
//! state is 64 bits; in arithmetic modulo 2^64,
//!
//! ```text
//! mix(z):  z += 0x9e3779b97f4a7c15
//!          z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9
//!          z = (z ^ z >> 27) * 0x94d049bb133111eb
//!          return z ^ z >> 31
//! next:    returns mix(state), then adds 0x9e3779b97f4a7c15 to the state
//! ```
//!
//! A stream begins with the state that its purpose and key give: from 0, `state = mix(state ^ part)` for each part in
//! turn. So a draw depends on no draw of another stream, and a training that goes on in the middle of an epoch needs no
//! saved state. `tests/oracle/order.py` is the same in Python.

/// What a stream is for. Streams of different purposes are independent though their keys are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The order of rows and batches; the key is seed, epoch, window.
    Order = 1,
    /// The order of blocks; the key is seed, epoch.
    Blocks = 2,
    /// What PyTorch's dropout leaves out of a rank's rows; the key is seed, step, batch, rank.
    Dropout = 3,
    /// Which words the kernels leave out of a row; the key is what `Masks` drew, and the row's place in the batch.
    Words = 4,
    /// From which words next ones are told; the key is seed, step, batch.
    Candidates = 5,
    /// What the kernels' dropout leaves out of a batch; the key is seed, step, batch.
    Masks = 6,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of this purpose and key. A purpose has keys of one length.
    pub fn of(purpose: Purpose, key: &[u64]) -> Self {
        let state = key.iter().fold(mix(purpose as u64), |state, part| mix(state ^ part));
        Self { state }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let bits = mix(self.state);
        self.state = self.state.wrapping_add(STEP);
        bits
    }

    /// A number below `n`, which is not 0, each equally likely: the upper half of `bits × n`, drawn again where the
    /// lower half is less than 2^64 mod n (Lemire 2019, "Fast random integer generation in an interval").
    pub fn below(&mut self, n: u64) -> u64 {
        let refused = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            if product as u64 >= refused {
                return (product >> 64) as u64;
            }
        }
    }

    /// Brings items into a random order, each equally likely: from the last place down to the second, exchanges the
    /// item there with one of those up to it (Fisher and Yates, as Knuth has it).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(STEP);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_values() {
        let mut random = Random { state: 0 };
        let expected = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn a_stream_depends_on_purpose_and_on_each_part_of_its_key() {
        let first = |purpose, key: &[u64]| Random::of(purpose, key).bits();
        let here = first(Purpose::Order, &[7, 1, 0]);
        assert_eq!(here, first(Purpose::Order, &[7, 1, 0]));
        for other in [[8, 1, 0], [7, 2, 0], [7, 1, 1], [1, 7, 0]] {
            assert_ne!(here, first(Purpose::Order, &other));
        }
        assert_ne!(here, first(Purpose::Blocks, &[7, 1, 0]));
    }

    #[test]
    fn each_number_below_n_is_equally_likely() {
        let mut random = Random::of(Purpose::Order, &[1]);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[random.below(6) as usize] += 1;
        }
        // Five standard deviations of 91.
        assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 456), "{counts:?}");
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn a_draw_that_would_favour_some_numbers_is_refused() {
        // Of n = 3 · 2^62 a quarter of all draws is refused; without that, a third of the numbers would come twice as
        // often as the rest: those that leave no remainder modulo 3.
        let mut random = Random::of(Purpose::Order, &[2]);
        let n_drawn = 30_000;
        let favoured = (0..n_drawn).filter(|_| random.below(3 << 62).is_multiple_of(3)).count();
        assert!(favoured.abs_diff(n_drawn / 3) < 409, "{favoured}");
    }

    #[test]
    fn each_order_of_three_is_equally_likely() {
        let mut random = Random::of(Purpose::Order, &[3]);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|&n| n.abs_diff(10_000) < 456), "{counts:?}");
    }
}

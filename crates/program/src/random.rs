//! Random numbers that depend on a key only. They are identical on every machine and in every release, because
//! checkpoints depend on them.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"). Its
//! state has 64 bits. Arithmetic is modulo 2^64:
//!
//! ```text
//! mix(z):  z += 0x9e3779b97f4a7c15
//!          z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9
//!          z = (z ^ z >> 27) * 0x94d049bb133111eb
//!          return z ^ z >> 31
//! next:    returns mix(state), then adds 0x9e3779b97f4a7c15 to the state
//! ```
//!
//! The key determines the initial state of a stream: starting from 0, `state = mix(state ^ part)` for each part of the
//! key. The first part states the purpose of a stream, so that streams of different purposes are independent.
//! `tests/oracle/order.py` is the same generator in Python.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// 2^64 divided by the golden ratio, rounded to an odd number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of a key.
    pub fn of(key: &[u64]) -> Self {
        Self { state: key.iter().fold(0, |state, part| mix(state ^ part)) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let bits = mix(self.state);
        self.state = self.state.wrapping_add(STEP);
        bits
    }

    /// A uniform number from 0 to 1, without 1.
    #[inline]
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / 16_777_216.0
    }

    /// Returns a uniform number below `n`, which must not be 0: the upper half of `bits × n`, drawn again while the
    /// lower half is less than 2^64 mod n (Lemire 2019, "Fast random integer generation in an interval").
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            // The remainder is less than n, so most draws need no division.
            if product as u64 >= n || product as u64 >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// Shuffles items uniformly (Fisher and Yates, in Knuth's form): from the last index down to 1, swaps the item
    /// with a random one at the same or a lower index.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// SplitMix64's mixer.
#[inline]
pub fn mix(state: u64) -> u64 {
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
    fn a_stream_depends_on_every_part_of_the_key() {
        let first = |key: &[u64]| Random::of(key).bits();
        let here = first(&[1, 7, 1, 0]);
        assert_eq!(here, first(&[1, 7, 1, 0]));
        for other in [[1, 8, 1, 0], [1, 7, 2, 0], [1, 7, 1, 1], [1, 1, 7, 0], [2, 7, 1, 0]] {
            assert_ne!(here, first(&other));
        }
    }

    #[test]
    fn each_number_below_n_is_equally_likely() {
        let mut random = Random::of(&[1, 1]);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[random.below(6) as usize] += 1;
        }
        // Five standard deviations of 91.
        assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 456), "{counts:?}");
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn biased_draws_are_rejected() {
        // For n = 3 · 2^62, a quarter of all draws is rejected. Without rejection, multiples of 3 would be twice as
        // frequent as other numbers.
        let mut random = Random::of(&[1, 2]);
        let n_drawn = 30_000;
        let favoured = (0..n_drawn).filter(|_| random.below(3 << 62).is_multiple_of(3)).count();
        assert!(favoured.abs_diff(n_drawn / 3) < 409, "{favoured}");
    }

    #[test]
    fn each_permutation_of_three_is_equally_likely() {
        let mut random = Random::of(&[1, 3]);
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

//! Random numbers that depend on a key only, so that a resumed training draws the same ones.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood 2014).

/// 2^64 divided by the golden ratio, rounded to an odd number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

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

    /// Shuffles items (Fisher and Yates). A number below 2^32 is reduced by a product; the deviation from uniform is
    /// less than 2^-32.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = (u128::from(self.bits()) * (last as u128 + 1)) >> 64;
            items.swap(last, other as usize);
        }
    }
}

/// SplitMix64's mixer.
#[inline]
pub(crate) fn mix(state: u64) -> u64 {
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
    fn each_permutation_of_three_is_equally_likely() {
        let mut random = Random::of(&[3]);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        // Five standard deviations of 91.
        assert!(counts.len() == 6 && counts.values().all(|&n| n.abs_diff(10_000) < 456), "{counts:?}");
    }
}

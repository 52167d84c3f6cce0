//! Random numbers with Poisson distributions.

use std::collections::HashMap;

/// Maximum mean of a distribution with a table. With a larger mean, a normal distribution with the same mean and
/// variance is as good: the skewness is below 0.04.
const TABLE_MEAN_MAX: u64 = 1_024;

/// A stream of random bits: SplitMix64 (Steele, Lea and Flood 2014). The state is a counter.
pub(super) struct Stream(u64);

impl Stream {
    pub(super) fn of(seed: u64) -> Self {
        Self(mix(seed))
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform, above 0 and at most 1.
    fn fraction(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by the transform of Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.fraction().ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.fraction()).cos()
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Poisson distributions, one per count. Equal counts share a table.
pub(super) struct Draws {
    tables: Vec<Table>,
    /// The table of each count.
    of_count: Vec<u32>,
}

impl Draws {
    /// Distributions with these means.
    pub(super) fn of(means: &[u64]) -> Self {
        let mut places: HashMap<u64, u32> = HashMap::new();
        let mut tables = Vec::new();
        let of_count = means.iter().map(|&mean| {
            *places.entry(mean).or_insert_with(|| {
                tables.push(Table::of(mean));
                tables.len() as u32 - 1
            })
        });
        let of_count = of_count.collect();
        Self { tables, of_count }
    }

    /// Draws one number per count.
    pub(super) fn draw(&self, random: &mut Stream, numbers: &mut [u64]) {
        for (number, &table) in numbers.iter_mut().zip(&self.of_count) {
            *number = self.tables[table as usize].draw(random);
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "there are few tables, and most are exact")]
enum Table {
    /// Distribution function in units of 2^-32 from `first` on; the last value is 2^32.
    Exact {
        first: u64,
        cumulative: Vec<u64>,
        /// For each value of the upper 8 bits, the first index whose value can be above the bits.
        guide: [u32; 256],
    },
    Normal {
        mean: f64,
    },
}

impl Table {
    fn of(mean: u64) -> Self {
        if mean > TABLE_MEAN_MAX {
            return Self::Normal { mean: mean as f64 };
        }
        // Weights relative to that of the mode, which is the mean, until they are below 2^-40 of it.
        const WEIGHT_MIN: f64 = 1.0 / (1u64 << 40) as f64;
        let above = |from: u64| {
            let next = move |&(k, weight): &(u64, f64)| Some((k + 1, weight * mean as f64 / (k + 1) as f64));
            std::iter::successors(Some((from, 1.0)), next).take_while(|&(_, weight)| weight >= WEIGHT_MIN)
        };
        let below = |from: u64| {
            let next =
                move |&(k, weight): &(u64, f64)| Some((k.checked_sub(1)?, weight * k as f64 / mean as f64));
            std::iter::successors(Some((from, 1.0)), next).take_while(|&(_, weight)| weight >= WEIGHT_MIN)
        };
        let mut weights: Vec<(u64, f64)> = below(mean).skip(1).collect();
        weights.reverse();
        weights.extend(above(mean));
        let all: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let mut sum = 0.0;
        let mut cumulative: Vec<u64> = weights
            .iter()
            .map(|&(_, weight)| {
                sum += weight;
                (sum / all * (1u64 << 32) as f64).round() as u64
            })
            .collect();
        if let Some(last) = cumulative.last_mut() {
            *last = 1 << 32;
        }
        let guide = std::array::from_fn(|upper| {
            cumulative.partition_point(|&end| end <= (upper as u64) << 24) as u32
        });
        Self::Exact { first: weights[0].0, cumulative, guide }
    }

    fn draw(&self, random: &mut Stream) -> u64 {
        match self {
            Self::Exact { first, cumulative, guide } => {
                let bits = random.bits() >> 32;
                let mut at = guide[(bits >> 24) as usize] as usize;
                while cumulative[at] <= bits {
                    at += 1;
                }
                first + at as u64
            }
            Self::Normal { mean } => (mean + mean.sqrt() * random.normal()).round().max(0.0) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_mean_and_the_variance_of_their_distribution() {
        const N: usize = 200_000;
        for mean in [1, 2, 30, 1_024, 1_025, 1_000_000] {
            let draws = Draws::of(&[mean]);
            let mut random = Stream::of(1);
            let mut numbers = vec![[0]; N];
            numbers.iter_mut().for_each(|number| draws.draw(&mut random, number));
            let expected = mean as f64;
            let found = numbers.iter().map(|[n]| *n as f64).sum::<f64>() / N as f64;
            let variance = numbers.iter().map(|[n]| (*n as f64 - found).powi(2)).sum::<f64>() / N as f64;
            // Five standard deviations of the mean, and of the variance of a normal distribution.
            assert!((found - expected).abs() < 5.0 * (expected / N as f64).sqrt(), "{mean}: {found}");
            let limit = 5.0 * expected * ((2.0 + 1.0 / expected) / N as f64).sqrt();
            assert!((variance - expected).abs() < limit, "{mean}: {variance}");
        }
        let mut number = [7];
        Draws::of(&[0]).draw(&mut Stream::of(1), &mut number);
        assert_eq!(number, [0]);
    }

    #[test]
    fn small_numbers_are_as_frequent_as_their_probability() {
        const N: u32 = 1_000_000;
        let draws = Draws::of(&[1]);
        let mut random = Stream::of(2);
        let mut found = [0u32; 4];
        for _ in 0..N {
            let mut number = [0];
            draws.draw(&mut random, &mut number);
            if let Some(n) = found.get_mut(number[0] as usize) {
                *n += 1;
            }
        }
        for (n, factorial) in found.into_iter().zip([1.0, 1.0, 2.0, 6.0]) {
            let expected = (-1.0f64).exp() / factorial;
            assert!((f64::from(n) / f64::from(N) - expected).abs() < 0.0025, "{n} {expected}");
        }
    }
}

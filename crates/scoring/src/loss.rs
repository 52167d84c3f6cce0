//! Sums losses as integers, so that the order of rows and their distribution over ranks do not change the sum.

use std::ops::AddAssign;

/// Loss units per 1.
pub(crate) const LOSS_UNITS: f64 = (1u64 << 32) as f64;

/// Upper limit of a row's loss, so that the sum of 2^32 rows does not overflow.
pub(crate) const LOSS_MAX: f64 = (1u64 << 60) as f64;

/// Number of limbs of a sum; each but the last has 32 bits.
pub(crate) const LOSS_LIMBS: usize = 4;

/// Sum in units of 2^-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossSum(pub(crate) i128);

impl AddAssign<f64> for LossSum {
    /// Adds a finite loss, rounded to a multiple of 2^-32, ties to even.
    fn add_assign(&mut self, loss: f64) {
        let units = loss.clamp(-LOSS_MAX, LOSS_MAX) * LOSS_UNITS;
        self.0 += units.round_ties_even() as i128;
    }
}

impl LossSum {
    /// The sum in limbs of 32 bits. Ranks add their limbs one by one, which cannot overflow.
    pub(crate) fn limbs(self) -> [i64; LOSS_LIMBS] {
        let mut limbs = [0; LOSS_LIMBS];
        for (at, limb) in limbs.iter_mut().enumerate() {
            let rest = self.0 >> (32 * at);
            *limb = if at + 1 < LOSS_LIMBS { i64::from(rest as u32) } else { rest as i64 };
        }
        limbs
    }

    /// The sum of several ranks, from the sums of their limbs.
    pub(crate) fn of_limbs(limbs: &[i64]) -> Self {
        Self(limbs.iter().rev().fold(0, |sum, &limb| (sum << 32) + i128::from(limb)))
    }

    /// The mean over this number of rows.
    pub(crate) fn mean(self, rows: u64) -> f64 {
        self.0 as f64 / LOSS_UNITS / rows as f64
    }
}

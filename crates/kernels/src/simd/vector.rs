//! Vectors of floats that a processor computes with in one instruction: 16 with AVX-512, 8 with AVX2, otherwise 4.
//!
//! Only [`crate::simd::on_processor!`] names the vector types, and code that is generic over [`Vector`] is inlined there into one
//! function per instruction set. This ensures that each method compiles to an instruction that the processor supports. The
//! order of sums does not depend on the number of lanes. Results differ between processors only in rounding, because a
//! fused multiply-add rounds once.

use crate::simd::table::Row;

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use plain::Plain;
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

/// Maximum number of lanes.
pub const LANES_MAX: usize = 16;

/// A vector of floats with elementwise operations.
pub trait Vector: Sealed + Copy {
    /// Number of floats: a divisor of [`LANES_MAX`].
    const LANES: usize;
    /// Number of rows whose sums, four vectors each, fit into the registers.
    const ROWS: usize;

    /// Loads the first values of a slice, which must have at least `LANES`.
    fn load(from: &[f32]) -> Self;
    /// Stores into the first elements of a slice, which must have at least `LANES`.
    fn store(self, to: &mut [f32]);
    /// Loads the values of a row from index `at` on. Another thread may store them at the same time.
    ///
    /// # Panics
    /// If they exceed the row.
    fn load_row(row: Row<'_>, at: usize) -> Self;
    /// Stores into a row from index `at` on. Another thread may load or store the values at the same time.
    ///
    /// # Panics
    /// If they exceed the row.
    fn store_row(self, row: Row<'_>, at: usize);
    /// A vector of equal values.
    fn splat(number: f32) -> Self;
    /// self + other
    fn add(self, other: Self) -> Self;
    /// self - other
    fn sub(self, other: Self) -> Self;
    /// self · other
    fn mul(self, other: Self) -> Self;
    /// self / other
    fn div(self, other: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// self · by + plus
    fn fma(self, by: Self, plus: Self) -> Self;
    /// The minimum. Returns `other` if either value is NaN.
    fn min(self, other: Self) -> Self;
    /// Rounds to the nearest integer, ties to even.
    fn round(self) -> Self;
    /// self · 2^power, for an integer power up to 127 and self from 1/2 to 2. A result below the normal floats is
    /// close to 0.
    fn scale(self, power: Self) -> Self;
    /// 1 / self with an error of at most two units in the last place, for values from 1 to 2^126.
    fn reciprocal(self) -> Self;
    /// The sum of all lanes, in pairs: lane 0 and the lane in the middle first.
    fn sum(self) -> f32;

    /// Loads up to `LANES` values; missing ones are 0.
    #[inline(always)]
    fn load_part(from: &[f32]) -> Self {
        if from.len() >= Self::LANES {
            return Self::load(from);
        }
        let mut lanes = [0.0; LANES_MAX];
        lanes[..from.len()].copy_from_slice(from);
        Self::load(&lanes)
    }

    /// Stores the first values, at most as many as the slice has elements.
    #[inline(always)]
    fn store_part(self, to: &mut [f32]) {
        if to.len() >= Self::LANES {
            return self.store(to);
        }
        let mut lanes = [0.0; LANES_MAX];
        self.store(&mut lanes);
        to.copy_from_slice(&lanes[..to.len()]);
    }
}

/// Prevents implementations in other crates.
pub trait Sealed {}

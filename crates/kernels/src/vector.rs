//! Numbers that a processor computes with at once: 16 with AVX-512, 8 with AVX2, 4 anywhere.
//!
//! Everything generic over [`Vector`] is inlined into one function for each kind of processor ([`crate::processor`]),
//! which alone may name the type for it: that makes calls into instructions, and safe ones. Numbers are added in an order
//! that does not depend on the lanes; what differs between processors is rounding, as a fused multiply-add rounds once.

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use plain::Plain;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// The most lanes that a vector has.
pub(crate) const LANES_MAX: usize = 16;

/// So many floats, added and multiplied lane by lane.
pub(crate) trait Vector: Copy {
    /// Numbers in it.
    const LANES: usize;
    /// Rows whose sums, four vectors each, fit into registers.
    const ROWS: usize;

    /// The first numbers of a slice, which has as many as there are lanes, or more.
    fn load(from: &[f32]) -> Self;
    /// Into the first places of a slice, which has as many as there are lanes, or more.
    fn store(self, to: &mut [f32]);
    fn splat(number: f32) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// self · by + plus
    fn fma(self, by: Self, plus: Self) -> Self;
    /// The other where one of both is no number.
    fn min(self, other: Self) -> Self;
    /// To the nearest whole number, of two to the even one.
    fn round(self) -> Self;
    /// self · 2^power, of whole numbers up to 127, for self from 1/2 to 2. What is below the normal floats is next to 0.
    fn scale(self, power: Self) -> Self;
    /// 1 / self, to within two units in the last place, of numbers from 1 to 2^126.
    fn reciprocal(self) -> Self;

    /// What a slice has, up to all lanes; the others are 0.
    #[inline(always)]
    fn load_part(from: &[f32]) -> Self {
        if from.len() >= Self::LANES {
            return Self::load(from);
        }
        let mut lanes = [0.0; LANES_MAX];
        lanes[..from.len()].copy_from_slice(from);
        Self::load(&lanes)
    }

    /// As many of the lanes as a slice has places.
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

//! Portable vectors, which the compiler turns into instructions of any processor.

use super::{Sealed, Vector};
use crate::simd::table::Row;

/// Four floats.
#[derive(Clone, Copy)]
pub struct Plain([f32; 4]);

impl Plain {
    #[inline(always)]
    fn map(self, to: impl Fn(f32) -> f32) -> Self {
        Self(self.0.map(to))
    }

    #[inline(always)]
    fn zip(self, other: Self, with: impl Fn(f32, f32) -> f32) -> Self {
        let mut lanes = self.0;
        for (lane, other) in lanes.iter_mut().zip(other.0) {
            *lane = with(*lane, other);
        }
        Self(lanes)
    }
}

impl Sealed for Plain {}

impl Vector for Plain {
    const LANES: usize = 4;
    const ROWS: usize = 2;

    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        Self([from[0], from[1], from[2], from[3]])
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        to[..4].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn load_row(row: Row<'_>, at: usize) -> Self {
        Self([0, 1, 2, 3].map(|lane| row.get(at + lane)))
    }
    #[inline(always)]
    fn store_row(self, row: Row<'_>, at: usize) {
        for (lane, value) in (at..).zip(self.0) {
            row.set(lane, value);
        }
    }
    #[inline(always)]
    fn splat(number: f32) -> Self {
        Self([number; 4])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |one, other| one + other)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |one, other| one - other)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |one, other| one * other)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |one, other| one / other)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.map(f32::sqrt)
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        // Rounds twice. A fused multiply-add would be a function call per value on a processor without FMA.
        self.mul(by).add(plus)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |one, other| if one < other { one } else { other })
    }
    #[inline(always)]
    fn round(self) -> Self {
        // Adding 1.5 · 2^23 leaves no bits for the fraction.
        const NO_FRACTION: f32 = 12_582_912.0;
        self.map(|number| (number + NO_FRACTION) - NO_FRACTION)
    }
    #[inline(always)]
    fn scale(self, power: Self) -> Self {
        // The exponent of a float is stored with an offset of 127, above 23 bits of fraction.
        let factor = |power: f32| f32::from_bits(((power.max(-126.0) as i32 + 127) as u32) << 23);
        self.mul(power.map(factor))
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.map(|number| 1.0 / number)
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let [a, b, c, d] = self.0;
        (a + c) + (b + d)
    }
}

//! Vectors of x86-64 processors.
//!
//! SAFETY of every call in this file: the processor supports the instruction. Only [`crate::simd::on_processor!`] names these
//! types, and an instruction set is listed only after a check of the processor.
//!
//! Rows of a table are loaded and stored while other threads store them. The language allows this of atomics alone, which have
//! no vectors. The accesses are volatile, so that the compiler makes each exactly once, and draws no conclusion from it: it can
//! neither read a value twice nor keep another one in its place. The processor stores aligned words at once, so a float that is
//! read is one that was stored.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Sealed, Vector};
use crate::simd::table::Row;

/// 16 floats, for AVX-512.
#[derive(Clone, Copy)]
pub struct Avx512(__m512);

impl Sealed for Avx512 {}

impl Vector for Avx512 {
    const LANES: usize = 16;
    const ROWS: usize = 6;

    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        let from = &from[..Self::LANES];
        // SAFETY: the slice has as many values as are read.
        Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let to = &mut to[..Self::LANES];
        // SAFETY: the slice has as many elements as are written.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn load_row(row: Row<'_>, at: usize) -> Self {
        // SAFETY: the values are within the row.
        Self(unsafe { row.vector::<__m512>(at).read_volatile() })
    }
    #[inline(always)]
    fn store_row(self, row: Row<'_>, at: usize) {
        // SAFETY: the values are within the row.
        unsafe { row.vector::<__m512>(at).write_volatile(self.0) }
    }
    #[inline(always)]
    fn splat(number: f32) -> Self {
        Self(unsafe { _mm512_set1_ps(number) })
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(unsafe { _mm512_div_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        Self(unsafe { _mm512_fmadd_ps(self.0, by.0, plus.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        Self(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn scale(self, power: Self) -> Self {
        Self(unsafe { _mm512_scalef_ps(self.0, power.0) })
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        // The instruction gives 14 correct bits; one Newton step doubles their number.
        unsafe {
            let rough = _mm512_rcp14_ps(self.0);
            let error = _mm512_fnmadd_ps(self.0, rough, _mm512_set1_ps(1.0));
            Self(_mm512_fmadd_ps(rough, error, rough))
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0)));
            Avx2(_mm256_add_ps(_mm512_castps512_ps256(self.0), upper)).sum()
        }
    }

    #[inline(always)]
    fn load_part(from: &[f32]) -> Self {
        // SAFETY: only lanes within the slice are read.
        Self(unsafe { _mm512_maskz_loadu_ps(first_lanes(from.len()), from.as_ptr()) })
    }

    #[inline(always)]
    fn store_part(self, to: &mut [f32]) {
        // SAFETY: only lanes within the slice are written.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first_lanes(to.len()), self.0) }
    }
}

/// A mask of the first `n` lanes.
#[inline(always)]
fn first_lanes(n: usize) -> u16 {
    ((1u32 << n.min(16)) - 1) as u16
}

/// 8 floats, for AVX2 with FMA.
#[derive(Clone, Copy)]
pub struct Avx2(__m256);

impl Sealed for Avx2 {}

impl Vector for Avx2 {
    const LANES: usize = 8;
    const ROWS: usize = 3;

    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        let from = &from[..Self::LANES];
        // SAFETY: the slice has as many values as are read.
        Self(unsafe { _mm256_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let to = &mut to[..Self::LANES];
        // SAFETY: the slice has as many elements as are written.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn load_row(row: Row<'_>, at: usize) -> Self {
        // SAFETY: the values are within the row.
        Self(unsafe { row.vector::<__m256>(at).read_volatile() })
    }
    #[inline(always)]
    fn store_row(self, row: Row<'_>, at: usize) {
        // SAFETY: the values are within the row.
        unsafe { row.vector::<__m256>(at).write_volatile(self.0) }
    }
    #[inline(always)]
    fn splat(number: f32) -> Self {
        Self(unsafe { _mm256_set1_ps(number) })
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { _mm256_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(unsafe { _mm256_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(unsafe { _mm256_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(unsafe { _mm256_div_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm256_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        Self(unsafe { _mm256_fmadd_ps(self.0, by.0, plus.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(unsafe { _mm256_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        Self(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn scale(self, power: Self) -> Self {
        // The exponent of a float is stored with an offset of 127, above 23 bits of fraction.
        unsafe {
            let power = _mm256_max_ps(_mm256_set1_ps(-126.0), power.0);
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(127));
            Self(_mm256_mul_ps(self.0, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))))
        }
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self(unsafe { _mm256_div_ps(_mm256_set1_ps(1.0), self.0) })
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}

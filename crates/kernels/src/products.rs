//! The two matrix multiplications that take most of the time. They process few rows at a time, so that all
//! sums stay in registers.
//!
//! The left operand is read one value at a time, the right operand one vector at a time. Each sum is accumulated
//! in index order.
#![allow(unsafe_code)]

use crate::simd::Vector;

/// sums\[r\]\[n\] += Σ_k rows\[r\]\[k\] · weights\[k\]\[n\], with weights `[K, N · LANES]` and K values per row.
#[inline(always)]
pub(crate) fn multiply<V: Vector, const R: usize, const N: usize>(
    sums: &mut [[V; N]; R],
    rows: &[&[f32]; R],
    weights: &[f32],
) {
    let length = weights.len() / (N * V::LANES);
    for row in rows {
        assert!(row.len() >= length, "a row is shorter than the weights");
    }
    let mut own = *sums;
    for (k, weights) in weights.chunks_exact(N * V::LANES).enumerate() {
        let mut vectors = [V::splat(0.0); N];
        for n in 0..N {
            vectors[n] = V::load(&weights[n * V::LANES..]);
        }
        for r in 0..R {
            // SAFETY: k < `length` <= the row's length, as asserted above.
            let number = V::splat(unsafe { *rows[r].get_unchecked(k) });
            for n in 0..N {
                own[r][n] = number.fma(vectors[n], own[r][n]);
            }
        }
    }
    *sums = own;
}

/// Some columns of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// Starts at the first column of the first row.
    pub(crate) numbers: &'a [f32],
    /// Distance between the starts of two rows.
    pub(crate) stride: usize,
}

impl<'a> Columns<'a> {
    /// Starts at this row.
    #[inline(always)]
    pub(crate) fn from(self, row: usize) -> Self {
        Self { numbers: &self.numbers[row * self.stride..], ..self }
    }

    /// Starts at this column.
    #[inline(always)]
    pub(crate) fn column(self, column: usize) -> Self {
        Self { numbers: &self.numbers[column..], ..self }
    }
}

/// sums\[r\]\[n\] += Σ_k left\[k\]\[r\] · right\[k\]\[n\], over the first `length` rows of both sides.
#[inline(always)]
pub(crate) fn outer<V: Vector, const R: usize, const N: usize>(
    sums: &mut [[V; N]; R],
    left: Columns<'_>,
    right: Columns<'_>,
    length: usize,
) {
    if length == 0 {
        return;
    }
    assert!(left.numbers.len() >= (length - 1) * left.stride + R, "the left side has too few rows");
    assert!(
        right.numbers.len() >= (length - 1) * right.stride + N * V::LANES,
        "the right side has too few rows"
    );
    let mut own = *sums;
    for k in 0..length {
        let mut vectors = [V::splat(0.0); N];
        let begin = k * right.stride;
        // SAFETY: the assertion above covers the last row, and so all rows.
        let numbers = unsafe { right.numbers.get_unchecked(begin..begin + N * V::LANES) };
        for n in 0..N {
            vectors[n] = V::load(&numbers[n * V::LANES..]);
        }
        let begin = k * left.stride;
        // SAFETY: the assertion above covers the last row, and so all rows.
        let numbers = unsafe { left.numbers.get_unchecked(begin..begin + R) };
        for r in 0..R {
            let number = V::splat(numbers[r]);
            for n in 0..N {
                own[r][n] = number.fma(vectors[n], own[r][n]);
            }
        }
    }
    *sums = own;
}

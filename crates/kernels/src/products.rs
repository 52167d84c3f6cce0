//! The two products that most of the time goes into: few rows, so that all sums stay in registers.
//!
//! Rows are read a number at a time, the other side a vector at a time, and each sum is taken in the order of what is
//! summed over.
#![allow(unsafe_code)]

use crate::vector::Vector;

/// sums\[r\]\[n\] += Σ_k rows\[r\]\[k\] · weights\[k\]\[n\], of weights `[K, N · LANES]`, K the length of each row.
#[inline(always)]
pub(crate) fn multiply<V: Vector, const R: usize, const N: usize>(
    sums: &mut [[V; N]; R],
    rows: &[&[f32]; R],
    weights: &[f32],
) {
    let length = weights.len() / (N * V::LANES);
    for row in rows {
        assert!(row.len() >= length, "a row is as long as there are weights");
    }
    let mut own = *sums;
    for (k, weights) in weights.chunks_exact(N * V::LANES).enumerate() {
        let mut vectors = [V::splat(0.0); N];
        for n in 0..N {
            vectors[n] = V::load(&weights[n * V::LANES..]);
        }
        for r in 0..R {
            // SAFETY: k is less than `length`, and so than the row's length.
            let number = V::splat(unsafe { *rows[r].get_unchecked(k) });
            for n in 0..N {
                own[r][n] = number.fma(vectors[n], own[r][n]);
            }
        }
    }
    *sums = own;
}

/// Rows of numbers one behind the other, of which some columns are meant.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// From the first column of the first row on.
    pub(crate) numbers: &'a [f32],
    /// From a row to the next.
    pub(crate) stride: usize,
}

impl<'a> Columns<'a> {
    /// From this row on.
    #[inline(always)]
    pub(crate) fn from(self, row: usize) -> Self {
        Self { numbers: &self.numbers[row * self.stride..], ..self }
    }

    /// From this column on.
    #[inline(always)]
    pub(crate) fn column(self, column: usize) -> Self {
        Self { numbers: &self.numbers[column..], ..self }
    }
}

/// sums\[r\]\[n\] += Σ_k left\[k\]\[r\] · right\[k\]\[n\], over the first `length` rows of both.
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
    assert!(left.numbers.len() >= (length - 1) * left.stride + R, "all rows of the left side are there");
    assert!(
        right.numbers.len() >= (length - 1) * right.stride + N * V::LANES,
        "all rows of the right side are there"
    );
    let mut own = *sums;
    for k in 0..length {
        let mut vectors = [V::splat(0.0); N];
        let begin = k * right.stride;
        // SAFETY: asserted above, for the last row.
        let numbers = unsafe { right.numbers.get_unchecked(begin..begin + N * V::LANES) };
        for n in 0..N {
            vectors[n] = V::load(&numbers[n * V::LANES..]);
        }
        let begin = k * left.stride;
        // SAFETY: asserted above, for the last row.
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

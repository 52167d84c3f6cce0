//! Multiplies matrices of any size, in blocks that [`crate::products`] keeps in registers.
//!
//! H: hidden size; L: lanes. Weights and gradient sums have the layout of [`crate::packing`].

use std::ops::Range;

use crate::simd::Vector;

use crate::packing::PANEL;
use crate::products::{Columns, multiply, outer};

/// Number of rows that are multiplied together. Their values are read several times, so they must stay in the
/// cache.
const ROWS_TOGETHER: usize = 64;

/// Turns a number of rows or vectors into a constant for the compiler.
macro_rules! with_number {
    ($found:expr, $name:ident in $($number:literal)* => $do:expr) => {
        match $found {
            $($number => {
                const $name: usize = $number;
                $do
            })*
            _ => unreachable!("no kernel for this number of rows or vectors"),
        }
    };
}
pub(crate) use with_number;

/// Sets `numbers` to `length` zeros.
pub(crate) fn zeros(numbers: &mut Vec<f32>, length: usize) {
    numbers.clear();
    numbers.resize(length, 0.0);
}

/// The rows at these indices, each `length` long.
#[inline(always)]
pub(crate) fn rows_at<'a, const R: usize>(
    numbers: &'a [f32],
    places: &[usize; R],
    length: usize,
) -> [&'a [f32]; R] {
    let mut rows = [&numbers[..0]; R];
    for r in 0..R {
        rows[r] = &numbers[places[r] * length..][..length];
    }
    rows
}

/// Multiplies R rows of interleaved gate gradients by weights of [`crate::packing::backward`]. Writes the first
/// `columns` results of each row to `out`, whose rows are `stride` apart.
#[inline(always)]
pub(crate) fn back_through<V: Vector, const R: usize>(
    gates: &[&[f32]; R],
    weights: &[f32],
    columns: usize,
    out: &mut [f32],
    stride: usize,
) {
    let n_gates = gates[0].len();
    let mut rest = weights;
    let mut first = 0;
    while first < columns {
        let n_vectors = (columns - first).div_ceil(V::LANES).min(PANEL);
        let (panel, others) = rest.split_at(n_gates * n_vectors * V::LANES);
        rest = others;
        with_number!(n_vectors, N in 1 2 3 4 => {
            let mut sums = [[V::splat(0.0); N]; R];
            multiply(&mut sums, gates, panel);
            for r in 0..R {
                for (n, sum) in sums[r].into_iter().enumerate() {
                    let column = first + n * V::LANES;
                    let end = columns.min(column + V::LANES);
                    sum.store_part(&mut out[r * stride + column..r * stride + end]);
                }
            }
        });
        first += PANEL * V::LANES;
    }
}

/// Adds the outer products of `n` rows to packed gradients, `[H / L, n_columns, 4 L]`. Each row of `left` has one
/// value per column of `columns`. `right` contains the interleaved gate gradients.
#[inline(always)]
pub(crate) fn add_products<V: Vector>(
    sums: &mut [f32],
    left: Columns<'_>,
    right: Columns<'_>,
    n: usize,
    columns: Range<usize>,
    n_columns: usize,
) {
    for first in (0..n).step_by(ROWS_TOGETHER) {
        let n = ROWS_TOGETHER.min(n - first);
        add_together::<V>(sums, left.from(first), right.from(first), n, columns.clone(), n_columns);
    }
}

/// Does what [`add_products`] does, for at most [`ROWS_TOGETHER`] rows.
#[inline(always)]
fn add_together<V: Vector>(
    sums: &mut [f32],
    left: Columns<'_>,
    right: Columns<'_>,
    n: usize,
    columns: Range<usize>,
    n_columns: usize,
) {
    let width = 4 * V::LANES;
    for (block, sums) in sums.chunks_exact_mut(n_columns * width).enumerate() {
        let gates = right.column(block * width);
        for (group, sums) in
            sums[columns.start * width..columns.end * width].chunks_mut(V::ROWS * width).enumerate()
        {
            let left = left.column(group * V::ROWS);
            with_number!(sums.len() / width, R in 1 2 3 4 5 6 => {
                let mut own = [[V::splat(0.0); 4]; R];
                for (own, sums) in own.iter_mut().zip(sums.chunks_exact(width)) {
                    for n in 0..4 {
                        own[n] = V::load(&sums[n * V::LANES..]);
                    }
                }
                outer(&mut own, left, gates, n);
                for (own, sums) in own.iter().zip(sums.chunks_exact_mut(width)) {
                    for n in 0..4 {
                        own[n].store(&mut sums[n * V::LANES..]);
                    }
                }
            });
        }
    }
}

/// Adds rows, each as long as `sums`.
#[inline(always)]
pub(crate) fn add_rows<V: Vector>(sums: &mut [f32], rows: &[f32]) {
    for row in rows.chunks_exact(sums.len()) {
        add_row::<V>(sums, row);
    }
}

/// Adds one row, as long as `sums`: a multiple of L.
#[inline(always)]
pub(crate) fn add_row<V: Vector>(sums: &mut [f32], row: &[f32]) {
    for (sum, number) in sums.chunks_exact_mut(V::LANES).zip(row.chunks_exact(V::LANES)) {
        V::load(sum).add(V::load(number)).store(sum);
    }
}

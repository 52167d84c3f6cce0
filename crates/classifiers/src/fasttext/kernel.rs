//! Sums and updates of rows, generic over the vectors of a processor.
//!
//! The order of sums does not depend on the number of lanes. Results differ between processors only in rounding,
//! because a fused multiply-add rounds once.

use kernels::simd::{LINE, Table, Vector, on_processor};

/// Number of rows that are loaded ahead.
const AHEAD: usize = 64;
/// Maximum number of vectors per cache line.
const VECTORS: usize = 4;

/// One step of an optimizer. `gradient` is that of the loss; `l2` · weight is added to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// w -= rate · g
    Sgd { rate: f32, l2: f32 },
    /// G += g², w -= rate · g / (√G + ε); Duchi et al. 2011.
    Adagrad { rate: f32, l2: f32, epsilon: f32 },
    /// m += (1 - β₁)(g - m), v += (1 - β₂)(g² - v), w -= rate / (1 - β₁^t) · m / (√v / √(1 - β₂^t) + ε); Kingma & Ba
    /// 2015. Lazy: `m` and `v` of a row change only in steps whose text has the row; t counts all steps.
    Adam { rate: f32, l2: f32, beta_1: f32, beta_2: f32, epsilon: f32, root: f32 },
}

/// The sum of rows, divided by `n_rows`. `mean` has the stride of the table.
#[inline(always)]
fn mean_of_rows<V: Vector>(table: &Table, rows: &[u32], n_rows: usize, mean: &mut [f32]) {
    let lines = table.stride() / LINE;
    let mut line = 0;
    while lines - line >= 4 {
        sum_lines::<V, 4>(table, rows, line, mean);
        line += 4;
    }
    if lines - line >= 2 {
        sum_lines::<V, 2>(table, rows, line, mean);
        line += 2;
    }
    if lines > line {
        sum_lines::<V, 1>(table, rows, line, mean);
    }
    let factor = V::splat(1.0 / n_rows.max(1) as f32);
    for mean in mean.chunks_exact_mut(V::LANES) {
        V::load(mean).mul(factor).store(mean);
    }
}

/// Sums `LINES` lines of rows from `line` on. Four sums per vector hide the latency of additions.
#[inline(always)]
fn sum_lines<V: Vector, const LINES: usize>(table: &Table, rows: &[u32], line: usize, sum: &mut [f32]) {
    let n_vectors = LINE / V::LANES;
    let n_sums = 4 / LINES;
    let mut sums = [[V::splat(0.0); VECTORS]; 4];
    // Loops, not closures: a closure would be compiled without the instructions of the processor.
    let mut chunks = rows.chunks_exact(n_sums);
    for (from, together) in (AHEAD..).step_by(n_sums).zip(&mut chunks) {
        if line == 0 && from + n_sums <= rows.len() {
            for &ahead in &rows[from..from + n_sums] {
                table.prefetch(ahead);
            }
        }
        for first in 0..n_sums {
            let row = table.row(together[first], 0);
            for l in 0..LINES {
                for (v, sum) in sums[first * LINES + l].iter_mut().enumerate().take(n_vectors) {
                    *sum = sum.add(V::load_row(row, (line + l) * LINE + v * V::LANES));
                }
            }
        }
    }
    for &row in chunks.remainder() {
        let row = table.row(row, 0);
        for (l, sums) in sums.iter_mut().enumerate().take(LINES) {
            for (v, sum) in sums.iter_mut().enumerate().take(n_vectors) {
                *sum = sum.add(V::load_row(row, (line + l) * LINE + v * V::LANES));
            }
        }
    }
    for l in 0..LINES {
        for v in 0..n_vectors {
            let mut total = sums[l][v];
            for first in 1..n_sums {
                total = total.add(sums[first * LINES + l][v]);
            }
            total.store(&mut sum[(line + l) * LINE + v * V::LANES..]);
        }
    }
}

/// The product of a row and a vector.
#[inline(always)]
fn dot<V: Vector>(table: &Table, row: u32, vector: &[f32]) -> f32 {
    let row = table.row(row, 0);
    let n_vectors = LINE / V::LANES;
    let mut sums = [V::splat(0.0); VECTORS];
    for line in (0..table.stride()).step_by(LINE) {
        for (v, sum) in sums.iter_mut().enumerate().take(n_vectors) {
            let at = line + v * V::LANES;
            *sum = V::load_row(row, at).fma(V::load(&vector[at..]), *sum);
        }
    }
    let mut lanes = [0.0; LINE];
    for (v, sum) in sums.iter().enumerate().take(n_vectors) {
        sum.store(&mut lanes[v * V::LANES..]);
    }
    let mut half = LINE / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Adds a row times `by` to a sum.
#[inline(always)]
fn add_scaled<V: Vector>(table: &Table, row: u32, by: f32, sum: &mut [f32]) {
    let row = table.row(row, 0);
    let by = V::splat(by);
    for at in (0..table.stride()).step_by(V::LANES) {
        let to = &mut sum[at..];
        V::load_row(row, at).fma(by, V::load(to)).store(to);
    }
}

/// Adds a vector to each row, and loads the rows of the next text.
#[inline(always)]
fn add_to_rows<V: Vector>(table: &Table, rows: &[u32], gradient: &[f32], next: &[u32]) {
    for &row in next.iter().take(AHEAD) {
        table.prefetch(row);
    }
    if table.stride() == LINE {
        let n_vectors = LINE / V::LANES;
        let mut gradients = [V::splat(0.0); VECTORS];
        for (v, vector) in gradients.iter_mut().enumerate().take(n_vectors) {
            *vector = V::load(&gradient[v * V::LANES..]);
        }
        for (at, &row) in rows.iter().enumerate() {
            if let Some(&ahead) = next.get(at + AHEAD) {
                table.prefetch(ahead);
            }
            let row = table.row(row, 0);
            for (v, &vector) in gradients.iter().enumerate().take(n_vectors) {
                V::load_row(row, v * V::LANES).add(vector).store_row(row, v * V::LANES);
            }
        }
        return;
    }
    for &row in rows {
        let row = table.row(row, 0);
        for at in (0..table.stride()).step_by(V::LANES) {
            V::load_row(row, at).add(V::load(&gradient[at..])).store_row(row, at);
        }
    }
}

/// Updates a row with the gradient `by` · `gradient`.
#[inline(always)]
fn update_row<V: Vector>(table: &Table, row: u32, gradient: &[f32], by: f32, rule: &Rule) {
    let weights = table.row(row, 0);
    let by = V::splat(by);
    for at in (0..table.stride()).step_by(V::LANES) {
        let weight = V::load_row(weights, at);
        let gradient = V::load(&gradient[at..]).mul(by);
        let new = match *rule {
            Rule::Sgd { rate, l2 } => {
                let gradient = weight.fma(V::splat(l2), gradient);
                gradient.fma(V::splat(-rate), weight)
            }
            Rule::Adagrad { rate, l2, epsilon } => {
                let gradient = weight.fma(V::splat(l2), gradient);
                let squares = table.row(row, 1);
                let square = gradient.fma(gradient, V::load_row(squares, at));
                square.store_row(squares, at);
                let divisor = square.sqrt().add(V::splat(epsilon));
                gradient.mul(V::splat(-rate)).div(divisor).add(weight)
            }
            Rule::Adam { rate, l2, beta_1, beta_2, epsilon, root } => {
                let gradient = weight.fma(V::splat(l2), gradient);
                let (means, squares) = (table.row(row, 1), table.row(row, 2));
                let mean = V::load_row(means, at).mul(V::splat(beta_1));
                let mean = gradient.fma(V::splat(1.0 - beta_1), mean);
                let square = V::load_row(squares, at).mul(V::splat(beta_2));
                let square = gradient.mul(gradient).fma(V::splat(1.0 - beta_2), square);
                mean.store_row(means, at);
                square.store_row(squares, at);
                let divisor = square.sqrt().div(V::splat(root)).add(V::splat(epsilon));
                mean.mul(V::splat(-rate)).div(divisor).add(weight)
            }
        };
        new.store_row(weights, at);
    }
}

/// Draws the first weights of a row, uniform from -1/dim to 1/dim as in fastText. They depend on the key only.
#[inline(always)]
fn draw<V: Vector>(table: &Table, row: u32, key: u64) {
    let (low, high) = (key as u32, (key >> 32) as u32);
    let scale = 1.0 / (table.dim() as f32 * 8_388_608.0);
    let to = table.row(row, 0);
    for line in (0..table.stride()).step_by(LINE) {
        let mut values = [0.0; LINE];
        for (lane, value) in values.iter_mut().enumerate() {
            // A finalizer of 32 bits mixes the position into the key of the row.
            let mut bits = low.wrapping_add(((line + lane) as u32).wrapping_mul(0x9e37_79b9));
            bits = (bits ^ bits >> 16).wrapping_mul(0x7feb_352d);
            bits = (bits ^ bits >> 15).wrapping_mul(0x846c_a68b) ^ high;
            bits ^= bits >> 16;
            let is_padding = line + lane >= table.dim();
            *value = if is_padding { 0.0 } else { ((bits >> 8) as i32 - (1 << 23)) as f32 * scale };
        }
        for at in (0..LINE).step_by(V::LANES) {
            V::load(&values[at..]).store_row(to, line + at);
        }
    }
}

on_processor! {
    pub(crate) fn mean_on(table: &Table, rows: &[u32], n_rows: usize, mean: &mut [f32]) = mean_of_rows;
    pub(crate) fn dot_on(table: &Table, row: u32, vector: &[f32]) -> f32 = dot;
    pub(crate) fn add_scaled_on(table: &Table, row: u32, by: f32, sum: &mut [f32]) = add_scaled;
    pub(crate) fn add_to_rows_on(table: &Table, rows: &[u32], gradient: &[f32], next: &[u32]) = add_to_rows;
    pub(crate) fn update_row_on(table: &Table, row: u32, gradient: &[f32], by: f32, rule: &Rule) = update_row;
    pub(crate) fn draw_on(table: &Table, row: u32, key: u64) = draw;
}

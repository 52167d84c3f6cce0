//! Outputs in the order and the precision of the fastText program.
//!
//! The program looks up the logistic function in a table of 513 values. Neighbouring values differ by up to 0.008, so an
//! output that differs in rounding can have another probability. Outputs are therefore computed as the program computes
//! them: row by row, one value at a time.

use kernels::simd::Table;

/// The logistic function is looked up between these limits, in steps of 1/32.
const LIMIT: f32 = 8.0;
const STEPS: f32 = 512.0;

/// The mean of rows, of which `n_rows` count.
pub(super) fn mean(table: &Table, rows: &[u32], n_rows: usize, mean: &mut [f32]) {
    mean.fill(0.0);
    for &row in rows {
        let row = table.row(row, 0);
        mean.iter_mut().enumerate().for_each(|(at, sum)| *sum += row.get(at));
    }
    let share = (1.0 / n_rows.max(1) as f64) as f32;
    mean.iter_mut().for_each(|value| *value *= share);
}

/// The product of a row and a vector.
pub(super) fn dot(table: &Table, row: u32, vector: &[f32]) -> f32 {
    let row = table.row(row, 0);
    vector.iter().enumerate().fold(0.0, |sum, (at, &value)| row.get(at).mul_add(value, sum))
}

/// The logistic function as the program looks it up.
pub(crate) fn logistic(output: f32) -> f32 {
    if output < -LIMIT {
        0.0
    } else if output > LIMIT {
        1.0
    } else {
        let at = ((output + LIMIT) * STEPS / LIMIT / 2.0).trunc();
        let x = at * 2.0 * LIMIT / STEPS - LIMIT;
        (1.0 / (1.0 + f64::from((-x).exp()))) as f32
    }
}

//! The functions of `kernel` with the vectors of a processor, and the table of rows that all threads share.

use kernels::simd::on_processor;
pub use kernels::simd::{Checked, Processor, Table, table_bytes};

use super::kernel;

on_processor! {
    pub(crate) fn mean(table: &Table, rows: &[u32], n_rows: usize, mean: &mut [f32]) = kernel::mean;
    pub(crate) fn dot(table: &Table, row: u32, vector: &[f32]) -> f32 = kernel::dot;
    pub(crate) fn add_scaled(table: &Table, row: u32, by: f32, sum: &mut [f32]) = kernel::add_scaled;
    pub(crate) fn add_to_rows(table: &Table, rows: &[u32], gradient: &[f32], next: &[u32])
        = kernel::add_to_rows;
    pub(crate) fn update_row(table: &Table, row: u32, gradient: &[f32], by: f32, rule: &kernel::Rule)
        = kernel::update_row;
    pub(crate) fn draw(table: &Table, row: u32, key: u64) = kernel::draw;
}

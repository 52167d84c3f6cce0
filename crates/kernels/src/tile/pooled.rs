//! The forward and the backward pass of a tile in two calls.

use super::{Sums, Tile, room};
use crate::dropout::Dropout;
use crate::model::Model;
use crate::simd::{Vector, on_processor};

/// Computes the pooled vectors of a tile's rows.
#[inline(always)]
fn forward<V: Vector>(tile: &mut Tile, model: &Model, projected: &[f32]) {
    tile.forward::<V>(model, projected, &Dropout::none());
}

/// Adds gradients to `sums`, from those of the pooled vectors of all rows, `[rows, P]`.
#[inline(always)]
fn backward<V: Vector>(tile: &mut Tile, model: &Model, of_pooled: &[f32], sums: &mut Sums) {
    let width = model.pooled();
    room(&mut tile.pooled_gradient, tile.rows.len() * width);
    for (gradient, row) in tile.pooled_gradient.chunks_exact_mut(width).zip(&tile.rows) {
        gradient.copy_from_slice(&of_pooled[row.row * width..][..width]);
    }
    tile.unpool(model);
    tile.backward::<V>(model, &Dropout::none(), sums);
}

on_processor! {
    pub(crate) fn forward_on(tile: &mut Tile, model: &Model, projected: &[f32]) = forward;
    pub(crate) fn backward_on(tile: &mut Tile, model: &Model, of_pooled: &[f32], sums: &mut Sums) = backward;
}

impl Tile {
    /// Copies the pooled vectors to their places in those of all rows.
    pub(crate) fn copy_pooled(&self, pooled: &mut [f32]) {
        let width = self.pooled.len() / self.rows.len().max(1);
        for (of_row, row) in self.pooled.chunks_exact(width.max(1)).zip(&self.rows) {
            pooled[row.row * width..][..width].copy_from_slice(of_row);
        }
    }
}

//! The functions of the other modules with the vectors of a processor.

use crate::simd::on_processor;

use crate::Loss;
use crate::dropout::Dropout;
use crate::head::HeadSums;
use crate::linear::{self, LinearSums, Packed};
use crate::model::Model;
use crate::optimizer::{self, Adam, Sgd};
use crate::projection::{self, ProjectionSums};
use crate::tile::{self, Sums, Tile, pooled};

on_processor! {
    pub(crate) fn project(
        model: &Model,
        embedding: &[f32],
        ids: &[u32],
        embedded: &mut [f32],
        projected: &mut [f32],
    ) = projection::project;
    pub(crate) fn project_back(
        model: &Model,
        embedded: &[f32],
        gradients: &mut [f32],
        of_others: &[&[f32]],
        embedding_gradients: &mut [f32],
        sums: &mut ProjectionSums,
    ) = projection::project_back;
    pub(crate) fn train(
        tile: &mut Tile,
        model: &Model,
        projected: &[f32],
        dropout: &Dropout,
        loss: &Loss<'_>,
        sums: &mut Sums,
        losses: &mut Vec<(usize, f64)>,
    ) = tile::train;
    pub(crate) fn predict(
        tile: &mut Tile,
        model: &Model,
        projected: &[f32],
        head: &mut HeadSums,
        outputs: &mut Vec<(usize, Vec<f32>)>,
    ) = tile::predict;
    pub(crate) fn tile_forward(tile: &mut Tile, model: &Model, projected: &[f32]) = pooled::forward;
    pub(crate) fn tile_backward(tile: &mut Tile, model: &Model, of_pooled: &[f32], sums: &mut Sums) = pooled::backward;
    pub(crate) fn linear(packed: &Packed, rows: &[f32], outputs: &mut [f32]) = linear::forward;
    pub(crate) fn linear_back(
        packed: &Packed,
        rows: &[f32],
        of_outputs: &[f32],
        of_rows: &mut [f32],
        sums: &mut LinearSums,
    ) = linear::backward;
    pub(crate) fn adam(
        weights: &mut [f32],
        gradients: &mut [f32],
        mean: &mut [f32],
        square: &mut [f32],
        rule: &Adam,
    ) = optimizer::adam_part;
    pub(crate) fn sgd(weights: &mut [f32], gradients: &mut [f32], velocity: &mut [f32], rule: &Sgd) = optimizer::sgd_part;
}

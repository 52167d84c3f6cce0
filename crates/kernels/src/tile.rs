//! Computes a tile of rows through all layers and time steps, forward and backward, in memory that fits the cache.
//!
//! H: hidden size; I: input size of a layer; L: lanes; S: slots. Each row has one slot per token and one more. A
//! token's slot holds its gates, later replaced by their gradients, and the cell and state *before* the token. The
//! cell and state after the token are in the next slot. The gates of a row's last slot are 0. A slot therefore holds
//! both factors of a weight gradient, whichever row it belongs to.
//!
//! Rows are sorted by length, the longest first. At each time step, the rows that still have tokens are
//! therefore the first ones, and no mask is needed.

pub(crate) mod pooled;

use std::time::{Duration, Instant};

use crate::dropout::Dropout;
use crate::head::HeadSums;
use crate::matrices::{add_products, add_row, add_rows, back_through, rows_at, with_number, zeros};
use crate::model::{Layer, Model};
use crate::products::{Columns, multiply};
use crate::simd::activation::{TANH, logistic, tanh};
use crate::simd::{Vector, on_processor};
use crate::tile_row::{TileRow, slots_at};
use crate::{Loss, Pool};

/// Values of one layer, `[S, …]`, kept for the backward pass.
#[derive(Default)]
struct Memory {
    /// Interleaved. The backward pass replaces them by their gradients.
    gates: Vec<f32>,
    cells: Vec<f32>,
    /// tanh of the cell after the slot's token.
    tanh_cells: Vec<f32>,
    states: Vec<f32>,
    /// The states after dropout, as the next layer reads them. Used only with dropout.
    dropped: Vec<f32>,
}

/// One thread's memory for the rows of a tile.
#[derive(Default)]
pub(crate) struct Tile {
    rows: Vec<TileRow>,
    n_slots: usize,
    /// Index of each slot's distinct token.
    places: Vec<u32>,
    layers: Vec<Memory>,
    /// The gradient of each state that comes from pooling or from the next layer.
    upward: Vec<f32>,
    /// The gradients of each row's state and input at the current token, `[rows, H + I]`.
    flow: Vec<f32>,
    /// The gradient of each row's cell at the current token, `[rows, H]`.
    carry: Vec<f32>,
    pooled: Vec<f32>,
    pooled_gradient: Vec<f32>,
    /// For mean-max pooling: the slot of each unit's maximum.
    largest: Vec<usize>,
    /// Time of the forward passes of [`train`].
    pub(crate) forward_time: Duration,
}

/// A thread's gradient sums for one layer.
#[derive(Default)]
pub(crate) struct LayerSums {
    /// Layout of [`crate::packing::forward`].
    pub(crate) weights: Vec<f32>,
    /// Interleaved.
    pub(crate) biases: Vec<f32>,
}

/// A thread's gradient sums.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) layers: Vec<LayerSums>,
    /// Per distinct token, `[distinct, 4H]`, interleaved.
    pub(crate) projected: Vec<f32>,
    pub(crate) head: HeadSums,
}

impl Sums {
    pub(crate) fn clear(&mut self, model: &Model, n_distinct: usize) {
        self.layers.resize_with(model.layers.len(), LayerSums::default);
        for (sums, layer) in self.layers.iter_mut().zip(&model.layers) {
            zeros(&mut sums.weights, layer.forward.len());
            zeros(&mut sums.biases, 4 * model.hidden);
        }
        zeros(&mut self.projected, n_distinct * 4 * model.hidden);
        self.head.clear(model);
    }
}

/// Extends `numbers` to at least `length` values, whose content is undefined.
fn room(numbers: &mut Vec<f32>, length: usize) {
    if numbers.len() < length {
        numbers.resize(length, 0.0);
    }
}

impl Tile {
    /// Sets the rows of the tile: their indices, and for each row the indices of its distinct tokens.
    pub(crate) fn begin<'a>(
        &mut self,
        model: &Model,
        rows: &[usize],
        places: impl Fn(usize) -> &'a [u32],
        is_dropping: bool,
    ) {
        let hidden = model.hidden;
        self.rows.clear();
        self.places.clear();
        for &row in rows {
            let tokens = places(row);
            self.rows.push(TileRow { row, length: tokens.len(), slot: self.places.len() });
            self.places.extend_from_slice(tokens);
            self.places.push(0);
        }
        self.rows.sort_by_key(|row| std::cmp::Reverse(row.length));
        self.n_slots = self.places.len();
        self.layers.resize_with(model.layers.len(), Memory::default);
        for memory in &mut self.layers {
            room(&mut memory.gates, self.n_slots * 4 * hidden);
            // One slot more than needed: the last slot's zero gradients are multiplied by the values of the slot
            // after it.
            for numbers in [&mut memory.cells, &mut memory.tanh_cells, &mut memory.states] {
                room(numbers, (self.n_slots + 1) * hidden);
            }
            if is_dropping {
                room(&mut memory.dropped, (self.n_slots + 1) * hidden);
            }
            for row in &self.rows {
                memory.cells[row.slot * hidden..][..hidden].fill(0.0);
                memory.states[row.slot * hidden..][..hidden].fill(0.0);
                memory.gates[(row.slot + row.length) * 4 * hidden..][..4 * hidden].fill(0.0);
            }
        }
        room(&mut self.upward, self.n_slots * hidden);
    }

    #[inline(always)]
    fn forward<V: Vector>(&mut self, model: &Model, projected: &[f32], dropout: &Dropout) {
        let longest = self.rows.first().map_or(0, |row| row.length);
        for (number, layer) in model.layers.iter().enumerate() {
            let (before, from) = self.layers.split_at_mut(number);
            let below = before.last().map_or(&[][..], |memory| memory.for_next(dropout));
            let memory = &mut from[0];
            for t in 0..longest {
                for rows in self.rows.chunks(V::ROWS) {
                    let rows = &rows[..rows.partition_point(|row| row.length > t)];
                    if rows.is_empty() {
                        break;
                    }
                    let initial =
                        InitialGates { layer, places: &self.places, projected, n_gates: 4 * model.hidden };
                    with_number!(rows.len(), R in 1 2 3 4 5 6 => {
                        memory.forward_step::<V, R>(&initial, model.hidden, below, rows, t);
                    });
                }
            }
            if dropout.layers.is_some() && number + 1 < model.layers.len() {
                memory.drop(&self.rows, model.hidden, number, dropout);
            }
        }
        self.pool(model);
    }

    /// Pools the last layer's states into one vector per row.
    #[inline(always)]
    fn pool(&mut self, model: &Model) {
        let hidden = model.hidden;
        let states = &self.layers[model.layers.len() - 1].states;
        self.pooled.clear();
        self.largest.clear();
        for row in &self.rows {
            let of_row = &states[(row.slot + 1) * hidden..][..row.length * hidden];
            match model.pool {
                Pool::Last => self.pooled.extend_from_slice(&of_row[(row.length - 1) * hidden..]),
                Pool::MeanMax => {
                    let begin = self.pooled.len();
                    self.pooled.resize(begin + hidden, 0.0);
                    self.pooled.resize(begin + 2 * hidden, f32::NEG_INFINITY);
                    let first = self.largest.len();
                    self.largest.resize(first + hidden, row.slot);
                    let (mean, most) = self.pooled[begin..].split_at_mut(hidden);
                    let largest = &mut self.largest[first..];
                    for (t, state) in of_row.chunks_exact(hidden).enumerate() {
                        for unit in 0..hidden {
                            mean[unit] += state[unit];
                            // NaN passes through, so that it reaches the output.
                            if state[unit] > most[unit] || state[unit].is_nan() {
                                most[unit] = state[unit];
                                largest[unit] = row.slot + t;
                            }
                        }
                    }
                    mean.iter_mut().for_each(|sum| *sum /= row.length as f32);
                }
            }
        }
    }

    /// Computes the gradients of the last layer's states from those of the pooled vectors.
    #[inline(always)]
    fn unpool(&mut self, model: &Model) {
        let hidden = model.hidden;
        self.upward[..self.n_slots * hidden].fill(0.0);
        for (at, row) in self.rows.iter().enumerate() {
            let gradient = &self.pooled_gradient[at * model.pooled()..][..model.pooled()];
            match model.pool {
                Pool::Last => {
                    self.upward[(row.slot + row.length - 1) * hidden..][..hidden].copy_from_slice(gradient);
                }
                Pool::MeanMax => {
                    let (mean, most) = gradient.split_at(hidden);
                    let of_row = &mut self.upward[row.slot * hidden..][..row.length * hidden];
                    for state in of_row.chunks_exact_mut(hidden) {
                        for (gradient, mean) in state.iter_mut().zip(mean) {
                            *gradient = mean / row.length as f32;
                        }
                    }
                    for (unit, &slot) in self.largest[at * hidden..][..hidden].iter().enumerate() {
                        self.upward[slot * hidden + unit] += most[unit];
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn backward<V: Vector>(&mut self, model: &Model, dropout: &Dropout, sums: &mut Sums) {
        let hidden = model.hidden;
        let longest = self.rows.first().map_or(0, |row| row.length);
        for (number, layer) in model.layers.iter().enumerate().rev() {
            zeros(&mut self.carry, self.rows.len() * hidden);
            zeros(&mut self.flow, self.rows.len() * (hidden + layer.inputs));
            let (before, from) = self.layers.split_at_mut(number);
            let memory = &mut from[0];
            for t in (0..longest).rev() {
                for (group, rows) in self.rows.chunks(V::ROWS).enumerate() {
                    let n_active = rows.partition_point(|row| row.length > t);
                    if n_active == 0 {
                        break;
                    }
                    let first = group * V::ROWS;
                    let mut down = Down {
                        upward: &mut self.upward,
                        flow: &mut self.flow[first * (hidden + layer.inputs)..],
                        carry: &mut self.carry[first * hidden..],
                    };
                    with_number!(n_active, R in 1 2 3 4 5 6 => {
                        memory.backward_step::<V, R>(layer, hidden, &rows[..n_active], t, &mut down);
                    });
                }
            }
            let of_layer = &mut sums.layers[number];
            let n_slots = self.n_slots;
            let states = Columns { numbers: &memory.states, stride: hidden };
            let gates = Columns { numbers: &memory.gates, stride: 4 * hidden };
            match before.last() {
                None => {
                    add_products::<V>(&mut of_layer.weights, states, gates, n_slots, 0..hidden, hidden);
                    self.add_projected::<V>(hidden, &mut sums.projected);
                }
                Some(below) => {
                    let inputs = Columns { numbers: &below.for_next(dropout)[hidden..], stride: hidden };
                    for (left, columns) in [(inputs, 0..hidden), (states, hidden..2 * hidden)] {
                        add_products::<V>(&mut of_layer.weights, left, gates, n_slots, columns, 2 * hidden);
                    }
                    add_rows::<V>(&mut of_layer.biases, &memory.gates[..n_slots * 4 * hidden]);
                    if dropout.layers.is_some() {
                        dropout.mask_layer(&self.rows, hidden, number - 1, &mut self.upward);
                    }
                }
            }
        }
    }

    /// Adds the gradients of the first layer's gates to those of the distinct tokens.
    #[inline(always)]
    fn add_projected<V: Vector>(&self, hidden: usize, projected: &mut [f32]) {
        let gates = &self.layers[0].gates;
        for row in &self.rows {
            for slot in row.slot..row.slot + row.length {
                let place = self.places[slot] as usize;
                let to = &mut projected[place * 4 * hidden..][..4 * hidden];
                let of = &gates[slot * 4 * hidden..][..4 * hidden];
                add_row::<V>(to, of);
            }
        }
    }
}

/// Computes outputs and losses of a tile's rows, and adds the gradients of the rows' losses to `sums`.
#[inline(always)]
fn train<V: Vector>(
    tile: &mut Tile,
    model: &Model,
    projected: &[f32],
    dropout: &Dropout,
    loss: &Loss<'_>,
    sums: &mut Sums,
    losses: &mut Vec<(usize, f64)>,
) {
    let began = Instant::now();
    tile.forward::<V>(model, projected, dropout);
    tile.forward_time += began.elapsed();
    let width = model.pooled();
    room(&mut tile.pooled_gradient, tile.rows.len() * width);
    let gradients = tile.pooled_gradient.chunks_exact_mut(width);
    for ((pooled, gradient), row) in tile.pooled.chunks_exact(width).zip(gradients).zip(&tile.rows) {
        let lost = sums.head.train(model, pooled, row.row, dropout, loss, gradient);
        losses.push((row.row, lost));
    }
    tile.unpool(model);
    tile.backward::<V>(model, dropout, sums);
}

/// Computes the outputs of a tile's rows.
#[inline(always)]
fn predict<V: Vector>(
    tile: &mut Tile,
    model: &Model,
    projected: &[f32],
    head: &mut HeadSums,
    outputs: &mut Vec<(usize, Vec<f32>)>,
) {
    tile.forward::<V>(model, projected, &Dropout::none());
    for (pooled, row) in tile.pooled.chunks_exact(model.pooled()).zip(&tile.rows) {
        outputs.push((row.row, head.forward(model, pooled, row.row, &Dropout::none()).to_vec()));
    }
}

on_processor! {
    pub(crate) fn train_on(
        tile: &mut Tile,
        model: &Model,
        projected: &[f32],
        dropout: &Dropout,
        loss: &Loss<'_>,
        sums: &mut Sums,
        losses: &mut Vec<(usize, f64)>,
    ) = train;
    pub(crate) fn predict_on(
        tile: &mut Tile,
        model: &Model,
        projected: &[f32],
        head: &mut HeadSums,
        outputs: &mut Vec<(usize, Vec<f32>)>,
    ) = predict;
}

/// Initial values of a token's gates: the token's projection in the first layer, the biases in the others.
struct InitialGates<'a> {
    layer: &'a Layer,
    places: &'a [u32],
    projected: &'a [f32],
    n_gates: usize,
}

impl InitialGates<'_> {
    #[inline(always)]
    fn of(&self, slot: usize) -> &[f32] {
        if self.layer.inputs == 0 {
            &self.projected[self.places[slot] as usize * self.n_gates..][..self.n_gates]
        } else {
            &self.layer.biases
        }
    }
}

/// Gradients passed to the previous token and to the layer below.
struct Down<'a> {
    upward: &'a mut [f32],
    flow: &'a mut [f32],
    carry: &'a mut [f32],
}

impl Memory {
    fn for_next(&self, dropout: &Dropout) -> &[f32] {
        if dropout.layers.is_some() { &self.dropped } else { &self.states }
    }

    fn drop(&mut self, rows: &[TileRow], hidden: usize, number: usize, dropout: &Dropout) {
        let end = rows.iter().map(|row| row.slot + row.length + 1).max().unwrap_or(0);
        self.dropped[..end * hidden].copy_from_slice(&self.states[..end * hidden]);
        // The state after a token is in the slot after the token's.
        dropout.mask_layer(rows, hidden, number, &mut self.dropped[hidden..]);
    }

    /// Computes one token in each of R rows.
    #[inline(always)]
    fn forward_step<V: Vector, const R: usize>(
        &mut self,
        initial: &InitialGates<'_>,
        hidden: usize,
        below: &[f32],
        rows: &[TileRow],
        t: usize,
    ) {
        let slots = slots_at::<R>(rows, t);
        let layer = initial.layer;
        let width = 4 * V::LANES;
        for (block, weights) in layer.forward.chunks_exact((layer.inputs + hidden) * width).enumerate() {
            let (of_inputs, of_states) = weights.split_at(layer.inputs * width);
            let mut sums = [[V::splat(0.0); 4]; R];
            for r in 0..R {
                let begin = &initial.of(slots[r])[block * width..][..width];
                for gate in 0..4 {
                    sums[r][gate] = V::load(&begin[gate * V::LANES..]);
                }
            }
            if layer.inputs > 0 {
                let inputs = rows_at(&below[hidden..], &slots, hidden);
                multiply(&mut sums, &inputs, of_inputs);
            }
            if t > 0 {
                multiply(&mut sums, &rows_at(&self.states, &slots, hidden), of_states);
            }
            for (sums, &slot) in sums.iter().zip(&slots) {
                let units = slot * hidden + block * V::LANES;
                let &[i, f, g, o] = sums;
                let (i, f, g, o) = (logistic(i), logistic(f), tanh(g), logistic(o));
                let cell = f.fma(V::load(&self.cells[units..]), i.mul(g));
                let tanh_cell = tanh(cell.mul(V::splat(TANH)));
                let gates = &mut self.gates[slot * 4 * hidden + block * width..][..width];
                for (gate, value) in [i, f, g, o].into_iter().enumerate() {
                    value.store(&mut gates[gate * V::LANES..]);
                }
                cell.store(&mut self.cells[units + hidden..]);
                tanh_cell.store(&mut self.tanh_cells[units..]);
                o.mul(tanh_cell).store(&mut self.states[units + hidden..]);
            }
        }
    }

    /// Computes the gradients of the gates of one token in each of R rows, and passes gradients to the previous token
    /// and to the layer below.
    #[inline(always)]
    fn backward_step<V: Vector, const R: usize>(
        &mut self,
        layer: &Layer,
        hidden: usize,
        rows: &[TileRow],
        t: usize,
        down: &mut Down<'_>,
    ) {
        let slots = slots_at::<R>(rows, t);
        let columns = hidden + layer.inputs;
        let one = V::splat(1.0);
        for (r, &slot) in slots.iter().enumerate() {
            for block in 0..hidden / V::LANES {
                let (at, units) = (block * V::LANES, slot * hidden + block * V::LANES);
                let gates = &mut self.gates[slot * 4 * hidden + 4 * at..][..4 * V::LANES];
                let gate = |number: usize| V::load(&gates[number * V::LANES..]);
                let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
                let tanh_cell = V::load(&self.tanh_cells[units..]);
                let state = V::load(&down.upward[units..]).add(V::load(&down.flow[r * columns + at..]));
                let cell = {
                    let slope = one.sub(tanh_cell.mul(tanh_cell)).mul(o);
                    state.fma(slope, V::load(&down.carry[r * hidden + at..]))
                };
                let gradients = [
                    cell.mul(g).mul(i.mul(one.sub(i))),
                    cell.mul(V::load(&self.cells[units..])).mul(f.mul(one.sub(f))),
                    cell.mul(i).mul(one.sub(g.mul(g))),
                    state.mul(tanh_cell).mul(o.mul(one.sub(o))),
                ];
                for (gate, gradient) in gradients.into_iter().enumerate() {
                    gradient.store(&mut gates[gate * V::LANES..]);
                }
                cell.mul(f).store(&mut down.carry[r * hidden + at..]);
            }
        }
        let gates = rows_at(&self.gates, &slots, 4 * hidden);
        back_through::<V, R>(&gates, &layer.backward, columns, down.flow, columns);
        if layer.inputs > 0 {
            for (r, slot) in slots.iter().enumerate() {
                let of_inputs = &down.flow[r * columns + hidden..][..layer.inputs];
                down.upward[slot * hidden..][..layer.inputs].copy_from_slice(of_inputs);
            }
        }
    }
}

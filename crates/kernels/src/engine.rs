//! Computes outputs and gradients of a model on several threads. Each thread processes its rows.

mod pooled;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::dropout::Dropout;
use crate::model::Model;
use crate::projection::{Distinct, ProjectionSums, project_back_on, project_on};
use crate::team::Team;
use crate::tile::{self, Sums, Tile};
use crate::{Loss, Parameters, Sizes, TokenRows, packing};

/// Maximum rows per tile. It is large enough to compute the sums of one row while the states of another row
/// are loaded.
const TILE_ROWS: usize = 24;

/// Maximum memory of a tile. It must fit into a core's private cache, which has 1 to 2 MiB.
const TILE_BYTES: usize = 1 << 20;

/// Computes outputs and gradients of models with the same sizes.
pub struct Engine {
    team: Arc<Team>,
    sizes: Sizes,
    model: Model,
    distinct: Distinct,
    /// `[D, E]`
    embedded: Vec<f32>,
    /// `[D, 4H]`, interleaved.
    projected: Vec<f32>,
    /// `[D, E]`
    embedding_gradients: Vec<f32>,
    workers: Vec<Worker>,
    passes: Passes,
}

/// Durations of the parts of a call of [`Engine::train`]. Threads compute forward and backward passes at the same time;
/// their common time is divided by their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Projection of the distinct tokens, and the forward passes of the layers.
    pub forward: Duration,
    /// The head and its loss, the backward passes, and the sums of all threads.
    pub backward: Duration,
}

/// State of one thread.
#[derive(Default)]
struct Worker {
    /// Row indices of each tile.
    tiles: Vec<Vec<usize>>,
    n_slots: usize,
    tile: Tile,
    /// One tile per element of `tiles`, for the second call of two passes.
    kept: Vec<Tile>,
    sums: Sums,
    projection: ProjectionSums,
    losses: Vec<(usize, f64)>,
    outputs: Vec<(usize, Vec<f32>)>,
    /// Time of its tiles in [`Engine::train`].
    time: Duration,
}

impl Engine {
    /// Panics if `sizes` is not supported ([`Sizes::is_supported`]).
    pub fn new(sizes: Sizes, team: Arc<Team>) -> Self {
        assert!(sizes.is_supported(), "no kernels for {sizes:?}");
        Self {
            sizes,
            model: Model::new(&sizes),
            distinct: Distinct::new(sizes.ids),
            embedded: Vec::new(),
            projected: Vec::new(),
            embedding_gradients: Vec::new(),
            workers: (0..team.n_threads()).map(|_| Worker::default()).collect(),
            team,
            passes: Passes::default(),
        }
    }

    /// The outputs of each row, `[rows, O]`.
    pub fn outputs(&mut self, weights: &Parameters<&[f32]>, rows: TokenRows<'_>) -> Vec<f32> {
        self.begin(weights, rows);
        let Self { team, model, distinct, projected, workers, .. } = self;
        let processor = team.processor();
        team.each(workers.iter_mut().collect(), |worker| {
            worker.outputs.clear();
            for rows in &worker.tiles {
                worker.tile.begin(model, rows, |row| distinct.of_row(row), false);
                let head = &mut worker.sums.head;
                tile::predict_on(processor, &mut worker.tile, model, projected, head, &mut worker.outputs);
            }
        });
        let mut outputs = vec![0.0; distinct.n_rows() * self.sizes.outputs];
        for (row, of_row) in self.workers.iter().flat_map(|worker| &worker.outputs) {
            outputs[row * self.sizes.outputs..][..self.sizes.outputs].copy_from_slice(of_row);
        }
        outputs
    }

    /// Returns the sum of the rows' losses and adds its gradients to `gradients`.
    pub fn train(
        &mut self,
        weights: &Parameters<&[f32]>,
        rows: TokenRows<'_>,
        dropout: &Dropout,
        loss: &Loss<'_>,
        gradients: &mut Parameters<&mut [f32]>,
    ) -> f64 {
        let began = Instant::now();
        self.begin(weights, rows);
        let projected_at = Instant::now();
        let n_distinct = self.distinct.ids.len();
        let Self { team, model, distinct, projected, workers, .. } = self;
        let processor = team.processor();
        team.each(workers.iter_mut().collect(), |worker| {
            let Worker { tiles, tile, sums, losses, time, .. } = worker;
            let began = Instant::now();
            tile.forward_time = Duration::ZERO;
            sums.clear(model, n_distinct);
            losses.clear();
            for rows in tiles {
                tile.begin(model, rows, |row| distinct.of_row(row), dropout.layers.is_some());
                tile::train_on(processor, tile, model, projected, dropout, loss, sums, losses);
            }
            *time = began.elapsed();
        });
        let of_layers = projected_at.elapsed();
        self.project_back();
        self.add_to(gradients);
        let sum = |of: fn(&Worker) -> Duration| self.workers.iter().map(of).sum::<Duration>().as_secs_f64();
        let share = sum(|worker| worker.tile.forward_time) / sum(|worker| worker.time).max(f64::MIN_POSITIVE);
        let forward = (projected_at - began) + of_layers.mul_f64(share.clamp(0.0, 1.0));
        self.passes = Passes { forward, backward: began.elapsed().saturating_sub(forward) };
        let mut losses: Vec<_> =
            self.workers.iter().flat_map(|worker| worker.losses.iter().copied()).collect();
        losses.sort_unstable_by_key(|&(row, _)| row);
        losses.iter().map(|(_, loss)| loss).sum()
    }

    /// The durations of the last call of [`Engine::train`].
    pub fn passes(&self) -> Passes {
        self.passes
    }

    /// Distinct token ids of the last call's rows. After `train`, only their embeddings have gradients.
    pub fn distinct_ids(&self) -> &[u32] {
        &self.distinct.ids
    }

    /// Reads the weights, projects the distinct tokens and assigns the rows to threads.
    fn begin(&mut self, weights: &Parameters<&[f32]>, rows: TokenRows<'_>) {
        let Self { team, sizes, model, distinct, embedded, projected, .. } = self;
        let processor = team.processor();
        model.read(weights, processor.lanes());
        distinct.find(rows.iter());
        let n_distinct = distinct.ids.len();
        embedded.resize(n_distinct * sizes.embedding, 0.0);
        projected.resize(n_distinct * 4 * sizes.hidden, 0.0);
        let part = team.part(n_distinct);
        let parts = distinct.ids.chunks(part).zip(embedded.chunks_mut(part * sizes.embedding));
        let parts = parts.zip(projected.chunks_mut(part * 4 * sizes.hidden));
        team.each(parts.collect(), |((ids, embedded), projected)| {
            project_on(processor, model, weights.embedding, ids, embedded, projected);
        });
        self.assign_rows(rows);
    }

    /// Splits the rows into tiles of similar length. Assigns each tile to the thread with the fewest tokens so far.
    fn assign_rows(&mut self, rows: TokenRows<'_>) {
        for worker in &mut self.workers {
            worker.tiles.clear();
            worker.n_slots = 0;
        }
        let length = |row: usize| rows.lengths[row] as usize;
        let mut order: Vec<usize> = (0..rows.lengths.len()).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(length(row)));
        // Values per slot and layer: 4 gates, cell, tanh of the cell and state. The gradient of the state is shared
        // by all layers.
        let slot_bytes = self.sizes.hidden * (7 * self.sizes.layers + 1) * size_of::<f32>();
        let mut rest = &order[..];
        while let Some(&longest) = rest.first() {
            let n_fit = TILE_BYTES / slot_bytes / (length(longest) + 1);
            let n_rows = (n_fit / 6 * 6).clamp(6, TILE_ROWS).min(rest.len());
            let (tile, others) = rest.split_at(n_rows);
            rest = others;
            let least = (0..self.workers.len()).min_by_key(|&at| self.workers[at].n_slots).unwrap_or(0);
            let worker = &mut self.workers[least];
            worker.n_slots += tile.iter().map(|&row| length(row)).sum::<usize>();
            worker.tiles.push(tile.to_vec());
        }
    }

    /// Computes the gradients of embeddings and projection weights from those of projected tokens.
    fn project_back(&mut self) {
        let Self { team, sizes, model, embedded, embedding_gradients, workers, distinct, .. } = self;
        let n_distinct = distinct.ids.len();
        embedding_gradients.resize(n_distinct * sizes.embedding, 0.0);
        let part = team.part(n_distinct);
        let (gates, width) = (part * 4 * sizes.hidden, part * sizes.embedding);
        let mut projections = Vec::new();
        let mut projected = Vec::new();
        for worker in workers.iter_mut() {
            projections.push(&mut worker.projection);
            projected.push(&mut worker.sums.projected);
        }
        let (first, others) = projected.split_at_mut(1);
        let others: Vec<&[f32]> = others.iter().map(|projected| &projected[..]).collect();
        let parts = first[0].chunks_mut(gates).zip(embedded.chunks(width));
        let parts = parts.zip(embedding_gradients.chunks_mut(width)).zip(projections).enumerate();
        team.each(parts.collect(), |(at, (((gradients, embedded), embedding_gradients), sums))| {
            let of_others: Vec<&[f32]> =
                others.iter().map(|other| &other[at * gates..][..gradients.len()]).collect();
            project_back_on(
                team.processor(),
                model,
                embedded,
                gradients,
                &of_others,
                embedding_gradients,
                sums,
            );
        });
    }

    /// Adds the threads' sums to the gradients, in the order of the threads.
    fn add_to(&mut self, gradients: &mut Parameters<&mut [f32]>) {
        let (hidden, lanes) = (self.sizes.hidden, self.team.processor().lanes());
        let width = self.sizes.embedding;
        for (&id, of) in self.distinct.ids.iter().zip(self.embedding_gradients.chunks_exact(width)) {
            add(&mut gradients.embedding[id as usize * width..][..width], of);
        }
        let n_parts = self.distinct.ids.len().div_ceil(self.team.part(self.distinct.ids.len()));
        for (at, worker) in self.workers.iter().enumerate() {
            for (number, (sums, of_layer)) in worker.sums.layers.iter().zip(&mut gradients.layers).enumerate()
            {
                let [of_inputs, of_states, one, other] = of_layer;
                let mut none: [f32; 0] = [];
                let of_inputs: &mut [f32] = if number == 0 { &mut none } else { of_inputs };
                packing::add_back(&sums.weights, of_inputs, of_states, hidden, lanes);
                packing::add_biases_back(&sums.biases, one, other, lanes);
            }
            if at < n_parts {
                let [of_inputs, _, one, other] = &mut gradients.layers[0];
                packing::add_back(&worker.projection.weights, of_inputs, &mut [], hidden, lanes);
                packing::add_biases_back(&worker.projection.biases, one, other, lanes);
            }
            let head = &worker.sums.head;
            add(gradients.linear[0], &head.linear);
            add(gradients.linear[1], &head.linear_bias);
            add(gradients.output[0], &head.output);
            add(gradients.output[1], &head.output_bias);
        }
    }
}

fn add(to: &mut [f32], numbers: &[f32]) {
    for (to, number) in to.iter_mut().zip(numbers) {
        *to += number;
    }
}

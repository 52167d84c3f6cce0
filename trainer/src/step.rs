//! A batch's place in its step.

use batches::random::{Purpose, Random};
use runs::recipe::{Position, Recipe};

use crate::ranks::Ranks;

/// A batch's place in its step, and what it draws.
#[derive(Clone, Copy, Debug)]
pub struct InStep {
    /// Rows of the step's batches, on all ranks.
    pub rows: u64,
    /// Whether this batch is the last of them.
    pub is_last_batch: bool,
    /// Decides with a row's place in the batch what the kernels' dropout leaves out of it: on all ranks the same.
    pub masks: u64,
    /// Seed of PyTorch's generator, from which its dropout draws; a different one on each rank.
    pub generator: u64,
    /// Decides from which words next ones are told, on all ranks the same.
    pub candidates: [u64; 3],
}

impl InStep {
    pub(crate) fn of(recipe: &Recipe, n_rows: u64, position: &Position, batch: u64, ranks: &Ranks) -> Self {
        let (batch_rows, accumulate) = (recipe.batch_rows as u64, recipe.accumulate as u64);
        let n_batches = n_rows.div_ceil(batch_rows);
        let first = position.batch / accumulate * accumulate;
        let end = (first + accumulate).min(n_batches);
        let [seed, steps, rank] = [recipe.seed, position.steps, ranks.rank() as u64];
        Self {
            rows: (end * batch_rows).min(n_rows) - first * batch_rows,
            is_last_batch: position.batch + 1 == end,
            masks: Random::of(Purpose::Masks, &[seed, steps, batch]).bits(),
            generator: Random::of(Purpose::Dropout, &[seed, steps, batch, rank]).bits(),
            candidates: [seed, steps, batch],
        }
    }
}

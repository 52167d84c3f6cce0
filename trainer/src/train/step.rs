//! A batch of an optimizer step, with its random seeds.

use batches::random::Purpose;
use runs::recipe::{Position, Recipe};

use crate::ranks::Ranks;

/// A batch of an optimizer step, with its random seeds.
#[derive(Clone, Copy, Debug)]
pub struct InStep {
    /// Number of rows in the step's batches, over all ranks.
    pub rows: u64,
    /// Whether this is the last batch of the step.
    pub is_last_batch: bool,
    /// Whether the gradients of the step are exchanged with the other ranks, if there are any.
    pub is_exchanged: bool,
    /// Seed of the kernels' dropout, the same on all ranks. The row's index in the batch is the rest of the key.
    pub masks: u64,
    /// Seed of PyTorch's generator for dropout; different on each rank.
    pub generator: u64,
    /// Key of the candidate words, the same on all ranks.
    pub candidates: [u64; 3],
}

impl InStep {
    pub(crate) fn of(
        recipe: &Recipe,
        n_rows: u64,
        position: &Position,
        batch: u64,
        is_exchanged: bool,
        ranks: &Ranks,
    ) -> Self {
        let (batch_rows, accumulate) = (recipe.batch_rows as u64, recipe.accumulate as u64);
        let n_batches = n_rows.div_ceil(batch_rows);
        let first = position.batch / accumulate * accumulate;
        let end = (first + accumulate).min(n_batches);
        let [seed, steps, rank] = [recipe.seed, position.steps, ranks.rank() as u64];
        Self {
            rows: (end * batch_rows).min(n_rows) - first * batch_rows,
            is_last_batch: position.batch + 1 == end,
            is_exchanged,
            masks: Purpose::Masks.stream(&[seed, steps, batch]).bits(),
            generator: Purpose::Dropout.stream(&[seed, steps, batch, rank]).bits(),
            candidates: [seed, steps, batch],
        }
    }
}

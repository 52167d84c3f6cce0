//! Rounds of several steps: each rank trains its shares of a round's batches by itself, with its own optimizer, and then all
//! ranks apply the mean of their changes (local SGD, Stich 2019).
//!
//! With Adam, the learning rate of a round is multiplied by the square root of the number of ranks: Adam's steps have a length
//! that does not depend on the batch, they differ more among ranks with small shares, and so their mean is shorter.
//!
//! A change counts by the rows that its rank trained in the round. The embedding of a word that no rank had in the round
//! stays as it was: an optimizer with momentum would change it further, by each rank otherwise. With Adam, the change of an
//! embedding is the mean over the ranks that had its word: Adam changes a rare word by as much as a frequent one, and a mean
//! over all ranks would hold it back. Optimizers remember their own gradients, and are not exchanged.
//!
//! The first steps of a training are exchanged one by one (post-local SGD, Lin et al. 2020).

use batches::Batch;
use c10d::{ProcessGroup, ReduceOp};
use dataset::vocabulary::UNKNOWN;
use runs::recipe::{Family, Position, Recipe, Rule};
use tch::Tensor;

use crate::error::Result;
use crate::families::{Lstm, Model};
use crate::gradients::{bytes_of, in_ring};
use crate::ranks::Ranks;

/// The part of a training whose steps are exchanged one by one.
const EXCHANGED_PART: f64 = 0.1;

/// The rounds of a training.
pub(super) struct Rounds<'r> {
    group: &'r ProcessGroup,
    /// Steps of a round.
    every: u64,
    /// Steps that are exchanged one by one.
    n_exchanged: u64,
    /// Batches of an epoch.
    n_batches: u64,
    /// The weights at the begin of the round; none before the first one.
    before: Vec<Tensor>,
    /// Whether this rank had a word in the round.
    touched: Vec<u8>,
    /// Whether every embedding changes in each step.
    touches_all: bool,
    /// Whether steps are those of Adam, whose length does not depend on the gradients.
    is_adam: bool,
    /// Rows that this rank trained in the round.
    rows: u64,
}

impl<'r> Rounds<'r> {
    /// The rounds of a recipe with `n_rows` rows; `None` if each step is exchanged.
    pub(super) fn of(recipe: &Recipe, n_rows: u64, ranks: &'r Ranks) -> Option<Self> {
        let group = ranks.group().filter(|_| recipe.sync_every > 1)?;
        let n_batches = n_rows.div_ceil(recipe.batch_rows as u64);
        let n_steps = n_batches.div_ceil(recipe.accumulate as u64) * u64::from(recipe.epochs);
        Some(Self {
            group,
            every: recipe.sync_every as u64,
            n_exchanged: (EXCHANGED_PART * n_steps as f64) as u64,
            n_batches,
            before: Vec::new(),
            touched: vec![0; recipe.model.ids as usize],
            // The loss compares the state with the embeddings of other words.
            touches_all: matches!(recipe.family, Family::NextWord(_)),
            is_adam: matches!(recipe.rule, Rule::Adam | Rule::AdamW),
            rows: 0,
        })
    }

    /// Whether the step at this position is part of a round.
    pub(super) fn contain(&self, position: &Position) -> bool {
        position.steps >= self.n_exchanged
    }

    /// The learning rate of a rank's own step, from that of the schedule.
    pub(super) fn rate(&self, rate: f64) -> f64 {
        if self.is_adam { rate * (self.group.world_size() as f64).sqrt() } else { rate }
    }

    /// Notes a batch that this rank trains next.
    pub(super) fn note(&mut self, model: &Model, batch: &Batch) {
        if self.before.is_empty() {
            self.before = model.parameters().copies();
        }
        self.rows += batch.rows.len() as u64;
        // Dropout of words puts this one in their place.
        self.touched[UNKNOWN as usize] = 1;
        for &id in &batch.tokens {
            self.touched[id as usize] = 1;
        }
    }

    /// Whether a round ends with the step whose last batch is the one before `position`.
    pub(super) fn end_at(&self, position: &Position) -> bool {
        (position.steps + 1).is_multiple_of(self.every) || position.batch == self.n_batches
    }

    /// Applies the mean of the changes of all ranks, which trained `rows` rows in the round. The weights then have identical
    /// bits on all ranks. Returns the number of bytes that this rank sends.
    pub(super) fn exchange(&mut self, model: &Model, rows: u64) -> Result<u64> {
        let share = self.rows as f64 / rows.max(1) as f64;
        self.rows = 0;
        let words = self.words_of_all(share)?;
        let words_of = |at: usize| words.as_ref().filter(|_| at == Lstm::EMBEDDING);
        tch::no_grad(|| {
            let weights = model.parameters().tensors();
            let changes = weights.iter().zip(&self.before).enumerate().map(|(at, (weight, before))| {
                let change = (weight - before) * share;
                match words_of(at) {
                    Some(Words { ids, .. }) => Ok(change.f_index_select(0, ids)?.f_flatten(0, -1)?),
                    None => Ok(change.f_flatten(0, -1)?),
                }
            });
            let changes: Vec<Tensor> = changes.collect::<Result<_>>()?;
            let lengths: Vec<i64> = changes.iter().map(|change| change.numel() as i64).collect();
            let mut all = Tensor::f_cat(&changes, 0)?;
            self.group.all_reduce(&mut all, ReduceOp::Sum)?;
            let changes = all.f_split_with_sizes(&lengths[..], 0)?;
            for (at, ((weight, before), change)) in
                weights.iter().zip(&mut self.before).zip(changes).enumerate()
            {
                match words_of(at) {
                    Some(Words { ids, weights }) => {
                        let mut change = change.f_view([-1, before.size()[1]])?;
                        if self.is_adam {
                            change = change.f_div(&weights.f_to_kind(change.kind())?.f_unsqueeze(1)?)?;
                        }
                        let _ = before.f_index_add_(0, ids, &change)?;
                    }
                    None => {
                        let change = change.f_view(&before.size()[..])?;
                        let _ = before.f_add_(&change)?;
                    }
                }
                weight.shallow_clone().f_copy_(before)?;
            }
            let sent = bytes_of(&all) + self.touched.len() * size_of::<f32>();
            Ok(in_ring(sent as u64, self.group.world_size()))
        })
    }

    /// The words that any rank had in the round; `None` stands for all. `share` is the weight of this rank.
    fn words_of_all(&mut self, share: f64) -> Result<Option<Words>> {
        if self.touches_all {
            return Ok(None);
        }
        let own: Vec<f32> = self.touched.iter().map(|&touched| f32::from(touched) * share as f32).collect();
        self.touched.fill(0);
        let mut weights = Tensor::from_slice(&own).to_device(self.group.device());
        self.group.all_reduce(&mut weights, ReduceOp::Sum)?;
        let ids = weights.f_nonzero()?.f_flatten(0, -1)?;
        Ok(Some(Words { weights: weights.f_index_select(0, &ids)?, ids }))
    }
}

/// Words that some ranks had in a round.
struct Words {
    ids: Tensor,
    /// The sum of the weights of the ranks that had each word; 1 if all had it.
    weights: Tensor,
}

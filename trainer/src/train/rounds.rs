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
//! The first rounds are short (post-local SGD, Lin et al. 2020): a round ends after 1, 2, 4, 8 and so on steps of the training,
//! until its length is reached.

use batches::Batch;
use dataset::vocabulary::UNKNOWN;
use runs::recipe::{Family, Position, Recipe, Rule};

use crate::error::Result;
use crate::exchange::{Exchange, Reduction, Table, announcement};
use crate::families::{Lstm, Model};
use crate::ranks::Ranks;
use crate::train::Training;

/// The rounds of a training.
pub(super) struct Rounds<'r> {
    exchange: Exchange<'r>,
    /// Steps of a round.
    every: u64,
    /// Batches of an epoch.
    n_batches: u64,
    /// The weights at the begin of the round; none before the first one.
    before: Option<Table>,
    /// Whether this rank had a word in the round.
    touched: Vec<bool>,
    /// Whether every embedding changes in each step.
    touches_all: bool,
    /// Whether steps are those of Adam, whose length does not depend on the gradients.
    is_adam: bool,
    /// Whether less is sent than there is.
    is_lossy: bool,
    /// Rows that this rank trained in the round.
    rows: u64,
}

/// What is known of an exchange.
pub(super) struct Exchanged {
    /// Number of bytes that this rank sent.
    pub sent: u64,
    /// The distance of this rank's change from the mean of all, relative to the length of the mean.
    pub drift: f64,
}

impl<'r> Rounds<'r> {
    /// The rounds of a recipe with `n_rows` rows; `None` if each step is exchanged.
    pub(super) fn of(recipe: &Recipe, n_rows: u64, ranks: &'r Ranks) -> Option<Self> {
        let group = ranks.group().filter(|_| recipe.sync_every > 1)?;
        Some(Self {
            exchange: Exchange::new(group, recipe.wire),
            every: recipe.sync_every as u64,
            n_batches: n_rows.div_ceil(recipe.batch_rows as u64),
            before: None,
            touched: vec![false; recipe.model.ids as usize],
            // The loss compares the state with the embeddings of other words.
            touches_all: matches!(recipe.family, Family::NextWord(_)),
            is_adam: matches!(recipe.rule, Rule::Adam | Rule::AdamW),
            is_lossy: !recipe.wire.is_full(),
            rows: 0,
        })
    }

    /// The learning rate of a rank's own step, from that of the schedule.
    pub(super) fn rate(&self, rate: f64) -> f64 {
        if self.is_adam { rate * (self.exchange.world_size() as f64).sqrt() } else { rate }
    }

    /// Notes a batch that this rank trains next.
    pub(super) fn note(&mut self, model: &Model, batch: &Batch) -> Result<()> {
        if self.before.is_none() {
            self.before = Some(Table::of(model.parameters().tensors(), Lstm::EMBEDDING)?);
        }
        self.rows += batch.rows.len() as u64;
        // Dropout of words puts this one in their place.
        self.touched[UNKNOWN as usize] = true;
        for &id in &batch.tokens {
            self.touched[id as usize] = true;
        }
        Ok(())
    }

    /// Whether a round ends with the step whose last batch is the one before `position`.
    pub(super) fn end_at(&self, position: &Position) -> bool {
        let steps = position.steps + 1;
        let is_first = steps < self.every && steps.is_power_of_two();
        is_first || steps.is_multiple_of(self.every) || position.batch == self.n_batches
    }

    /// What this rank tells the others before an exchange.
    pub(super) fn announcement(&mut self) -> Vec<u8> {
        let rows = std::mem::take(&mut self.rows);
        if self.touches_all || rows == 0 {
            self.touched.fill(rows > 0);
        }
        let announcement = announcement(rows as f64, &self.touched);
        self.touched.fill(false);
        announcement
    }

    /// Applies the mean of the changes of all ranks, of which `announced` has the announcements. The weights then have
    /// identical bits on all ranks.
    pub(super) fn exchange(&mut self, training: &mut Training, announced: &[Vec<u8>]) -> Result<Exchanged> {
        let Some(before) = &mut self.before else { return Ok(Exchanged { sent: 0, drift: 0.0 }) };
        let weights = training.model.parameters().tensors();
        let mut changes = Table::of(weights, Lstm::EMBEDDING)?.rows;
        let _ = changes.f_sub_(&before.rows)?;
        if self.is_lossy && training.unsent.is_none() {
            training.unsent = Some(changes.f_zeros_like()?);
        }
        let reduction = if self.is_adam { Reduction::MeansOfHolders } else { Reduction::Means };
        let means = self.exchange.sums(&changes, announced, reduction, training.unsent.as_mut())?;
        tch::no_grad(|| {
            let own = changes.f_index_select(0, &means.ids)?;
            let distance = own.f_sub(&means.rows)?.f_norm()?.f_double_value(&[])?;
            let length = means.rows.f_norm()?.f_double_value(&[])?;
            // On a GPU, an exchange that failed has arbitrary results. Now it has ended.
            self.exchange.check()?;
            let _ = before.rows.f_index_add_(0, &means.ids, &means.rows)?;
            for (weight, before) in weights.iter().zip(&before.each) {
                weight.shallow_clone().f_copy_(before)?;
            }
            Ok(Exchanged { sent: means.sent, drift: distance / length.max(f64::MIN_POSITIVE) })
        })
    }
}

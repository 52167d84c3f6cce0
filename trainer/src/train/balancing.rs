//! Divides the batches of a training among ranks of unequal speed.
//!
//! Batches are numbered over the whole training: batch b of epoch e is e · n + b, with n batches per epoch.

use batches::balance::{BalanceRule, Balancer, BalancerSettings, Decision, Measured};
use batches::{Dealing, Loader, ShareSchedule, Shares};
use runs::recipe::{Position, Recipe};
use training::tell::tell;

use crate::error::Result;
use crate::ranks::Ranks;

/// Batches that loaders make ahead if shares can change. A decision applies after them.
const AHEAD: u64 = 2;

/// How the batches of a training are divided.
#[derive(Debug)]
pub struct Balancing {
    /// Batches per epoch.
    n_batches: u64,
    n_rows: u64,
    batch_rows: usize,
}

impl Balancing {
    /// Begins or continues to balance, if the recipe says so and there are several ranks. A training that is resumed with
    /// another number of ranks begins with equal shares, and rank 0 prints a message.
    pub fn begin(recipe: &Recipe, n_rows: u64, position: &mut Position, ranks: &Ranks) -> Self {
        let (batch_rows, world_size) = (recipe.batch_rows, ranks.world_size());
        let rule = recipe.balance.clone().filter(|_| world_size > 1);
        let saved = position.balancer.take();
        position.balancer = rule.map(|rule| {
            let step_batches = recipe.accumulate as u64;
            let settings =
                BalancerSettings { rule, ranks: world_size, batch_rows, step_batches, delay: AHEAD };
            match saved {
                Some(saved) if *saved.settings() == settings => saved,
                other => {
                    if let Some(saved) = other.filter(|_| ranks.is_first()) {
                        tell(&not_continued(saved.settings(), &settings));
                    }
                    Balancer::new(settings, Shares::equal(batch_rows, world_size).sizes().to_vec())
                }
            }
        });
        Self { n_batches: n_rows.div_ceil(batch_rows as u64), n_rows, batch_rows }
    }

    /// The decisions of the checkpoint from which a training was resumed. Call it before the first step.
    pub fn restored(position: &Position) -> &[Decision] {
        match &position.balancer {
            Some(balancer) if !matches!(balancer.settings().rule, BalanceRule::Replay { .. }) => {
                balancer.log()
            }
            _ => &[],
        }
    }

    /// The shares of an epoch, with the changes that are decided.
    pub fn dealing(&self, position: &Position, ranks: &Ranks) -> Dealing {
        let (rank, world_size) = (ranks.rank(), ranks.world_size());
        let Some(balancer) = &position.balancer else {
            return Dealing::equal(self.batch_rows, rank, world_size);
        };
        let first = self.number(position, 0);
        let mut schedule = ShareSchedule::new(Shares::of(balancer.parts_of(first).to_vec()));
        for Decision { from_batch, parts, .. } in balancer.log().iter().filter(|of| of.from_batch > first) {
            schedule.change(from_batch - first, Shares::of(parts.clone()));
        }
        Dealing::Shares { rank, world_size, schedule }
    }

    /// The number of batches that loaders make ahead.
    pub fn ahead(position: &Position) -> Option<u64> {
        position.balancer.as_ref().map(|_| AHEAD)
    }

    /// Notes the measurements of a step, whose last batch is the one before `position`, and changes the loader's shares.
    /// `failed` has, by rank, the work of a share that did not fit into memory.
    pub fn note(
        &self,
        position: &mut Position,
        measured: Vec<Measured>,
        failed: &[Option<u64>],
        loader: &mut Loader,
    ) -> Result<Vec<Decision>> {
        let first = self.number(position, 0);
        let last = (first + position.batch).saturating_sub(1);
        let Some(balancer) = &mut position.balancer else { return Ok(Vec::new()) };
        let mut decisions: Vec<Decision> = balancer.note(last, measured).cloned().into_iter().collect();
        for (rank, &work) in failed.iter().enumerate() {
            let decision = work.and_then(|work| balancer.out_of_memory(last, rank, work));
            decisions.extend(decision.cloned());
        }
        for decision in decisions.iter().filter(|decision| decision.from_batch - first < self.n_batches) {
            loader.change(
                decision.from_batch - first,
                Shares::of(decision.parts.clone()),
                self.batch_rows,
            )?;
        }
        Ok(decisions)
    }

    /// Notes the end of an epoch, after `position` has moved to the next one. There is no decision after the last epoch.
    pub fn end_epoch(&self, position: &mut Position) -> Option<Decision> {
        if position.has_ended {
            return None;
        }
        let first = self.number(position, 0);
        position.balancer.as_mut()?.end_epoch(first, self.n_rows).cloned()
    }

    /// The number of a batch of the current epoch.
    fn number(&self, position: &Position, batch: u64) -> u64 {
        u64::from(position.epoch) * self.n_batches + batch
    }
}

/// A message about a balancer in a checkpoint that is not continued.
fn not_continued(saved: &BalancerSettings, settings: &BalancerSettings) -> String {
    let of = match saved.ranks == settings.ranks {
        true => "another version of this program".to_owned(),
        false => format!("{} ranks", saved.ranks),
    };
    format!("the checkpoint has measurements and shares of {of}: starting from equal shares")
}

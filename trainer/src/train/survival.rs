//! What the remaining ranks do after one of them is lost: each goes back to the last step or round that it completed, and all
//! continue from the state of the rank that is furthest.

use std::cmp::Reverse;

use batches::Part;
use runs::recipe::{Position, Recipe};
use tch::Tensor;

use crate::error::{Error, Result};
use crate::ranks::Ranks;
use crate::train::Training;
use crate::train::splits::Splits;

/// The state of a training after the last step or round that this rank completed.
pub(super) struct Completed {
    is_kept: bool,
    /// Whether weights and optimizer change before a round is complete.
    is_in_rounds: bool,
    position: Position,
    tensors: Option<Tensors>,
    /// Batches that this rank began since then.
    n_begun: u64,
}

struct Tensors {
    weights: Vec<Tensor>,
    optimizer: Vec<Tensor>,
    optimizer_steps: u64,
    unsent: Option<Tensor>,
}

impl Completed {
    /// Keeps nothing if the training ends with a lost rank.
    pub(super) fn new(is_kept: bool, is_in_rounds: bool) -> Self {
        Self { is_kept, is_in_rounds, position: Position::default(), tensors: None, n_begun: 0 }
    }

    /// Notes a batch that this rank begins.
    pub(super) fn begin_batch(&mut self) {
        self.n_begun += 1;
    }

    /// Keeps the state of a training.
    pub(super) fn keep(&mut self, training: &Training) -> Result<()> {
        if !self.is_kept {
            return Ok(());
        }
        (self.position, self.n_begun) = (training.position.clone(), 0);
        if !self.is_in_rounds {
            return Ok(());
        }
        let (weights, optimizer) = (training.model.parameters().tensors(), training.optimizer.tensors());
        let kept = self.tensors.get_or_insert_with(|| {
            let like =
                |tensors: &[Tensor]| tensors.iter().map(|tensor| tensor.detach().empty_like()).collect();
            Tensors { weights: like(weights), optimizer: like(&optimizer), optimizer_steps: 0, unsent: None }
        });
        kept.optimizer_steps = training.optimizer.steps();
        kept.unsent = training.unsent.as_ref().map(Tensor::copy);
        let pairs = kept.weights.iter().zip(weights).chain(kept.optimizer.iter().zip(&optimizer));
        tch::no_grad(|| pairs.into_iter().try_for_each(|(to, from)| Ok(to.shallow_clone().f_copy_(from)?)))
    }

    /// Takes a training back to the kept state.
    pub(super) fn restore(self, training: &mut Training) -> Result<()> {
        if !self.is_kept {
            return Ok(());
        }
        (training.position, training.n_undone) = (self.position, self.n_begun);
        if let Some(Tensors { weights, optimizer, optimizer_steps, unsent }) = self.tensors {
            training.unsent = unsent;
            training.model.parameters_mut().put(&weights)?;
            training.optimizer.restore(optimizer_steps, &optimizer)?;
        }
        for mut gradient in training.model.parameters().gradients() {
            if gradient.defined() {
                let _ = tch::no_grad(|| gradient.f_zero_())?;
            }
        }
        Ok(())
    }
}

/// Makes the state of the furthest rank that of all; ranks as far as it keep their own optimizers. Returns the number of rows
/// that are trained again. If a rank is lost meanwhile, the training stays as it was.
pub fn catch_up(recipe: &Recipe, splits: Splits<'_>, ranks: &Ranks, training: &mut Training) -> Result<u64> {
    let own = (&training.position, training.optimizer.steps(), training.n_undone);
    let own = serde_json::to_vec(&own).map_err(|error| Error::internal(&error))?;
    let of_ranks = match ranks.group() {
        Some(group) => group.all_gather_bytes(&own)?,
        None => vec![own],
    };
    let of_ranks = of_ranks.iter().map(|bytes| serde_json::from_slice(bytes));
    let of_ranks: Vec<(Position, u64, u64)> =
        of_ranks.collect::<std::result::Result<_, _>>().map_err(|error| Error::internal(&error))?;
    // Of ranks with as many steps, some may have evaluated the epoch. It is evaluated again: rank 0 may not have logged it.
    let progress = |(rank, (position, ..)): &(usize, &(Position, u64, u64))| {
        (position.steps, Reverse(position.epoch), Reverse(*rank))
    };
    let furthest = of_ranks.iter().enumerate().max_by_key(progress);
    let Some((source, (position, optimizer_steps, _))) = furthest else {
        return Err(Error::internal(&"a group without ranks"));
    };
    let reached = of_ranks.iter().filter(|(other, ..)| other.epoch == position.epoch);
    let reached = reached.map(|(other, _, n_undone)| other.batch + n_undone).max().unwrap_or_default();
    let rows_to = |batch: u64| (batch * recipe.batch_rows as u64).min(splits.rows.n_rows(Part::Training));
    let repeated = rows_to(reached).saturating_sub(rows_to(position.batch));

    let weights = training.model.parameters().copies()?;
    let optimizer: Vec<Tensor> = training.optimizer.tensors().iter().map(Tensor::copy).collect();
    let best = position.best.map(|_| match &training.best {
        Some(best) => best.iter().map(Tensor::copy).collect(),
        None => weights.iter().map(Tensor::copy).collect(),
    });
    for tensors in [&weights, &optimizer].into_iter().chain(&best) {
        ranks.broadcast_from(source, tensors)?;
    }
    training.model.parameters_mut().put(&weights)?;
    if training.position.steps < position.steps {
        training.optimizer.restore(*optimizer_steps, &optimizer)?;
        // It was a part of what this rank sent in the round that others completed.
        training.unsent = None;
    }
    training.best = best;
    // Shares of other ranks are not continued.
    training.position = Position { balancer: None, ..position.clone() };
    training.n_undone = 0;
    Ok(repeated)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use runs::recipe::{ClassifierSettings, LstmSettings, Objective, Pool, Precision};
    use tch::Device;

    use super::*;
    use crate::gradients::tests::recipe;

    #[test]
    fn an_incomplete_round_leaves_nothing_behind() {
        let sizes = LstmSettings { ids: 9, embedding: 4, hidden: 3, layers: 1, bidirectional: false };
        let objective = Objective::Label { pos_weight: 1.0 };
        let settings = ClassifierSettings { objective, pool: Pool::Last, linear: 2 };
        let mut training = Training::new(&recipe(sizes, settings, Precision::F32, 1), Device::Cpu).unwrap();
        training.optimizer.restore(5, &training.optimizer.tensors()).unwrap();
        training.unsent = Some(training.model.parameters().tensors()[0].detach().copy());
        let all = |training: &Training| -> Vec<Tensor> {
            let weights = training.model.parameters().copies().unwrap();
            let optimizer = training.optimizer.tensors();
            weights.into_iter().chain(optimizer.iter().chain(&training.unsent).map(Tensor::copy)).collect()
        };
        let before = all(&training);

        let mut completed = Completed::new(true, true);
        completed.keep(&training).unwrap();
        completed.begin_batch();
        completed.begin_batch();
        training.position.steps += 2;
        training.optimizer.restore(7, &training.optimizer.tensors()).unwrap();
        tch::no_grad(|| {
            let weights = training.model.parameters().tensors().iter().map(Tensor::shallow_clone);
            let others = training.optimizer.tensors().into_iter().chain(training.unsent.take());
            weights.chain(others).for_each(|mut tensor| tensor += 1.0);
        });
        completed.restore(&mut training).unwrap();

        assert_eq!(all(&training), before);
        assert_eq!((training.position.steps, training.optimizer.steps(), training.n_undone), (0, 5, 2));
    }
}

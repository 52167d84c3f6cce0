//! The progress of a training, and the positions that are valid for a recipe.

use batches::balance::Balancer;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, Recipe};

/// The progress of a training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Number of completed epochs.
    pub epoch: u32,
    /// Number of completed batches of the current epoch.
    pub batch: u64,
    /// Number of optimizer steps.
    pub steps: u64,
    /// Weighted sum of this epoch's losses so far, over all ranks.
    pub epoch_loss: f64,
    /// The lowest validation loss so far, and the epoch after which it was measured.
    pub best: Option<(f64, u32)>,
    /// Whether the training has ended, possibly before its last epoch.
    pub has_ended: bool,
    /// The measurements and decisions by which batches are divided, if there are several ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<Balancer>,
}

impl Recipe {
    /// Refuses a position at which no training with this recipe and `n_rows` rows saves a checkpoint.
    pub fn check(&self, position: &Position, n_rows: u64) -> Result<(), InvalidSetting> {
        let Position { epoch, batch, steps, epoch_loss, best, has_ended, ref balancer } = *position;
        let (n_batches, accumulate) = (n_rows.div_ceil(self.batch_rows as u64), self.accumulate as u64);
        if epoch >= self.epochs {
            return Err(("epoch", epoch.to_string(), format!("less than {}", self.epochs)));
        }
        if batch > n_batches || !(batch.is_multiple_of(accumulate) || batch == n_batches) {
            return Err((
                "batch",
                batch.to_string(),
                format!("0 to {n_batches}, a multiple of {accumulate} or the last one"),
            ));
        }
        let expected = u64::from(epoch) * n_batches.div_ceil(accumulate) + batch.div_ceil(accumulate);
        if steps != expected {
            return Err((
                "steps",
                steps.to_string(),
                format!("{expected}, computed from its epochs and batches"),
            ));
        }
        if !epoch_loss.is_finite() {
            return Err(("epoch_loss", epoch_loss.to_string(), "a finite sum of losses".to_owned()));
        }
        let is_best = match best {
            Some((loss, of)) => self.has_validation() && loss.is_finite() && (1..=epoch).contains(&of),
            None => !self.has_validation() || epoch == 0,
        };
        if !is_best {
            return Err((
                "best",
                format!("{best:?}"),
                "the loss and the number of a finished epoch".to_owned(),
            ));
        }
        if let Some(balancer) = balancer {
            balancer.check(self.balance.as_ref(), self.batch_rows)?;
        }
        match has_ended {
            true => Err((
                "has_ended",
                "true".to_owned(),
                "false, because a finished training has no checkpoint".to_owned(),
            )),
            false => Ok(()),
        }
    }
}

//! Makes a rank slower, for tests of the balance between ranks: the gradients of a part of each batch are computed again
//! and not used.

use batches::Batch;
use runs::recipe::Recipe;

use crate::compute::Compute;
use crate::error::Result;
use crate::families::Model;
use crate::gradients::Gradients;
use crate::inputs::Inputs;
use crate::ranks::Ranks;
use crate::train::step::InStep;
use crate::train::times::Stopwatch;

/// Repeats the computation of gradients.
pub(crate) struct Throttle<'a> {
    /// The work of a batch relative to that of its own gradients, less 1.
    more: f64,
    unused: Gradients<'a>,
    stopwatch: Stopwatch,
}

impl<'a> Throttle<'a> {
    /// `None` if this rank has a factor of 1. `factors` are those of all ranks, or empty. `alone` is [`Ranks::Alone`].
    ///
    /// # Errors
    /// On all ranks alike, if a factor is greater than 1 and PyTorch computes the gradients.
    pub fn new(
        factors: &[f64],
        rank: usize,
        recipe: &Recipe,
        model: &Model,
        compute: &Compute,
        alone: &'a Ranks,
    ) -> Result<Option<Self>> {
        let Some(throttled) = factors.iter().find(|&&factor| factor > 1.0) else { return Ok(None) };
        let unused = Gradients::new(recipe, model, compute, alone)?;
        if !unused.are_of_kernels() {
            return Err(training::Error::setting(
                "--throttle",
                throttled,
                "1 for a training that PyTorch computes",
            )
            .into());
        }
        let more = factors.get(rank).map_or(0.0, |factor| factor - 1.0);
        let stopwatch = Stopwatch::alone(compute.device());
        Ok((more > 0.0).then_some(Self { more, unused, stopwatch }))
    }

    /// Computes the gradients of a part of a batch, or of several batches.
    pub fn repeat(
        &mut self,
        recipe: &Recipe,
        model: &Model,
        inputs: &Inputs<'_>,
        batch: &Batch,
        step: InStep,
    ) -> Result<()> {
        let mut more = self.more;
        while more > 0.0 && !batch.rows.is_empty() {
            let part = last_rows(batch, more);
            let _ = self.unused.add(recipe, model, inputs, &part, step, &mut self.stopwatch)?;
            more -= 1.0;
        }
        // Its phases are not shown.
        self.stopwatch.end_step();
        Ok(())
    }
}

/// The last rows of a batch, with this share of its tokens; with a share of 1 or more, all rows.
fn last_rows(batch: &Batch, share: f64) -> Batch {
    let tokens: i64 = batch.lengths.iter().sum();
    let wanted = share * tokens as f64;
    let mut first = batch.rows.len();
    let mut sum = 0;
    while first > 0 && (sum as f64) < wanted {
        first -= 1;
        sum += batch.lengths[first];
    }
    batch.part(first..batch.rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_wanted_share_of_the_tokens() {
        let lengths = vec![1, 2, 3, 4];
        let batch = Batch {
            rows: vec![10, 11, 12, 13],
            longest: 4,
            tokens: (0..16).collect(),
            labels: vec![0; 4],
            ratings: vec![1; 4],
            weights: vec![1.0; 4],
            lengths,
            ..Batch::default()
        };
        let of = |share| last_rows(&batch, share);
        assert_eq!((of(0.4).rows, of(0.4).tokens), (vec![13], vec![12, 13, 14, 15]));
        assert_eq!((of(0.7).rows, of(0.7).first_row), (vec![12, 13], 2));
        assert_eq!(of(1.0), batch);
        assert_eq!(of(2.5), batch);
    }
}

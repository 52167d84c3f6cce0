//! Computes a share in parts if its gradients by PyTorch do not fit into memory.

use std::borrow::Cow;

use batches::Batch;
use tch::Tensor;

use crate::error::{Error, Result};
use crate::tell::tell;

/// Work of the shares that fitted into this rank's memory, and of those that did not. Work is the number of tokens and
/// of padding.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Of the largest share whose gradients were computed.
    fitted: u64,
    /// Of the largest part of a share that is computed at once.
    part_max: Option<u64>,
    /// Of the smallest share that did not fit since the last call of [`Memory::take_failed`].
    failed: Option<u64>,
}

/// Number of tokens and of padding.
pub(crate) fn padded(batch: &Batch) -> u64 {
    batch.tokens.len() as u64
}

impl Memory {
    /// Whether a share of this size or a larger one has fitted, and none of this size or smaller has failed.
    pub fn is_sufficient_for(&self, batch: &Batch) -> bool {
        let work = padded(batch);
        work <= self.fitted && self.part_max.is_none_or(|most| work <= most)
    }

    /// Work of the smallest share that did not fit since the last call.
    pub fn take_failed(&mut self) -> Option<u64> {
        self.failed.take()
    }

    /// The sum of the gradients of a share's rows. `compute` gets a part of the share and its number, and returns the
    /// gradients of its rows. If memory is insufficient, the part is halved and computed again.
    pub fn gradients(
        &mut self,
        batch: &Batch,
        mut compute: impl FnMut(&Batch, u64) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let n_rows = batch.rows.len();
        let mut sums: Option<Vec<Tensor>> = None;
        let (mut begin, mut number) = (0, 0);
        while begin < n_rows {
            let end = n_rows.min(begin + self.n_rows(batch));
            let part =
                if end - begin == n_rows { Cow::Borrowed(batch) } else { Cow::Owned(batch.part(begin..end)) };
            match compute(&part, number) {
                Ok(gradients) => {
                    self.fitted = self.fitted.max(padded(&part));
                    match &mut sums {
                        None => sums = Some(gradients),
                        Some(sums) => add(sums, &gradients)?,
                    }
                    begin = end;
                    number += 1;
                }
                Err(error) if is_out_of_memory(&error) => self.halve(&part, &error)?,
                Err(error) => return Err(error),
            }
        }
        Ok(sums.unwrap_or_default())
    }

    /// Rows of a part.
    fn n_rows(&self, batch: &Batch) -> usize {
        let rows = |most: u64| usize::try_from(most / batch.longest.max(1) as u64).unwrap_or(usize::MAX);
        self.part_max.map_or(usize::MAX, rows).clamp(1, batch.rows.len())
    }

    fn halve(&mut self, part: &Batch, error: &Error) -> Result<()> {
        let (work, n_rows, longest) = (padded(part), part.rows.len(), part.longest);
        if n_rows < 2 {
            let detail = error.to_string();
            return Err(Error::OutOfMemory { longest, detail });
        }
        self.part_max = Some(work / 2);
        self.fitted = self.fitted.min(work / 2);
        self.failed = Some(self.failed.map_or(work, |failed| failed.min(work)));
        tell(&format!(
            "{n_rows} reviews of up to {longest} tokens do not fit into memory; they are computed in parts of at most {} \
             tokens and padding",
            work / 2
        ));
        Ok(())
    }
}

/// Adds gradients to sums. A parameter without a gradient has an undefined tensor.
pub(super) fn add(sums: &mut [Tensor], gradients: &[Tensor]) -> Result<()> {
    for (sum, gradient) in sums.iter_mut().zip(gradients) {
        match (sum.defined(), gradient.defined()) {
            (_, false) => {}
            (false, true) => *sum = gradient.shallow_clone(),
            (true, true) => drop(sum.f_add_(gradient)?),
        }
    }
    Ok(())
}

/// A loss with these gradients.
pub(super) fn loss_with(parameters: &[Tensor], gradients: &[Tensor]) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (parameter, gradient) in parameters.iter().zip(gradients).filter(|(_, gradient)| gradient.defined()) {
        let product = parameter.f_flatten(0, -1)?.f_dot(&gradient.f_flatten(0, -1)?)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => sum.f_add(&product)?,
        });
    }
    sum.ok_or_else(|| Error::Internal { promise: "the loss depends on a parameter".to_owned() })
}

/// Whether an allocation of PyTorch failed, on a GPU or on the CPU.
fn is_out_of_memory(error: &Error) -> bool {
    let Error::Torch(error) = error else { return false };
    let text = error.to_string();
    ["out of memory", "can't allocate memory", "bad_alloc"].iter().any(|part| text.contains(part))
}

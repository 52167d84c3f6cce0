//! Computes a share in parts if its gradients by PyTorch do not fit into memory.

use std::borrow::Cow;

use batches::Batch;
use program::limits::is_of_gpu;
use tch::Tensor;
use training::tell::tell;

use crate::error::{Error, Result};

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
pub(super) fn padded(batch: &Batch) -> u64 {
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
                        Some(sums) => add(sums, gradients)?,
                    }
                    begin = end;
                    number += 1;
                }
                Err(error) if error.is_out_of_memory() => self.halve(&part, error)?,
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

    fn halve(&mut self, part: &Batch, error: Error) -> Result<()> {
        let (work, n_rows, longest) = (padded(part), part.rows.len(), part.longest);
        if n_rows < 2 {
            let detail = error.to_string();
            // On a CPU, a limit of the system is the cause, not the model.
            return Err(if is_of_gpu(&detail) { Error::OutOfMemory { longest, detail } } else { error });
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

/// Adds gradients to sums and frees each of them. A parameter without a gradient has an undefined tensor.
pub(super) fn add(sums: &mut [Tensor], gradients: Vec<Tensor>) -> Result<()> {
    for (sum, gradient) in sums.iter_mut().zip(gradients) {
        match (sum.defined(), gradient.defined()) {
            (_, false) => {}
            (false, true) => *sum = gradient,
            (true, true) => drop(sum.f_add_(&gradient)?),
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
    sum.ok_or_else(|| Error::internal(&"the loss depends on a parameter"))
}

#[cfg(test)]
mod tests {
    use tch::TchError;

    use super::*;

    fn batch(n_rows: usize) -> Batch {
        let longest = 4;
        let rows = (0..n_rows as u32).collect();
        Batch {
            rows,
            longest,
            lengths: vec![longest as i64; n_rows],
            tokens: vec![1; n_rows * longest],
            labels: vec![0; n_rows],
            ratings: vec![1; n_rows],
            weights: vec![1.0; n_rows],
            ..Batch::default()
        }
    }

    /// The sum of the row indices and the number of parts, as gradients. A part of more than `most` tokens does not fit.
    fn sum(memory: &mut Memory, batch: &Batch, most: u64) -> Result<Vec<f64>> {
        let gradients = memory.gradients(batch, |part, _| {
            if padded(part) > most {
                return Err(Error::Torch(TchError::Torch("CUDA out of memory.".to_owned())));
            }
            let rows: u32 = part.rows.iter().sum();
            Ok(vec![Tensor::from(f64::from(rows)), Tensor::from(1.0), Tensor::new()])
        })?;
        assert!(!gradients[2].defined());
        Ok(gradients[..2].iter().map(|sum| sum.double_value(&[])).collect())
    }

    #[test]
    fn each_row_is_in_one_part_whatever_fits() {
        let mut memory = Memory::default();
        assert!(!memory.is_sufficient_for(&batch(3)));
        assert_eq!(sum(&mut memory, &batch(3), 100).unwrap(), [3.0, 1.0]);
        assert!(memory.is_sufficient_for(&batch(3)) && !memory.is_sufficient_for(&batch(4)));
        assert_eq!(memory.take_failed(), None);

        // 17 rows have 68 tokens; after two halvings, a part has 16, which is 4 rows.
        assert_eq!(sum(&mut memory, &batch(17), 20).unwrap(), [136.0, 5.0]);
        assert_eq!((memory.take_failed(), memory.take_failed()), (Some(32), None));
        assert_eq!(sum(&mut memory, &batch(8), 20).unwrap(), [28.0, 2.0]);
        assert_eq!(memory.take_failed(), None);
        assert!(!memory.is_sufficient_for(&batch(5)));
    }

    #[test]
    fn one_row_that_does_not_fit_is_an_error_with_its_length() {
        let error = sum(&mut Memory::default(), &batch(2), 3).unwrap_err().to_string();
        assert!(error.starts_with("one text of 4 tokens does not fit into memory: PyTorch: "), "{error}");
    }
}

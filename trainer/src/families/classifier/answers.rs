//! Computes outputs of a classifier with the built-in kernels or with PyTorch, behind one interface.
//!
//! B: rows; T: tokens of the longest row; O: outputs.

use kernels::{Engine, TokenRows};
use runs::recipe::{Dropout, Objective};
use tch::{Device, Kind, Tensor};

use super::Classifier;
use super::kernels::engine;
use crate::compute::Compute;
use crate::error::Result;
use crate::inputs::on_device;

/// Computes outputs with fixed weights.
pub struct Answers<'m> {
    model: &'m Classifier,
    device: Device,
    engine: Option<Engine>,
    /// Maximum tokens and padding that PyTorch computes at once.
    places_max: usize,
}

impl<'m> Answers<'m> {
    /// Creates a computation of this model's outputs, on the backend `compute`.
    pub fn of(model: &'m Classifier, compute: &Compute) -> Self {
        let engine = engine(model, compute, Dropout::default());
        if engine.is_none() {
            compute.begin_pytorch(model.lstm().settings());
        }
        Self { model, device: compute.device(), engine, places_max: usize::MAX }
    }

    /// The objective of the model's training.
    pub fn objective(&self) -> Objective {
        self.model.settings().objective
    }

    /// The outputs, `[B, O]`.
    pub fn outputs(&mut self, rows: TokenRows<'_>) -> Result<Tensor> {
        let outputs = self.of_lstm(rows)?;
        match self.model.wide() {
            Some(wide) => wide.outputs(rows, &outputs),
            None => Ok(outputs),
        }
    }

    fn of_lstm(&mut self, rows: TokenRows<'_>) -> Result<Tensor> {
        if let Some(engine) = &mut self.engine {
            let outputs = engine.outputs(&self.model.weights()?, rows);
            return Ok(Tensor::f_from_slice(&outputs)?.f_view([rows.lengths.len() as i64, -1])?);
        }
        in_halves(rows, &mut self.places_max, &|rows: TokenRows<'_>| -> Result<Tensor> {
            let shape = [rows.lengths.len() as i64, rows.longest as i64];
            let ids = on_device(rows.tokens, Kind::Int64, self.device)?.f_view(shape)?;
            let lengths = on_device(rows.lengths, Kind::Int64, self.device)?;
            tch::no_grad(|| self.model.forward(&ids, &lengths, Dropout::default()))
        })
    }

    /// The outputs of each row.
    pub fn of_rows(&mut self, rows: TokenRows<'_>) -> Result<Vec<Vec<f64>>> {
        let outputs = self.outputs(rows)?;
        Ok(Vec::try_from(&outputs.f_to_kind(Kind::Double)?.f_to_device(Device::Cpu)?)?)
    }
}

/// The outputs of rows, `[B, O]`. Rows that do not fit into memory are halved; `places_max` remembers how many do.
fn in_halves(
    rows: TokenRows<'_>,
    places_max: &mut usize,
    compute: &impl Fn(TokenRows<'_>) -> Result<Tensor>,
) -> Result<Tensor> {
    let n_rows = rows.lengths.len();
    if n_rows < 2 || rows.tokens.len() <= *places_max {
        match compute(rows) {
            Err(error) if error.is_out_of_memory() && n_rows > 1 => *places_max = rows.tokens.len() / 2,
            computed => return computed,
        }
    }
    let middle = n_rows / 2;
    let (first, last) = rows.tokens.split_at(middle * rows.longest);
    let (first_lengths, last_lengths) = rows.lengths.split_at(middle);
    let first = TokenRows { tokens: first, lengths: first_lengths, ..rows };
    let last = TokenRows { tokens: last, lengths: last_lengths, ..rows };
    let halves = [in_halves(first, places_max, compute)?, in_halves(last, places_max, compute)?];
    Ok(Tensor::f_cat(&halves, 0)?)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tch::TchError;

    use super::*;
    use crate::error::Error;

    #[test]
    fn rows_that_do_not_fit_are_computed_in_halves() {
        let tokens: Vec<i64> = (0..22).collect();
        let rows = TokenRows { tokens: &tokens, longest: 2, lengths: &[2; 11] };
        let (mut places_max, n_failed) = (usize::MAX, Cell::new(0));
        let compute = |rows: TokenRows<'_>| -> Result<Tensor> {
            assert_eq!(rows.tokens.len(), 2 * rows.lengths.len());
            if rows.tokens.len() > 6 {
                n_failed.set(n_failed.get() + 1);
                return Err(Error::Torch(TchError::Torch("CUDA out of memory.".to_owned())));
            }
            Ok(Tensor::f_from_slice(rows.tokens)?.f_view([-1, 2])?)
        };
        for expected in [2, 2] {
            let found = in_halves(rows, &mut places_max, &compute).unwrap();
            assert_eq!(Vec::<i64>::try_from(&found.view(-1)).unwrap(), tokens);
            assert_eq!(n_failed.get(), expected);
        }
    }

    #[test]
    fn one_row_that_does_not_fit_is_an_error() {
        let rows = TokenRows { tokens: &[1, 2, 3, 4], longest: 2, lengths: &[2, 2] };
        let mut places_max = usize::MAX;
        let full = |_: TokenRows<'_>| -> Result<Tensor> {
            Err(Error::Torch(TchError::Torch("CUDA out of memory.".to_owned())))
        };
        assert!(in_halves(rows, &mut places_max, &full).unwrap_err().is_out_of_memory());
    }
}

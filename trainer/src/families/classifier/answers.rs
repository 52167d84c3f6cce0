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
}

impl<'m> Answers<'m> {
    /// Creates a computation of this model's outputs, on the backend `compute`.
    pub fn of(model: &'m Classifier, compute: &Compute) -> Self {
        let engine = engine(model, compute, Dropout::default());
        if engine.is_none() {
            compute.begin_pytorch(model.lstm().settings());
        }
        Self { model, device: compute.device(), engine }
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
        let shape = [rows.lengths.len() as i64, rows.longest as i64];
        if let Some(engine) = &mut self.engine {
            let outputs = engine.outputs(&self.model.weights()?, rows);
            return Ok(Tensor::f_from_slice(&outputs)?.f_view([shape[0], -1])?);
        }
        let ids = on_device(rows.tokens, Kind::Int64, self.device)?.f_view(shape)?;
        let lengths = on_device(rows.lengths, Kind::Int64, self.device)?;
        tch::no_grad(|| self.model.forward(&ids, &lengths, Dropout::default()))
    }

    /// The outputs of each row.
    pub fn of_rows(&mut self, rows: TokenRows<'_>) -> Result<Vec<Vec<f64>>> {
        let outputs = self.outputs(rows)?;
        Ok(Vec::try_from(&outputs.f_to_kind(Kind::Double)?.f_to_device(Device::Cpu)?)?)
    }
}

//! What computes: a device, and on a processor the project's own kernels where there are some for a model. Who asks for
//! outputs or gradients does not know which of both it was.
//!
//! B rows, T tokens of the longest, O outputs.

use std::sync::Arc;

use batches::Batch;
use kernels::{Engine, Processor, Rows, Team};
use tch::{Device, Kind, Tensor};

use crate::error::{Error, Result};
use crate::inputs::whole_numbers;
use crate::models::{Dropout, Lstm};

/// A device, and what else there is.
#[derive(Clone, Debug)]
pub struct Compute {
    device: Device,
    team: Option<Arc<Team>>,
}

impl Compute {
    /// PyTorch on a device.
    pub fn pytorch(device: Device) -> Self {
        Self { device, team: None }
    }

    /// Own kernels on the processor, by as many threads as PyTorch has, and PyTorch for what they do not do.
    pub fn kernels() -> Result<Self> {
        let n_threads = usize::try_from(tch::get_num_threads()).unwrap_or(1);
        let team = Team::new(n_threads, Processor::best()).map_err(|error| Error::internal(&error))?;
        Ok(Self { device: Device::Cpu, team: Some(Arc::new(team)) })
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The threads of own kernels.
    pub fn team(&self) -> Option<&Team> {
        self.team.as_deref()
    }

    /// Kernels for a model, where there are some.
    pub(crate) fn engine(&self, model: &Lstm, dropout: Dropout) -> Option<Engine> {
        let sizes = model.kernel_sizes()?;
        let is_supported = sizes.is_supported()
            && dropout.embedding == 0.0
            && model.parameters().tensors().iter().all(|tensor| tensor.kind() == Kind::Float);
        self.team.as_ref().filter(|_| is_supported).map(|team| Engine::new(sizes, team.clone()))
    }
}

/// Tokens of some rows.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// `[B, T]`
    pub tokens: &'a [i64],
    /// T.
    pub longest: usize,
    /// `[B]`, each 1 to T.
    pub lengths: &'a [i64],
}

impl<'a> Tokens<'a> {
    /// Those of a batch.
    pub fn of(batch: &'a Batch) -> Self {
        Self { tokens: &batch.tokens, longest: batch.longest, lengths: &batch.lengths }
    }

    pub(crate) fn rows(self) -> Rows<'a> {
        Rows { tokens: self.tokens, stride: self.longest, lengths: self.lengths }
    }
}

/// Answers for rows, by a model whose weights stay.
pub struct Answers<'m> {
    model: &'m Lstm,
    device: Device,
    engine: Option<Engine>,
}

impl<'m> Answers<'m> {
    /// Answers of a model that lies on the device.
    pub fn of(model: &'m Lstm, compute: &Compute) -> Self {
        Self { model, device: compute.device, engine: compute.engine(model, Dropout::default()) }
    }

    /// The outputs, `[B, O]`.
    pub fn outputs(&mut self, tokens: Tokens<'_>) -> Result<Tensor> {
        let shape = [tokens.lengths.len() as i64, tokens.longest as i64];
        if let Some(engine) = &mut self.engine {
            let outputs = engine.outputs(&self.model.weights()?, tokens.rows());
            return Ok(Tensor::from_slice(&outputs).view([shape[0], -1]));
        }
        let ids = whole_numbers(tokens.tokens, self.device).view(shape);
        let lengths = whole_numbers(tokens.lengths, self.device);
        tch::no_grad(|| self.model.forward(&ids, &lengths, Dropout::default()))
    }
}

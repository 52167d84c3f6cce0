//! What computes: a device, and on a processor the threads of the project's own kernels.

use std::sync::Arc;

use kernels::{Processor, Team};
use tch::Device;

use crate::error::{Error, Result};

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

    /// The same, to be shared.
    pub(crate) fn shared_team(&self) -> Option<Arc<Team>> {
        self.team.clone()
    }
}

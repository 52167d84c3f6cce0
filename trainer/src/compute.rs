//! The compute backend: a device and, on the CPU, the threads of the built-in kernels.

use std::sync::Arc;

use kernels::{Processor, Team};
use tch::Device;

/// A device and an optional team of kernel threads.
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

    /// The built-in kernels on the CPU, with PyTorch's number of threads. Operations without a kernel are computed by PyTorch.
    pub fn kernels() -> Self {
        let n_threads = usize::try_from(tch::get_num_threads()).unwrap_or(1);
        let team = Team::new(n_threads, Processor::best());
        Self { device: Device::Cpu, team: Some(Arc::new(team)) }
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The threads of the built-in kernels.
    pub fn team(&self) -> Option<&Team> {
        self.team.as_deref()
    }

    /// The threads of the built-in kernels, as a shared reference.
    pub(crate) fn shared_team(&self) -> Option<Arc<Team>> {
        self.team.clone()
    }
}

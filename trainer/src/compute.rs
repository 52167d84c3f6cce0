//! The compute backend: a device and, on the CPU, the threads of the built-in kernels and of PyTorch.

use std::sync::Arc;

use kernels::{Processor, Team};
use runs::recipe::LstmSettings;
use tch::Device;

/// Hidden size from which PyTorch computes with all threads.
///
/// Its threads wait for each other after each matrix product of a time step. If another process occupies a core, they
/// wait until it is interrupted. On two cores, with hidden sizes of 64 to 1,024, two threads take 0.5 to 0.8 of the time
/// of one if no other process is busy. Beside a busy process, they take 1.2 to 2 times as long from this size on, and
/// 1.4 to 4 times as long below.
const HIDDEN_OF_ALL_THREADS: i64 = 256;

/// A device and an optional team of kernel threads.
#[derive(Clone, Debug)]
pub struct Compute {
    device: Device,
    team: Option<Arc<Team>>,
    /// Whether PyTorch gets one thread for a small model.
    limits_threads: bool,
}

impl Compute {
    /// PyTorch on a device.
    pub fn pytorch(device: Device) -> Self {
        Self { device, team: None, limits_threads: false }
    }

    /// The built-in kernels on the CPU, with PyTorch's number of threads. Operations without a kernel are computed by PyTorch.
    pub fn kernels() -> Self {
        let n_threads = usize::try_from(tch::get_num_threads()).unwrap_or(1);
        let team = Team::new(n_threads, Processor::best());
        Self { team: Some(Arc::new(team)), ..Self::pytorch(Device::Cpu) }
    }

    /// The same backend, whose PyTorch has one thread if it computes a small model on the CPU.
    #[must_use]
    pub fn limiting_threads(self) -> Self {
        Self { limits_threads: true, ..self }
    }

    /// Sets PyTorch's number of threads in this process, for a model that PyTorch computes.
    pub(crate) fn begin_pytorch(&self, model: &LstmSettings) {
        if self.limits_threads && self.device == Device::Cpu && is_small(model) {
            tch::set_num_threads(1);
        }
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

/// Whether PyTorch computes a model with one thread.
fn is_small(model: &LstmSettings) -> bool {
    model.hidden < HIDDEN_OF_ALL_THREADS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_with_small_products_are_small() {
        let model = |hidden, layers, bidirectional| LstmSettings {
            ids: 20_000,
            embedding: 300,
            hidden,
            layers,
            bidirectional,
        };
        // The number of products does not count: each of them is as small as in a model of one layer.
        assert!([model(64, 1, false), model(64, 1, true), model(255, 4, false)].iter().all(is_small));
        assert!(![model(256, 1, false), model(1024, 2, true)].iter().any(is_small));
    }
}

//! Selects the compute backend.

use tch::Device;

use crate::arguments::{ComputeName, Computing, DeviceName};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::ffi::keep_memory;

/// The compute backend of this rank.
pub fn choose(computing: &Computing) -> Result<Compute> {
    keep_memory();
    match (device(computing)?, computing.compute) {
        (Device::Cpu, ComputeName::Auto) => Compute::kernels(),
        (device, _) => Ok(Compute::pytorch(device)),
    }
}

/// CUDA must be loaded before the first use of PyTorch.
fn device(computing: &Computing) -> Result<Device> {
    match computing.device {
        DeviceName::Cpu => Ok(Device::Cpu),
        DeviceName::Cuda => {
            c10d::load_cuda()?;
            own_gpu()
        }
        DeviceName::Auto => {
            let has_gpu = c10d::load_cuda().is_ok() && tch::Cuda::device_count() > 0;
            if has_gpu { own_gpu() } else { Ok(Device::Cpu) }
        }
    }
}

/// The GPU of this rank on its machine.
fn own_gpu() -> Result<Device> {
    let own = std::env::var("LOCAL_RANK").ok().and_then(|rank| rank.parse().ok()).unwrap_or(0);
    let n_gpus = tch::Cuda::device_count();
    if i64::try_from(own).is_ok_and(|own| own < n_gpus) {
        return Ok(Device::Cuda(own));
    }
    Err(Error::Setting {
        setting: "--device",
        found: format!("a GPU for rank {own} of this machine"),
        expected: format!("cpu, or no more ranks than GPUs: PyTorch finds {n_gpus} with a driver"),
    })
}

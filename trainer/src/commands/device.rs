//! Where to compute.

use tch::Device;

use crate::arguments::{ComputeName, DeviceName, Running};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::ffi::keep_memory;

/// What a command's rank computes with.
pub fn choose(running: &Running) -> Result<Compute> {
    keep_memory();
    match (device(running)?, running.compute) {
        (Device::Cpu, ComputeName::Auto) => Compute::kernels(),
        (device, _) => Ok(Compute::pytorch(device)),
    }
}

/// A GPU is looked for before anything else touches PyTorch.
fn device(running: &Running) -> Result<Device> {
    match running.device {
        DeviceName::Cpu => Ok(Device::Cpu),
        DeviceName::Cuda => {
            c10d::load_cuda()?;
            let (n_gpus, own) = (tch::Cuda::device_count(), local_rank());
            if i64::try_from(own).is_ok_and(|own| own < n_gpus) {
                return Ok(Device::Cuda(own));
            }
            Err(Error::Setting {
                setting: "--device",
                found: format!("cuda for rank {own} of this machine"),
                expected: format!("cpu or auto, since PyTorch finds {n_gpus} GPUs with a driver"),
            })
        }
        DeviceName::Auto => {
            let has_gpu = c10d::load_cuda().is_ok() && tch::Cuda::device_count() > 0;
            Ok(if has_gpu { Device::Cuda(local_rank()) } else { Device::Cpu })
        }
    }
}

/// Which of a machine's GPUs is this rank's.
fn local_rank() -> usize {
    std::env::var("LOCAL_RANK").ok().and_then(|rank| rank.parse().ok()).unwrap_or(0)
}

//! Where to compute.

use tch::Device;

use crate::arguments::{DeviceName, Running};
use crate::error::Result;

/// The device that a command's rank computes on. A GPU is looked for before anything else touches PyTorch.
pub fn choose(running: &Running) -> Result<Device> {
    match running.device {
        DeviceName::Cpu => Ok(Device::Cpu),
        DeviceName::Cuda => {
            c10d::load_cuda()?;
            Ok(Device::Cuda(local_rank()))
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

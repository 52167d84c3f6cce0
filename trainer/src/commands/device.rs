//! Device and backend of a command.

use std::env;

use tch::Device;

use crate::arguments::{ComputeName, Computing, DeviceName};
use crate::compute::Compute;
use crate::error::Result;
use crate::ffi::keep_memory;

/// Returns the device and backend of this rank.
pub fn choose(computing: &Computing, backend: ComputeName) -> Result<Compute> {
    keep_memory();
    let compute = match (device(computing)?, backend) {
        (Device::Cpu, ComputeName::Auto) => Compute::kernels(),
        (device, _) => Compute::pytorch(device),
    };
    let is_set = env::var_os("OMP_NUM_THREADS").is_some();
    Ok(if is_set { compute } else { compute.limiting_threads() })
}

/// Selects the device. GPUs must be detected before PyTorch is used for anything else.
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

/// Returns the GPU of this rank.
fn own_gpu() -> Result<Device> {
    let own = env::var("LOCAL_RANK").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let n_gpus = tch::Cuda::device_count();
    if i64::try_from(own).is_ok_and(|own| own < n_gpus) {
        return Ok(Device::Cuda(own));
    }
    Err(training::Error::setting(
        "--device",
        format!("cuda, but there is no GPU for rank {own} of this machine"),
        format!("cpu, or at most one rank per GPU ({n_gpus} GPUs with a driver were found)"),
    )
    .into())
}

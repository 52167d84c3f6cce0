//! Device and backend of a command.

use std::env;
use std::path::Path;

use tch::Device;
use training::tell::tell;

use crate::arguments::{ComputeName, Computing, DeviceName};
use crate::compute::Compute;
use crate::error::Result;
use crate::ffi::keep_memory;

/// Returns the device and backend of this rank.
pub fn choose(computing: &Computing, backend: ComputeName) -> Result<Compute> {
    keep_memory();
    let device = device(computing)?;
    if computing.no_tf32 && device != Device::Cpu {
        c10d::forbid_tf32();
    }
    let compute = match (device, backend) {
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
        DeviceName::Auto => match c10d::load_cuda().map(|()| tch::Cuda::device_count()) {
            Ok(1..) => own_gpu(),
            without => {
                if let Some(warning) = unused_gpu(Path::new(DRIVER), without.err()) {
                    tell(&warning);
                }
                Ok(Device::Cpu)
            }
        },
    }
}

/// A file that exists if NVIDIA's driver is loaded.
const DRIVER: &str = "/proc/driver/nvidia/version";

/// What to say if the CPU computes although there is a driver of a GPU, and why CUDA was not loaded.
fn unused_gpu(driver: &Path, reason: Option<c10d::Error>) -> Option<String> {
    let reason = reason
        .map_or("CUDA finds no GPU; compare its version with the driver's".to_owned(), |error| {
            error.to_string()
        });
    let says = "computing on the CPU, although NVIDIA's driver is loaded";
    driver
        .exists()
        .then(|| format!("{says}: {reason}; --device cuda makes this an error, --device cpu expects it"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_used_is_told_with_the_reason() {
        let reason =
            || Some(c10d::load_cuda().err().unwrap_or(c10d::Error::Cuda { detail: "broken".to_owned() }));
        assert_eq!(unused_gpu(Path::new("/proc/driver/none"), reason()), None);
        let driver = tempfile::NamedTempFile::new().unwrap();
        let told = unused_gpu(driver.path(), reason()).unwrap();
        assert!(told.contains(&format!("is loaded: {}; --device cuda", reason().unwrap())), "{told}");
        assert!(unused_gpu(driver.path(), None).unwrap().contains("CUDA finds no GPU"));
    }
}

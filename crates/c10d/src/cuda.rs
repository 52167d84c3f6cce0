//! Loads CUDA on request, so that the same program runs on machines without CUDA.

use std::env;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tch::Device;

use crate::error::{Error, Result};
use crate::ffi;

#[cfg(nccl_part)]
const NCCL_PART: Option<&[u8]> = Some(include_bytes!(env!("C10D_NCCL_PART")));
#[cfg(not(nccl_part))]
const NCCL_PART: Option<&[u8]> = None;

const LIBRARY: &str = "libtorch_cuda.so";

/// Loads PyTorch's CUDA library and the NCCL part. Call it before the process first queries tch for a GPU,
/// because libtorch caches the result. The path of libtorch_cuda.so is `C10D_LIBTORCH_CUDA`, by default the
/// folder of libtorch_cpu. Errors: this program or this machine lacks a component, which the message names.
///
/// ```
/// match c10d::load_cuda() {
///     Ok(()) => println!("{} GPUs", tch::Cuda::device_count()),
///     Err(reason) => println!("using the CPU: {reason}"),
/// }
/// ```
pub fn load_cuda() -> Result<()> {
    static LOADED: OnceLock<Result<()>> = OnceLock::new();
    LOADED.get_or_init(load).clone()
}

/// Whether this program contains the NCCL part. It does if CUDA's headers were present at build time.
///
/// ```
/// if !c10d::has_nccl_part() {
///     assert!(c10d::load_cuda().unwrap_err().to_string().contains("bootstrap/laptop.sh --cuda"));
/// }
/// ```
pub fn has_nccl_part() -> bool {
    NCCL_PART.is_some()
}

/// Waits until a device has computed everything that it was given: calls of a GPU return before that. Errors: one of
/// these calls failed.
///
/// ```
/// c10d::wait_for(tch::Device::Cpu)?;
/// # Ok::<(), c10d::Error>(())
/// ```
pub fn wait_for(device: Device) -> Result<()> {
    let Device::Cuda(number) = device else { return Ok(()) };
    let failed = |detail: String| Error::Torch { call: "waiting for the GPU".to_owned(), detail };
    let number = c_int::try_from(number).map_err(|_| failed(format!("GPU {number} not found")))?;
    ffi::wait_for_gpu(number).map_err(|failure| failed(failure.text))
}

fn load() -> Result<()> {
    let failed = |detail: String| Error::Cuda { detail };
    let part = NCCL_PART.ok_or_else(|| {
        failed(
            "this program was built without its NCCL part, because CUDA's headers were not found; \
             install them with bootstrap/laptop.sh --cuda and build again"
                .to_owned(),
        )
    })?;
    let library = find_library().ok_or_else(|| {
        failed(format!(
            "{LIBRARY} was not found next to libtorch_cpu.so; \
             install it with bootstrap/laptop.sh --cuda, or set C10D_LIBTORCH_CUDA"
        ))
    })?;
    ffi::load_cuda(&library, part).map_err(|failure| failed(failure.text))
}

/// Searches the folder of the loaded libtorch_cpu. Symbolic links are resolved, because the CUDA library loads its
/// dependencies relative to its real path.
fn find_library() -> Option<PathBuf> {
    if let Some(named) = env::var_os("C10D_LIBTORCH_CUDA") {
        return Some(PathBuf::from(named));
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let cpu = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    cpu.filter(|path| path.file_name().is_some_and(|name| name == "libtorch_cpu.so"))
        .filter_map(|path| Some(path.canonicalize().ok()?.with_file_name(LIBRARY)))
        .find(|path| path.is_file())
}

/// Makes a GPU the current one of this thread. Refuses a number that does not exist.
pub(crate) fn use_device(device: usize) -> Result<()> {
    load_cuda()?;
    let n_devices = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    if device >= n_devices {
        return Err(Error::Cuda { detail: format!("GPU {device} not found; this machine has {n_devices}") });
    }
    ffi::use_gpu(device).map_err(|failure| Error::Cuda { detail: failure.text })
}

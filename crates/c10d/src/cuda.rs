//! CUDA, loaded when it is asked for: the same program runs on a machine that has none.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::ffi;

#[cfg(nccl_part)]
const NCCL_PART: Option<&[u8]> = Some(include_bytes!(env!("C10D_NCCL_PART")));
#[cfg(not(nccl_part))]
const NCCL_PART: Option<&[u8]> = None;

const LIBRARY: &str = "libtorch_cuda.so";

/// Loads PyTorch's CUDA library and the NCCL part. To be called before the process first asks tch for a GPU, since
/// libtorch remembers the answer. It is looked for at `C10D_LIBTORCH_CUDA` (the path of libtorch_cuda.so), then
/// beside libtorch_cpu. Errors: this program or this machine lacks something; the message says which.
///
/// ```
/// match c10d::load_cuda() {
///     Ok(()) => println!("{} GPUs", tch::Cuda::device_count()),
///     Err(reason) => println!("on the processor: {reason}"),
/// }
/// ```
pub fn load_cuda() -> Result<()> {
    static LOADED: OnceLock<Result<()>> = OnceLock::new();
    LOADED.get_or_init(load).clone()
}

/// Whether this program has the NCCL part, which is built where CUDA's headers are.
///
/// ```
/// if !c10d::has_nccl_part() {
///     assert!(c10d::load_cuda().unwrap_err().to_string().contains("bootstrap/laptop.sh --cuda"));
/// }
/// ```
pub fn has_nccl_part() -> bool {
    NCCL_PART.is_some()
}

fn load() -> Result<()> {
    let failed = |detail: String| Error::Cuda { detail };
    let part = NCCL_PART.ok_or_else(|| {
        failed(
            "this program was built without its NCCL part, since CUDA's headers were not found; \
             install them by bootstrap/laptop.sh --cuda and build again"
                .to_owned(),
        )
    })?;
    let library = find_library().ok_or_else(|| {
        failed(format!(
            "{LIBRARY} was not found beside libtorch_cpu.so; \
             install it by bootstrap/laptop.sh --cuda, or name it by C10D_LIBTORCH_CUDA"
        ))
    })?;
    ffi::load_cuda(&library, part).map_err(|failure| failed(failure.text))
}

/// Beside the libtorch_cpu of this process, links followed: the CUDA library finds its own by where it really lies.
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

/// Refuses a GPU that is not there.
pub(crate) fn check_device(device: usize) -> Result<()> {
    load_cuda()?;
    let n_devices = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    if device < n_devices {
        return Ok(());
    }
    Err(Error::Cuda { detail: format!("there is no GPU {device}: this machine shows {n_devices}") })
}

//! What has no safe wrapper: the numbers of a tensor as a slice, and how the C library keeps memory.
//!
//! This is the only module of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::slice;

use tch::{Device, Kind, Tensor};

fn is_plain(tensor: &Tensor) -> bool {
    tensor.device() == Device::Cpu
        && tensor.kind() == Kind::Float
        && tensor.is_contiguous()
        && !tensor.is_sparse()
        && tensor.numel() > 0
}

/// The numbers of a tensor that lies in memory as a slice does; while they are read, nothing may write to the tensor nor
/// to another that shares its memory.
pub(crate) fn numbers(tensor: &Tensor) -> Option<&[f32]> {
    // SAFETY: the memory has as many floats and is the tensor's as long as the tensor lives.
    is_plain(tensor).then(|| unsafe { slice::from_raw_parts(tensor.data_ptr().cast(), tensor.numel()) })
}

/// The same, to be changed; nothing else may read or write them meanwhile.
pub(crate) fn numbers_mut(tensor: &mut Tensor) -> Option<&mut [f32]> {
    // SAFETY: as above; tensors that share memory are not used at the same time.
    is_plain(tensor).then(|| unsafe { slice::from_raw_parts_mut(tensor.data_ptr().cast(), tensor.numel()) })
}

/// Lets the process keep all memory that it has had. Otherwise the C library maps and unmaps each large tensor of each
/// step, and the system clears it page by page, which takes half the time of training by PyTorch.
pub(crate) fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Larger blocks than the system would be asked for singly; the largest numbers that the calls take.
        let settings =
            [(libc::M_MMAP_MAX, 0), (libc::M_TRIM_THRESHOLD, i32::MAX), (libc::M_TOP_PAD, 64 << 20)];
        for (parameter, value) in settings {
            // SAFETY: it only sets a number of the allocator, under its lock. A refusal changes nothing.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}

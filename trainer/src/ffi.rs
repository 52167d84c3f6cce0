//! Unsafe operations: a tensor's elements as a slice, and settings of the C library's allocator.
//!
//! The only module of this crate with `unsafe`.
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

/// The elements of a contiguous 32-bit tensor on the CPU. While the slice exists, nothing may write to the tensor or
/// to another one with the same memory.
pub(crate) fn numbers(tensor: &Tensor) -> Option<&[f32]> {
    // SAFETY: the tensor owns memory for as many floats and lives as long as the slice.
    is_plain(tensor).then(|| unsafe { slice::from_raw_parts(tensor.data_ptr().cast(), tensor.numel()) })
}

/// The elements as a mutable slice. While the slice exists, nothing else may access the elements.
pub(crate) fn numbers_mut(tensor: &mut Tensor) -> Option<&mut [f32]> {
    // SAFETY: as above; tensors that share memory are not used at the same time.
    is_plain(tensor).then(|| unsafe { slice::from_raw_parts_mut(tensor.data_ptr().cast(), tensor.numel()) })
}

/// Makes the allocator keep freed memory. By default, the C library maps and unmaps each large tensor in each step,
/// and the system clears every page. With PyTorch, this takes half of the training time.
pub(crate) fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // No separate mappings for large blocks, and the largest values that the calls accept.
        let settings =
            [(libc::M_MMAP_MAX, 0), (libc::M_TRIM_THRESHOLD, i32::MAX), (libc::M_TOP_PAD, 64 << 20)];
        for (parameter, value) in settings {
            // SAFETY: sets a parameter of the allocator under its lock. A refusal has no effect.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}

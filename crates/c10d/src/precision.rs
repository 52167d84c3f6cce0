//! The precision in which PyTorch computes, where tch leaves a default: autocast in float16, and TF32 on GPUs.

use crate::error::{Error, Result};
use crate::ffi;

/// Computes products in bfloat16, and sums and other functions that need it in the kind of their arguments, as PyTorch's
/// autocast does. Applies to calls of this thread, on every device. Backward passes compute in the kinds of their forward
/// pass, inside or outside.
///
/// ```
/// use tch::{Kind, Tensor};
///
/// let numbers = Tensor::from_slice(&[1.0f32, 2.0]).view([1, 2]);
/// let product = |numbers: &Tensor| numbers.matmul(&numbers.tr());
/// assert_eq!(c10d::in_bfloat16(|| product(&numbers).kind())?, Kind::BFloat16);
/// assert_eq!(product(&numbers).kind(), Kind::Float);
/// # Ok::<(), c10d::Error>(())
/// ```
pub fn in_bfloat16<T>(compute: impl FnOnce() -> T) -> Result<T> {
    let _until_the_end = ffi::Bfloat16::begin()
        .map_err(|failure| Error::Torch { call: "bfloat16".to_owned(), detail: failure.text })?;
    Ok(compute())
}

/// Makes GPUs multiply 32-bit numbers with all of their bits, in the whole process. By default, cuDNN rounds the factors to
/// 11 bits (TF32).
pub fn forbid_tf32() {
    ffi::forbid_tf32();
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tch::{Device, Kind, Tensor};

    use super::in_bfloat16;

    fn product() -> Kind {
        let numbers = Tensor::ones([2, 2], (Kind::Float, Device::Cpu));
        numbers.matmul(&numbers).kind()
    }

    #[test]
    fn a_computation_that_panics_ends_it() {
        let ended = catch_unwind(AssertUnwindSafe(|| in_bfloat16(|| panic!("{:?}", product()))));
        assert_eq!(ended.unwrap_err().downcast_ref::<String>().map(String::as_str), Some("BFloat16"));
        assert_eq!(product(), Kind::Float);
    }

    #[test]
    fn other_threads_compute_in_their_own_kind() {
        let kinds = in_bfloat16(|| [product(), std::thread::spawn(product).join().unwrap()]).unwrap();
        assert_eq!(kinds, [Kind::BFloat16, Kind::Float]);
    }
}

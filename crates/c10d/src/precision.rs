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
    let _until_the_end = ffi::Autocast::in_bfloat16().map_err(failed)?;
    Ok(compute())
}

/// Computes in the kinds of the arguments, also inside [`in_bfloat16`]. `compute` gets whether this is inside it. For calls
/// whose autocast ignores its kind: on GPUs, that of cuDNN's LSTM is float16.
///
/// ```
/// use tch::{Kind, Tensor};
///
/// let numbers = Tensor::from_slice(&[1.0f32, 2.0]).view([1, 2]);
/// let product = |numbers: &Tensor| numbers.matmul(&numbers.tr()).kind();
/// let found = c10d::in_bfloat16(|| c10d::in_own_kinds(|is_inside| (is_inside, product(&numbers))))??;
/// assert_eq!(found, (true, Kind::Float));
/// assert!(!c10d::in_own_kinds(|is_inside| is_inside)?);
/// # Ok::<(), c10d::Error>(())
/// ```
pub fn in_own_kinds<T>(compute: impl FnOnce(bool) -> T) -> Result<T> {
    let until_the_end = ffi::Autocast::off().map_err(failed)?;
    Ok(compute(until_the_end.was_on()))
}

fn failed(failure: ffi::Failure) -> Error {
    Error::Torch { call: "autocast".to_owned(), detail: failure.text }
}

/// Makes GPUs multiply 32-bit numbers with all of their bits, in the whole process. By default, cuDNN rounds the factors to
/// 11 bits (TF32).
pub fn forbid_tf32() {
    ffi::forbid_tf32();
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use program::threads::spawn;
    use tch::{Device, Kind, Tensor};

    use super::{in_bfloat16, in_own_kinds};

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
    fn an_inner_computation_ends_without_effect_on_the_outer_one() {
        let kinds = in_bfloat16(|| {
            let inner = in_bfloat16(product).unwrap();
            let own = in_own_kinds(|is_inside| (is_inside, product())).unwrap();
            assert_eq!(own, (true, Kind::Float));
            [inner, product()]
        });
        assert_eq!(kinds.unwrap(), [Kind::BFloat16; 2]);
        assert_eq!(product(), Kind::Float);
    }

    #[test]
    fn other_threads_compute_in_their_own_kind() {
        let elsewhere = || thread::scope(|scope| spawn(scope, product).join().unwrap());
        let kinds = in_bfloat16(|| [product(), elsewhere()]).unwrap();
        assert_eq!(kinds, [Kind::BFloat16, Kind::Float]);
    }
}

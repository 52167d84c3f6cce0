//! A rank's share of a batch as tensors, and its loss.

use runs::recipe::Precision;
use tch::{Kind, Tensor};

use crate::error::Result;

/// A share with B rows; the longest has T tokens.
pub(super) struct Share<'a> {
    /// `[B, T]`
    pub(super) tokens: Tensor,
    /// `[B]`, each 1 to T.
    pub(super) lengths: Tensor,
    /// The lengths, on the host.
    pub(super) row_lengths: &'a [i64],
    /// `[B]`
    pub(super) weights: Tensor,
}

/// A loss, and a tensor with its gradients.
#[derive(Debug)]
pub struct Weighed {
    /// A tensor whose gradients are those of the loss.
    pub gradients: Tensor,
    /// The loss, a 64-bit number on the device, for which the host need not wait.
    pub loss: Tensor,
}

/// The element kind of weights.
pub fn kind_of(precision: Precision) -> Kind {
    match precision {
        Precision::F32 | Precision::Bf16 => Kind::Float,
        Precision::F64 => Kind::Double,
    }
}

pub(super) fn in_precision<T>(precision: Precision, compute: impl FnOnce() -> Result<T>) -> Result<T> {
    match precision {
        Precision::Bf16 => c10d::in_bfloat16(compute)?,
        Precision::F32 | Precision::F64 => compute(),
    }
}

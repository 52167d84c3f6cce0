//! Reduction of several ranks' values to one.

use tch::Kind;

/// Reduction of several ranks' values to one.
///
/// ```
/// # use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
/// # use tch::Tensor;
/// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
/// let mut slowest_s = Tensor::from_slice(&[0.25f64]);
/// group.all_reduce(&mut slowest_s, ReduceOp::Max)?;
/// assert_eq!(slowest_s, Tensor::from_slice(&[0.25f64]));
/// # Ok::<(), c10d::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// Their sum.
    Sum = 0,
    /// Their sum divided by the number of ranks.
    Mean = 1,
    /// Their product.
    Product = 2,
    /// Their minimum.
    Min = 3,
    /// Their maximum.
    Max = 4,
    /// Bitwise AND.
    BitAnd = 5,
    /// Bitwise OR.
    BitOr = 6,
    /// Bitwise XOR.
    BitXor = 7,
}

impl ReduceOp {
    /// Whether this reduction supports a kind. Gloo has no 16-bit integers, and bool has no sum.
    ///
    /// ```
    /// use c10d::ReduceOp;
    /// use tch::Kind;
    /// assert!(ReduceOp::Sum.takes(Kind::BFloat16) && ReduceOp::BitXor.takes(Kind::Int64));
    /// assert!(!ReduceOp::BitXor.takes(Kind::Float) && !ReduceOp::Sum.takes(Kind::Bool));
    /// ```
    pub fn takes(self, kind: Kind) -> bool {
        let integer = matches!(kind, Kind::Uint8 | Kind::Int8 | Kind::Int | Kind::Int64);
        let real = matches!(kind, Kind::Half | Kind::BFloat16 | Kind::Float | Kind::Double);
        let complex = matches!(kind, Kind::ComplexFloat | Kind::ComplexDouble);
        match self {
            Self::Sum => integer || real || complex,
            Self::Mean => real || complex,
            Self::Product | Self::Min | Self::Max => integer || real,
            Self::BitAnd | Self::BitOr | Self::BitXor => integer,
        }
    }
}

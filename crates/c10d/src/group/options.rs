//! What a program chooses of a group and of a reduction.

use std::time::Duration;

use tch::Kind;

use super::check;
use crate::watch::Key;

/// What carries the tensors.
///
/// ```
/// use c10d::Backend;
/// assert_ne!(Backend::Gloo, Backend::Nccl { device: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// TCP between processors, for tensors on the CPU, by the interface by which this rank reaches the store, or those
    /// of `GLOO_SOCKET_IFNAME`.
    Gloo,
    /// NVIDIA's library, for tensors on this GPU. One rank a GPU.
    Nccl {
        /// The GPU's number on this machine: by custom the local rank.
        device: usize,
    },
}

/// How a group behaves.
///
/// ```
/// use std::time::Duration;
/// let options = c10d::Options { timeout: Duration::from_secs(60), ..Default::default() };
/// assert_eq!(options.silence, Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest that a collective may take, and that ranks wait for each other at the start: what the slowest
    /// healthy rank may be late by.
    pub timeout: Duration,
    /// After this long without a word from its thread a rank counts as lost. At least 0.1 s.
    pub silence: Duration,
    /// The group's name, the same on all its ranks and used once in a store. "0" is where the default group of
    /// `torch.distributed.init_process_group` meets.
    pub name: String,
    /// By which the ranks' watches know each other, the same on all ranks. None: by a token in the store, which
    /// whoever reaches the store can read, and then end calls with a loss that is none.
    pub key: Option<Key>,
    /// Whether calls are compared before they are made: one more small collective for each, after which every rank
    /// knows who is about to make another one, or the same with another shape or kind. Without it such calls end at
    /// the time limit, give wrong values, or, where a message is longer than expected, end the process. Calls that
    /// start work then wait until all ranks are in them, and receives of one tag from one rank are to be waited for
    /// in their order. It takes effect where all ranks ask for it, which Python ranks do not.
    ///
    /// Off, but for debug builds and where `TORCH_DISTRIBUTED_DEBUG` is `DETAIL`, as for PyTorch's own groups.
    pub checked: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            silence: Duration::from_secs(5),
            name: "0".to_owned(),
            key: None,
            checked: check::by_default(),
        }
    }
}

/// How values of several ranks become one.
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
    /// The least.
    Min = 3,
    /// The greatest.
    Max = 4,
    /// Bits set on every rank.
    BitAnd = 5,
    /// Bits set on some rank.
    BitOr = 6,
    /// Bits set on an odd number of ranks.
    BitXor = 7,
}

impl ReduceOp {
    /// Whether elements of this kind can be reduced so. Gloo knows no 16-bit integers, and truth values have no sum.
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

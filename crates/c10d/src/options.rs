//! What a program chooses of a group.

use std::env;
use std::time::Duration;

use crate::key::Key;

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
            checked: checked_by_default(),
        }
    }
}

/// Whether to check where the program does not say: in a debug build, and where PyTorch would check its own groups.
fn checked_by_default() -> bool {
    cfg!(debug_assertions)
        || env::var("TORCH_DISTRIBUTED_DEBUG").is_ok_and(|level| level.eq_ignore_ascii_case("DETAIL"))
}

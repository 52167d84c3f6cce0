//! Options of a group.

use std::env;
use std::time::Duration;

use crate::key::Key;

const TIMEOUT: Duration = Duration::from_secs(600);

/// The library that transfers tensors.
///
/// ```
/// use c10d::Backend;
/// assert_ne!(Backend::Gloo, Backend::Nccl { device: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// TCP, for tensors on the CPU. Uses the interface through which this rank reaches the store, or those in
    /// `GLOO_SOCKET_IFNAME`.
    Gloo,
    /// NVIDIA's NCCL, for tensors on this GPU. One rank per GPU.
    Nccl {
        /// The GPU's number on this machine, usually the local rank.
        device: usize,
    },
}

/// Options of a group.
///
/// ```
/// use std::time::Duration;
/// let options = c10d::Options { timeout: Duration::from_secs(60), ..Default::default() };
/// assert_eq!(options.silence, Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum duration of a collective. It must allow for the slowest healthy rank.
    pub timeout: Duration,
    /// Maximum wait for the other ranks at the start.
    pub joining: Duration,
    /// A rank whose watch thread sends nothing for this long counts as lost. At least 0.1 s.
    pub silence: Duration,
    /// The group's name, equal on all its ranks and unique in a store. "0" is the name of the default group of
    /// `torch.distributed.init_process_group`.
    pub name: String,
    /// Key with which the ranks' watches authenticate each other, equal on all ranks. If it is None, they use a
    /// token in the store. Anyone who can read the store can then send false losses and so end calls.
    pub key: Option<Key>,
    /// Compares the calls of all ranks before their data is sent, with one additional small collective per call.
    /// If another rank makes a different call, or the same call with another shape or kind, every rank gets an
    /// error. Without checks, such calls time out, give wrong values or, if a message is too long, abort the
    /// process. With checks, calls that start work wait until all ranks have made them, and receives with the same
    /// tag from the same rank must be waited for in the order of their start. Takes effect only if all ranks
    /// enable it; Python ranks cannot.
    ///
    /// Default: off, except in debug builds and if `TORCH_DISTRIBUTED_DEBUG` is `DETAIL`, as for PyTorch's groups.
    pub checked: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: TIMEOUT,
            joining: TIMEOUT,
            silence: Duration::from_secs(5),
            name: "0".to_owned(),
            key: None,
            checked: checked_by_default(),
        }
    }
}

/// The default of `checked`: on in debug builds, and if PyTorch would check its own groups.
fn checked_by_default() -> bool {
    cfg!(debug_assertions)
        || env::var("TORCH_DISTRIBUTED_DEBUG").is_ok_and(|level| level.eq_ignore_ascii_case("DETAIL"))
}

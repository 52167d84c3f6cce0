//! What torchrun and `trainer launch` state in the environment of a rank.

use std::env;

/// The rank among those of this machine.
pub(crate) fn local_rank() -> usize {
    env::var("LOCAL_RANK").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// How often torchrun has restarted the ranks.
pub(crate) fn restarts() -> usize {
    c10d::Launch::from_env().map_or(0, |launch| launch.restarts)
}

//! What torchrun and `trainer launch` state in the environment of a rank.

use std::env;
use std::str::FromStr;

/// The rank among those of this machine.
pub(crate) fn local_rank() -> usize {
    number("LOCAL_RANK").unwrap_or(0)
}

/// How often torchrun has restarted the ranks.
pub(crate) fn restarts() -> usize {
    c10d::Launch::from_env().map_or(0, |launch| launch.restarts)
}

fn number<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}

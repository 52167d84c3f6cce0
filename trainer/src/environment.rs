//! What torchrun and `trainer launch` state in the environment of a rank.

use std::env;
use std::str::FromStr;

use program::exit::{Exit, Failed};

use crate::error::{Error, Result};

/// Whether this process is one of several ranks, which communicate through libtorch.
pub(crate) fn has_ranks() -> bool {
    env::var_os("RANK").is_some() && env::var_os("WORLD_SIZE").is_none_or(|size| size != "1")
}

/// Refuses to run a command as one of several ranks: each would do all of its work.
pub(crate) fn check_alone(command: &str) -> Result<()> {
    match env::var("WORLD_SIZE") {
        Ok(found) if found != "1" => Err(Error::Setting {
            setting: "WORLD_SIZE",
            found,
            expected: format!("1, because {command} has one rank; run it without launch and torchrun"),
        }),
        _ => Ok(()),
    }
}

/// Refuses to train n-grams as one of several ranks, which earlier releases did.
pub(crate) fn refuse_ranks() -> Result<()> {
    match env::var("WORLD_SIZE") {
        Ok(found) if found != "1" => {
            let message = format!(
                "WORLD_SIZE is {found}, expected 1 for ngrams: one process with --threads is faster than ranks; run it \
                 without launch and torchrun"
            );
            Err(Failed::new(Exit::Usage, message).into())
        }
        _ => Ok(()),
    }
}

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

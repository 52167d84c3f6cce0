//! Joins ranks to a group. If this fails, reports the ranks that did not join.

use std::time::Duration;

use super::{Backend, Options, invalid};
use crate::address::Route;
use crate::error::{Cause, Error, Result};
use crate::ffi::{self, Failure, Status};
use crate::store::{TcpStore, in_time_unless, millis};
use crate::watch::Watch;

// Ten heartbeats of 10 ms. On a busy machine, the delay of a thread can exceed a shorter limit.
const SILENCE_MIN: Duration = Duration::from_millis(100);
// Additional time for creating a group before it is abandoned.
const GRACE: Duration = Duration::from_secs(5);

pub(super) fn check_place(rank: usize, world_size: usize, options: &Options) -> Result<()> {
    if rank >= world_size {
        return Err(invalid_joining(format!("rank {rank} is out of range; the world size is {world_size}")));
    }
    if i32::try_from(world_size).is_err() {
        return Err(invalid_joining(format!(
            "world size {world_size}, expected at most 2147483647, PyTorch's limit"
        )));
    }
    if options.silence < SILENCE_MIN {
        return Err(invalid_joining(format!(
            "silence limit {:?}, expected at least {SILENCE_MIN:?}",
            options.silence
        )));
    }
    Ok(())
}

/// The key prefix of torch.distributed's default group in the store, without the device name.
fn store_path(name: &str) -> String {
    format!("default_pg/{name}/")
}

pub(super) fn present_key(name: &str, rank: usize) -> String {
    format!("c10d/present/{name}/{rank}")
}

/// The longest wait for the other ranks.
fn limit(options: &Options) -> Duration {
    options.joining.min(options.timeout)
}

/// Creates the group on a separate thread, because waiting for another rank's store, and NCCL for a lost rank, has no time
/// limit.
pub(super) fn join(
    store: &TcpStore,
    rank: usize,
    world_size: usize,
    backend: Backend,
    options: &Options,
    watch: &Watch,
) -> ffi::Result<ffi::Group> {
    let timeout_ms = millis(options.timeout);
    let path = store.full(&store_path(&options.name));
    let address = Route::to(store.host(), store.port()).map_err(|error| Failure {
        status: Status::Failed,
        text: format!("this rank has no address that other ranks can reach: {error}"),
    })?;
    let address = address.own.to_string();
    let store = std::sync::Arc::clone(store.raw());
    let is_lost = || watch.loss_within(Duration::ZERO).is_some_and(|loss| loss.cause != Cause::Left);
    in_time_unless(is_lost, limit(options).saturating_add(GRACE), move || match backend {
        Backend::Gloo => ffi::Group::gloo(&store, &path, rank, world_size, &address, timeout_ms),
        Backend::Nccl { device } => ffi::Group::nccl(&store, &path, rank, world_size, device, timeout_ms),
    })
}

/// Why joining failed: a rank died meanwhile, or never joined.
pub(super) fn explain_absence(
    store: &TcpStore,
    rank: usize,
    world_size: usize,
    options: &Options,
    watch: &Watch,
    failure: Failure,
) -> Error {
    let call = "joining a group".to_owned();
    if let Some(loss) = watch.loss_within(Duration::ZERO) {
        return Error::PeerLost { call, loss };
    }
    // Python ranks set only Gloo's key.
    let has_joined = |other: usize| {
        other == rank
            || store.is_set(&present_key(&options.name, other)).unwrap_or(false)
            || store.is_set(&format!("{}/cpu//0/{other}", store_path(&options.name))).unwrap_or(false)
    };
    let missing: Vec<String> =
        (0..world_size).filter(|&other| !has_joined(other)).map(|rank| rank.to_string()).collect();
    match &missing[..] {
        [] if failure.status == Status::Invalid => Error::Invalid { call, detail: failure.text },
        [] => Error::Communication { call, detail: failure.text },
        [one] => Error::Rendezvous {
            detail: format!(
                "rank {one} of {world_size} did not join the group within {} s; check that it is running and can reach this machine",
                limit(options).as_secs_f64()
            ),
        },
        several => Error::Rendezvous {
            detail: format!(
                "ranks {} of {world_size} did not join the group within {} s; check that they are running and can reach this machine",
                several.join(", "),
                limit(options).as_secs_f64()
            ),
        },
    }
}

pub(crate) fn invalid_joining(detail: String) -> Error {
    invalid("joining a group", detail)
}

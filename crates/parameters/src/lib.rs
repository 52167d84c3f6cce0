//! Tables of rows of floats on one or more servers. Workers pull rows and push updates of them. Nothing here knows what the
//! rows mean.
//!
//! - **Sharding.** Row r is on server r modulo the number of servers.
//! - **Staleness.** A worker has a clock, the number of its completed steps. With the bound s, a pull for step t waits until
//!   all workers have completed t - s steps (Ho et al. 2013, "More effective distributed ML via a stale synchronous
//!   parallel parameter server"). With s = 0, the pushes of a step are applied in the order of workers when all have
//!   arrived, so that the result does not depend on their timing.
//! - **Exactly once.** A push is identified by worker, step and part. A push that is repeated, also by a worker that was
//!   started again, is acknowledged and not applied again.
//! - **Keys.** Rows can belong to keys that are counted with pushes ([`Commit`]), on the first server. A push also has the place
//!   of its worker in its input, so that updates, counts and place are durable together, and are applied once.
//! - **Durable.** A push is in a log on disk before it is acknowledged ([`LogSync`]). Snapshots shorten the log while the
//!   server continues.
//! - **Bounded.** Messages, queues, tables and waits have limits, and what exceeds them is refused by name.
//!
//! [`Server`] serves, and [`Client`] is for workers and readers. Ranks have a server in the process of rank 0
//! ([`ServerOptions::of_ranks`]), with a staleness of 0.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod client;
mod error;
mod keys;
mod ledger;
mod log;
mod messages;
mod refusal;
mod security;
mod server;
mod snapshot;
mod spec;
mod state;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod values;

/// What `build.rs` generates.
#[allow(missing_docs, clippy::all, rust_2018_idioms, reason = "generated")]
mod service {
    include!(concat!(env!("OUT_DIR"), "/sentimill.parameters.v1.Parameters.rs"));
}

use std::time::Duration;

pub use client::{
    Client, ClientOptions, Commit, Joined, KeyRange, Moment, Pulled, Pulling, Pushing, Read, Sent, Update,
};
pub use error::{Error, Result};
pub use keys::KEY_BYTES_MAX;
pub use ledger::{KeyStatistics, Ledger, SinceStart, Statistics, TableStatistics, WorkerStatistics};
pub use messages::{Ending, LineCounts};
pub use security::{TlsFiles, Token};
#[doc(hidden)]
pub use server::fuzzing;
pub use server::{LogSync, Server, ServerOptions, Stage};
pub use spec::{DIM_MAX, Initial, Optimizer, Spec};
pub use state::LEFT;
pub use tables::Tables;
pub use values::Wire;

/// Maximum bytes of a message.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Maximum bytes of a worker's place.
const PLACE_BYTES_MAX: usize = 6 << 20;
/// Bytes of rows and values that the client puts into a message, below the maximum.
const PART_BYTES: usize = 4 << 20;
/// Time for which a server lets a pull wait before it asks the client to ask again.
const WAIT: Duration = Duration::from_secs(5);
/// A rank that is silent for longer is lost.
const SILENCE: Duration = Duration::from_secs(10);
/// Time limit of one attempt of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

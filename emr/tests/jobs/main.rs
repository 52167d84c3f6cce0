//! Jobs on an Amazon EMR on this machine, whose steps run on a real Hadoop: `run`, `watch`, `status`, `list`, `cancel` and
//! `terminate`, with faults of the service and of clusters.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod failing;
mod once;
mod refused;
mod unknown;
mod world;

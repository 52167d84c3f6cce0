//! Converts a job file into requests to a cluster, and the cluster's answers and logs into one result.
//!
//! Each subcommand is a file of `commands/`. Nothing here reads reviews.

pub mod arguments;
pub mod commands;
pub mod diagnose;
pub mod doctor;
mod error;
pub mod finding;
pub mod job;
pub mod logs;
pub mod plan;

pub use error::Error;

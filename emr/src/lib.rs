//! Converts a job file into requests to a cluster, and the cluster's answers and logs into one result.
//!
//! Each subcommand is a file of `commands/`. Nothing here reads reviews.

pub mod arguments;
pub mod client;
pub mod cluster;
pub mod commands;
pub mod cost;
pub mod credentials;
pub mod diagnose;
pub mod doctor;
mod error;
pub mod failures;
pub mod finding;
pub mod follow;
pub mod gpus;
mod idle;
pub mod interrupt;
pub mod job;
pub mod logs;
mod online;
pub mod plan;
pub mod result;
pub mod runner;
pub mod secrets;
pub mod submission;

pub use error::Error;

//! How a dataset is read.

use crate::division::Division;

/// How a dataset is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The division into splits.
    pub division: Division,
    /// Maximum tokens per row; further tokens are ignored. 0 means no limit.
    pub tokens_max: u32,
    /// Memory limit for rows. Chunk readers and queued batches take some megabytes more.
    pub memory_bytes: u64,
}

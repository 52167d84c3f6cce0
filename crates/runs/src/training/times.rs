//! What a rank does with its time: it computes, or it waits, for its batches or for the other ranks.

use serde::{Deserialize, Serialize};

/// What one rank did in an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankTimes {
    /// The rank.
    pub rank: usize,
    /// Rows of its shares.
    pub rows: u64,
    /// What it took.
    pub seconds: f64,
    /// Of that, what it waited for its batches.
    pub waited_for_batches_s: f64,
    /// Of that, what it waited for the others, the transfer of gradients included. `None` on a GPU, whose own work
    /// cannot be told from it.
    pub waited_for_ranks_s: Option<f64>,
}

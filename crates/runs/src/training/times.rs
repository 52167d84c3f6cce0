//! How a rank spends its time: it computes, or it waits for batches or for the other ranks.

use serde::{Deserialize, Serialize};

/// One rank's times in an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankTimes {
    /// The rank.
    pub rank: usize,
    /// Number of rows in its shares.
    pub rows: u64,
    /// Duration.
    pub seconds: f64,
    /// Time spent waiting for batches.
    pub waited_for_batches_s: f64,
    /// Time spent waiting for the other ranks, including the transfer of gradients. `None` on a GPU, where it cannot
    /// be separated from computation.
    pub waited_for_ranks_s: Option<f64>,
}

//! How a rank spends its time: it computes, or it waits for batches or for the other ranks.

use std::ops::Add;

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
    /// Time spent waiting for the other ranks, including the transfer of gradients. `None` in older files of ranks on
    /// GPUs.
    pub waited_for_ranks_s: Option<f64>,
    /// Where the time of its steps went; `None` on a GPU without other ranks, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// Where the time of steps went, in seconds. What is left of the duration is logging, checkpoints and the change of
/// shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Waiting for batches.
    pub loading_s: f64,
    /// Computing outputs.
    pub forward_s: f64,
    /// Computing losses and gradients.
    pub backward_s: f64,
    /// Waiting until the slowest rank has computed its gradients; on GPUs, also exchanging them.
    pub waiting_s: f64,
    /// Exchanging gradients; on GPUs, only what precedes the exchange.
    pub reduction_s: f64,
    /// Clipping gradients and changing weights.
    pub optimizer_s: f64,
    /// Bytes sent to other ranks, without those of protocols.
    pub sent_bytes: u64,
}

impl Profile {
    /// The phases in their order, each with its name and its seconds.
    pub fn phases(&self) -> [(&'static str, f64); 6] {
        [
            ("loading", self.loading_s),
            ("forward", self.forward_s),
            ("backward", self.backward_s),
            ("waiting", self.waiting_s),
            ("reduction", self.reduction_s),
            ("optimizer", self.optimizer_s),
        ]
    }
}

impl Add for Profile {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            loading_s: self.loading_s + other.loading_s,
            forward_s: self.forward_s + other.forward_s,
            backward_s: self.backward_s + other.backward_s,
            waiting_s: self.waiting_s + other.waiting_s,
            reduction_s: self.reduction_s + other.reduction_s,
            optimizer_s: self.optimizer_s + other.optimizer_s,
            sent_bytes: self.sent_bytes.saturating_add(other.sent_bytes),
        }
    }
}

/// The mean share of a batch that a rank computed since the previous line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareTimes {
    /// Rows.
    pub rows: f64,
    /// What the time grows with: tokens; if PyTorch computes the gradients, with padding. `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<f64>,
    /// Seconds of computing, including the optimizer.
    pub computed_s: f64,
    /// Seconds of the rest of the batch: loading, waiting, the exchange of gradients, logging and checkpoints.
    pub rest_s: f64,
}

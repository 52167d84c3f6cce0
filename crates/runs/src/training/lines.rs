//! The lines of `metrics.jsonl`.

use serde::{Deserialize, Serialize};

use super::RankTimes;
use scoring::Metrics;

/// What has happened, one JSON object a line. What is absent in lines of an older version has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Line {
    /// A process has begun to train, or goes on: what lines before this one say of later steps is void.
    Start {
        /// Of the folder.
        version: u32,
        /// Seconds since 1970.
        unix_s: f64,
        /// Steps that are done.
        step: u64,
        /// Processes that train together.
        world_size: usize,
        /// What rank 0 computes on.
        device: String,
    },
    /// Some steps.
    Steps {
        /// The epoch, from 1.
        epoch: u32,
        /// Steps since the training began.
        step: u64,
        /// Their mean loss.
        loss: f64,
        /// The learning rate of the last one.
        rate: f64,
        /// The norm of its gradients, where they are clipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gradient_norm: Option<f64>,
        /// Reviews a second, on all ranks.
        reviews_per_s: f64,
        /// The share of the time that rank 0 waited for its batches.
        waited_share: f64,
        /// Seconds since this process began to train.
        #[serde(default)]
        elapsed_s: Option<f64>,
    },
    /// An epoch is over.
    Epoch {
        /// The epoch, from 1.
        epoch: u32,
        /// Steps since the training began.
        step: u64,
        /// The mean loss of its rows, while the weights changed.
        loss: f64,
        /// What its steps took, those after `from_step`: the ones before were another process's.
        #[serde(default)]
        seconds: Option<f64>,
        /// The step that the time is measured from.
        #[serde(default)]
        from_step: Option<u64>,
        /// What the validation rows say, where there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        validation: Option<Metrics>,
        /// What each rank did in that time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranks: Vec<RankTimes>,
    },
    /// The test rows were looked at.
    Test {
        /// Steps since the training began.
        step: u64,
        /// What they say.
        metrics: Metrics,
    },
}

impl Line {
    /// Steps that were done then.
    pub fn step(&self) -> u64 {
        match *self {
            Self::Start { step, .. }
            | Self::Steps { step, .. }
            | Self::Epoch { step, .. }
            | Self::Test { step, .. } => step,
        }
    }
}

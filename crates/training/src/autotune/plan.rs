//! The plan of a search, and its trials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::command::Trained;
use super::search::{Flags, Space};
use crate::arguments::{MetricName, SearchArguments};

/// Time for all that follows the trials, if it is less than a tenth of the whole time.
const RESERVE: Duration = Duration::from_secs(1);

/// What is searched, and for how long.
pub struct Plan {
    /// When the command began.
    pub began: Instant,
    /// The flags of the search.
    pub arguments: SearchArguments,
    /// Whether the result is printed as JSON.
    pub is_json: bool,
    /// The seed of the search.
    pub seed: u64,
    /// The settings that are searched.
    pub spaces: Vec<Space>,
    /// The training whose settings are searched.
    pub trained: Trained,
}

/// The metrics of a trial on the validation texts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Metrics {
    /// Share of texts that are predicted correctly.
    pub accuracy: f64,
    /// F1.
    pub f1: f64,
    /// Mean loss.
    pub loss: f64,
}

/// How a trial ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    Measured(Metrics),
    /// It reached its time limit, or was worse than others.
    Stopped,
    /// These settings cannot be trained.
    Failed(String),
}

/// A trial that has ended.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    /// From 1.
    pub(super) number: u32,
    pub(super) flags: Flags,
    pub(super) end: End,
    pub(super) seconds: f64,
}

/// When a trial must end.
#[derive(Clone, Debug)]
pub struct Limit {
    /// The time.
    pub at: Instant,
    pub(super) is_stopped: Arc<AtomicBool>,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    /// The time is over.
    Time,
    /// The number of trials was reached.
    Trials,
    /// All settings were tried.
    Exhausted,
    /// A signal arrived.
    Interrupted,
}

impl Plan {
    /// The end of all trials. A part of the time remains for the end of the program.
    pub(super) fn end(&self) -> Instant {
        let all = Duration::from_secs_f64(60.0 * self.arguments.minutes);
        self.began + all - RESERVE.min(all / 10)
    }
}

impl Metrics {
    /// The value of a metric.
    pub(super) fn value(&self, metric: MetricName) -> f64 {
        match metric {
            MetricName::Accuracy => self.accuracy,
            MetricName::F1 => self.f1,
            MetricName::Loss => self.loss,
        }
    }

    /// The value of a metric, negated if lower is better.
    pub fn score(&self, metric: MetricName) -> f64 {
        match metric {
            MetricName::Loss => -self.loss,
            _ => self.value(metric),
        }
    }
}

impl Trial {
    pub(super) fn score(&self, metric: MetricName) -> Option<f64> {
        match &self.end {
            End::Measured(metrics) => Some(metrics.score(metric)),
            End::Stopped | End::Failed(_) => None,
        }
    }
}

impl Limit {
    /// Whether the trial must end now.
    pub fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || Instant::now() >= self.at
    }
}

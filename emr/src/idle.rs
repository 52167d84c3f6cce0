//! A cluster that waits without work: since when, what it costs, and what ends it.

use serde::Serialize;

use crate::client::Emr;
use crate::cluster::Cluster;
use crate::cost::{Cost, now_unix_s};
use crate::follow::JobState;

/// A cluster without work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Idle {
    /// Since when, in seconds since 1970.
    pub since_unix_s: Option<u64>,
    /// Seconds of idleness after which EMR terminates it, if it does.
    pub timeout_s: Option<u64>,
    /// What it costs per hour, if all prices are known.
    pub per_hour: Option<f64>,
    /// The currency.
    pub currency: String,
    /// Whether EMR refuses to terminate it.
    pub is_protected: bool,
}

impl Idle {
    /// The facts about a cluster, if it is idle.
    pub fn of(emr: &Emr, state: &JobState, cost: &Cost) -> Option<Self> {
        let JobState { cluster, steps, .. } = state;
        state.is_idle().then(|| Self {
            since_unix_s: since(cluster, steps.iter().filter_map(|step| step.times.ended_unix_s).max()),
            // A role may lack this permission; then the time limit is unknown.
            timeout_s: emr.idle_timeout_s(&cluster.id).ok().flatten(),
            per_hour: cost.per_hour,
            currency: cost.currency.clone(),
            is_protected: cluster.is_protected,
        })
    }

    /// `j-1 has been idle for 12 min and costs 0.83 USD per hour; EMR terminates it after 15 min without work; …`
    pub fn sentence(&self, cluster: &str) -> String {
        let is_idle = match self.since_unix_s {
            Some(since) => format!("has been idle for {}", duration(now_unix_s().saturating_sub(since))),
            None => "is idle".to_owned(),
        };
        let cost = match self.per_hour {
            Some(amount) => format!("costs {amount:.2} {} per hour", self.currency),
            None => "costs money (the job file lacks its prices)".to_owned(),
        };
        let end = match self.timeout_s {
            Some(timeout_s) => format!("EMR terminates it after {} without work", duration(timeout_s)),
            None => "no time limit ends it".to_owned(),
        };
        let protection = if self.is_protected { ", once its termination protection is off" } else { "" };
        format!(
            "{cluster} {is_idle} and {cost}; {end}; emr terminate --cluster {cluster} ends it now{protection}"
        )
    }
}

fn since(cluster: &Cluster, last_step: Option<u64>) -> Option<u64> {
    last_step.max(cluster.times.started_unix_s).or(cluster.times.created_unix_s)
}

/// A time in words: `45 s`, `12 min`, `3 h 5 min`.
pub fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_cluster_is_named_with_its_cost_its_limit_and_the_command_that_ends_it() {
        let idle = Idle {
            since_unix_s: Some(now_unix_s() - 725),
            timeout_s: Some(900),
            per_hour: Some(0.834),
            currency: "USD".to_owned(),
            is_protected: false,
        };
        assert_eq!(
            idle.sentence("j-1"),
            "j-1 has been idle for 12 min and costs 0.83 USD per hour; EMR terminates it after 15 min without work; \
             emr terminate --cluster j-1 ends it now"
        );
        let idle = Idle { timeout_s: None, per_hour: None, is_protected: true, since_unix_s: None, ..idle };
        assert_eq!(
            idle.sentence("j-1"),
            "j-1 is idle and costs money (the job file lacks its prices); no time limit ends it; \
             emr terminate --cluster j-1 ends it now, once its termination protection is off"
        );
    }

    #[test]
    fn a_time_has_at_most_two_units() {
        let times = [0, 59, 60, 3599, 3600, 11_100].map(duration);
        assert_eq!(times, ["0 s", "59 s", "1 min", "59 min", "1 h", "3 h 5 min"]);
    }
}

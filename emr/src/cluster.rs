//! Clusters, steps and instances as EMR reports them.

use std::collections::BTreeMap;

use aws_sdk_emr::types::{ClusterState, StepState};
use serde::{Serialize, Serializer};

/// A cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Its id: `j-2AXXXXXXGAPLF`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    #[serde(serialize_with = "cluster_state")]
    pub state: ClusterState,
    /// Why it is in this state.
    pub reason: Option<Reason>,
    /// The times of its life.
    pub times: Times,
    /// Its EMR release: `emr-7.14.0`.
    pub release: Option<String>,
    /// The folder of its logs.
    pub log_uri: Option<String>,
    /// Whether it waits for further steps instead of ending after the last one.
    pub stays: bool,
    /// Whether EMR refuses to terminate it.
    pub is_protected: bool,
    /// How many steps it runs at once.
    pub steps_at_once: u32,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// An entry of a listing of clusters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    #[serde(serialize_with = "cluster_state")]
    pub state: ClusterState,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its id: `s-1XXXXXXXXXXA`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    #[serde(serialize_with = "step_state")]
    pub state: StepState,
    /// Why it failed, as far as EMR reports it.
    pub reason: Option<Reason>,
    /// The URL of the log that EMR found the reason in.
    pub log_file: Option<String>,
    /// The times of its life.
    pub times: Times,
}

/// The reason for a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// A word for programs: `BOOTSTRAP_FAILURE`.
    pub code: Option<String>,
    /// A sentence for people.
    pub message: Option<String>,
}

/// Times in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// When it was requested.
    pub created_unix_s: Option<u64>,
    /// When a cluster or instance was ready, or a step started.
    pub started_unix_s: Option<u64>,
    /// When it ended.
    pub ended_unix_s: Option<u64>,
}

/// An instance of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Its id in the cluster: `ci-…`.
    pub id: String,
    /// Its type: `m5.xlarge`.
    pub instance_type: String,
    /// Whether it is a spot instance.
    pub is_spot: bool,
    /// Its instance group or fleet.
    pub group: Option<String>,
    /// Its state: `RUNNING`.
    pub state: String,
    /// The times of its life.
    pub times: Times,
}

impl Reason {
    /// The reason in words; empty if EMR gave none.
    pub fn text(&self) -> &str {
        self.message.as_deref().or(self.code.as_deref()).unwrap_or_default()
    }
}

/// Whether a cluster has ended.
pub fn has_ended(state: &ClusterState) -> bool {
    matches!(state, ClusterState::Terminated | ClusterState::TerminatedWithErrors)
}

/// Whether a cluster accepts steps.
pub fn accepts_steps(state: &ClusterState) -> bool {
    use ClusterState::{Bootstrapping, Running, Starting, Waiting};
    matches!(state, Starting | Bootstrapping | Running | Waiting)
}

/// Whether a step has ended.
pub fn step_has_ended(state: &StepState) -> bool {
    !matches!(state, StepState::Pending | StepState::Running | StepState::CancelPending)
}

/// Whether a step has ended without success.
pub fn step_has_failed(state: &StepState) -> bool {
    step_has_ended(state) && *state != StepState::Completed
}

fn cluster_state<S: Serializer>(state: &ClusterState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

fn step_state<S: Serializer>(state: &StepState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

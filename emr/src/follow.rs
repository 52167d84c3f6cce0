//! Follows a job on a cluster until it ends, and shows its progress.
//!
//! Maps and reduces come from the log of the Hadoop step, which EMR copies to S3 every five minutes. Committed
//! shards come from the run itself, at once.

mod display;
mod step_log;

use std::time::Duration;

use aws_sdk_emr::types::{ClusterState, StepState};
use program::bars::ProgressBars;
use store::{S3Options, Store};

use crate::client::{Emr, RequestFailure};
use crate::cluster::{self, Cluster, Step};
use crate::interrupt::Interrupt;
use crate::submission::steps_of;

use display::Display;
pub use step_log::{StepLog, exit_code};

/// Maximum number of consecutive intervals without a usable response.
const OUTAGE_INTERVALS: u32 = 30;
/// Number of intervals between two requests for the step's log.
const LOG_INTERVALS: u32 = 6;
/// Number of intervals in which a cluster that does not stay ends after its last step.
const ENDING_INTERVALS: u32 = 60;

/// What to follow.
#[derive(Debug)]
pub struct Followed<'a> {
    /// The client.
    pub emr: &'a Emr,
    /// The run of the job, if a job is followed.
    pub store: Option<&'a Store>,
    /// Options for the step's log.
    pub s3: &'a S3Options,
    /// The cluster.
    pub cluster: &'a str,
    /// The id of the run, which the names of its steps contain.
    pub run_id: &'a str,
    /// The number of partitions.
    pub partitions: u32,
    /// Time between two requests for a state.
    pub interval: Duration,
}

/// The state of a job.
#[derive(Clone, Debug)]
pub struct JobState {
    /// The cluster.
    pub cluster: Cluster,
    /// The steps of the job.
    pub steps: Vec<Step>,
    /// Whether a step of any job waits or runs on the cluster.
    pub is_busy: bool,
}

/// How following ended.
#[derive(Clone, Debug)]
pub enum End {
    /// All steps have completed.
    Completed(JobState),
    /// A step failed, or the cluster ended before the steps.
    Failed(JobState),
    /// Ctrl-C. The job continues.
    Interrupted,
}

impl JobState {
    /// Fetches the state of a job.
    pub fn of(emr: &Emr, cluster: &str, run_id: &str) -> Result<Self, RequestFailure> {
        let described = emr.cluster(cluster)?;
        Ok(Self::new(described, emr.steps(cluster)?, run_id))
    }

    /// The state of a job on a cluster with these steps.
    pub fn new(cluster: Cluster, steps: Vec<Step>, run_id: &str) -> Self {
        let is_busy = steps.iter().any(|step| !cluster::step_has_ended(&step.state));
        Self { cluster, steps: steps_of(steps, run_id), is_busy }
    }

    /// Whether all steps have completed. A cluster that waits for its first step has nothing to do either.
    pub fn is_complete(&self) -> bool {
        let is_complete = self.steps.iter().all(|step| step.state == StepState::Completed);
        is_complete && (!self.steps.is_empty() || self.is_idle())
    }

    /// Whether nothing of the job will run any more.
    pub fn has_ended(&self) -> bool {
        let has_steps = !self.steps.is_empty();
        let have_ended = self.steps.iter().all(|step| cluster::step_has_ended(&step.state));
        cluster::has_ended(&self.cluster.state) || (have_ended && (has_steps || self.is_idle()))
    }

    /// Whether the cluster costs money although it has no work. EMR calls it running for some seconds after its last step.
    pub fn is_idle(&self) -> bool {
        let Cluster { state, stays, .. } = &self.cluster;
        let has_worked = *state == ClusterState::Running && *stays && !self.steps.is_empty();
        !self.is_busy && (*state == ClusterState::Waiting || has_worked)
    }
}

/// Follows a job until it ends or a signal is received.
pub fn follow(
    job: &Followed<'_>,
    interrupt: &Interrupt,
    progress: &ProgressBars,
) -> Result<End, RequestFailure> {
    let mut display = Display::new(progress, job.partitions);
    let mut outage = 0;
    let mut log = None;
    for interval in 0.. {
        match JobState::of(job.emr, job.cluster, job.run_id) {
            Ok(state) => {
                outage = 0;
                display.show(&state);
                if state.has_ended() {
                    display.clear();
                    return ended(job, state, interrupt);
                }
                if interval % LOG_INTERVALS == 0 {
                    log = running_log(job, &state);
                }
                // A listing that fails is repeated at the next interval.
                let shards =
                    job.store.and_then(|store| store.list("commit/").ok()).map(|shards| shards.len());
                display.advance(&state, shards, log.as_ref());
            }
            Err(failure) if failure.is_temporary() && outage < OUTAGE_INTERVALS => {
                outage += 1;
                display.note(&format!("{failure} (the job continues)"));
            }
            Err(failure) => {
                display.clear();
                return Err(failure);
            }
        }
        if interrupt.sleep(job.interval) {
            break;
        }
    }
    display.clear();
    Ok(End::Interrupted)
}

/// The end of a job. Waits a while for the end of a cluster that does not stay, so that its cost is known.
fn ended(job: &Followed<'_>, mut state: JobState, interrupt: &Interrupt) -> Result<End, RequestFailure> {
    for _ in 0..ENDING_INTERVALS {
        if state.cluster.stays || cluster::has_ended(&state.cluster.state) || interrupt.sleep(job.interval) {
            break;
        }
        match JobState::of(job.emr, job.cluster, job.run_id) {
            Ok(latest) => state = latest,
            Err(failure) if failure.is_temporary() => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(if state.is_complete() { End::Completed(state) } else { End::Failed(state) })
}

/// The log of the running step, if it is in S3 already.
fn running_log(job: &Followed<'_>, state: &JobState) -> Option<StepLog> {
    let step = state.steps.iter().find(|step| step.state == StepState::Running)?;
    StepLog::read(&state.cluster, &step.id, job.s3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Times;

    fn state(cluster: ClusterState, steps: &[StepState]) -> JobState {
        let step = |state: &StepState| Step {
            id: "s-1".to_owned(),
            name: "merge".to_owned(),
            state: state.clone(),
            reason: None,
            log_file: None,
            times: Times::default(),
        };
        let cluster = Cluster {
            id: "j-1".to_owned(),
            name: String::new(),
            state: cluster,
            reason: None,
            times: Times::default(),
            release: None,
            log_uri: None,
            stays: true,
            is_protected: false,
            steps_at_once: 1,
            tags: Default::default(),
        };
        JobState::new(cluster, steps.iter().map(step).collect(), "")
    }

    #[test]
    fn a_cluster_without_open_steps_is_idle_before_emr_calls_it_waiting() {
        use ClusterState::{Bootstrapping, Running, Terminating, Waiting};
        use StepState::{Completed, Failed, Pending};
        for (cluster, steps, is_idle) in [
            (Running, &[Completed, Completed][..], true),
            (Running, &[Failed], true),
            (Running, &[Completed, Pending], false),
            (Waiting, &[Completed], true),
            (Waiting, &[], true),
            (Waiting, &[Pending], false),
            (Bootstrapping, &[], false),
            (Terminating, &[Completed], false),
        ] {
            let mut state = state(cluster, steps);
            assert_eq!(state.is_idle(), is_idle, "{state:?}");
            // A cluster that ends after its last step is not left behind.
            state.cluster.stays = false;
            assert!(!state.is_idle() || state.cluster.state == Waiting, "{state:?}");
        }
        // The step of another job.
        let other = state(Running, &[Completed, Pending]);
        let job = JobState { steps: other.steps[..1].to_vec(), ..other };
        assert!(!job.is_idle());
    }

    #[test]
    fn a_job_has_ended_with_its_steps_or_its_cluster() {
        use ClusterState::{Running, Starting, Terminated, TerminatedWithErrors, Waiting};
        use StepState::{Cancelled, Completed, Failed, Interrupted, Pending};
        for (cluster, steps, has_ended, is_complete) in [
            (Starting, &[Pending, Pending][..], false, false),
            (Running, &[Completed, Pending], false, false),
            (Running, &[Completed, Completed], true, true),
            (Running, &[Failed, Cancelled], true, false),
            (TerminatedWithErrors, &[Interrupted, Pending], true, false),
            (Terminated, &[Completed, Completed], true, true),
            (Starting, &[], false, false),
            (Waiting, &[], true, true),
            (TerminatedWithErrors, &[], true, false),
        ] {
            let state = state(cluster, steps);
            assert_eq!((state.has_ended(), state.is_complete()), (has_ended, is_complete), "{state:?}");
        }
    }
}

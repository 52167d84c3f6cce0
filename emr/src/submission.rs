//! Submits a job so that it has one cluster, however often and wherever `emr run` is started.
//!
//! EMR has no client tokens: a request that is sent twice creates two clusters. The records of the run decide
//! instead, because the store puts each of them at most once:
//!
//! - `job.json` belongs to one job. A job with other input, rows or output is refused.
//! - `job/attempt-N.json` elects who may create cluster N. Everyone else waits for the cluster.
//! - `job/cluster-N.json` states what attempt N led to: a cluster, or none because EMR refused it.
//!
//! A cluster has the tag `sentimill-run` with the id of the run. It is looked up before a cluster is created
//! and after a response was lost. If an attempt leads to nothing for the time that its record states, another
//! process starts the next attempt. The first one stops before it sends a request after half of this time.
//!
//! What remains: a process that is suspended between this check and its request, for longer than the other half,
//! may create a second cluster. Every process that finds two clusters with the tag keeps the one that was created
//! first and terminates the other. Their steps write to one run, whose shards are committed once.

mod creation;
mod election;
mod records;

use std::time::Duration;

use aws_sdk_emr::types::StepState;
use program::bars::ProgressBars;
use program::exit::notice;
use serde_json::Value;
use store::Store;

use crate::Error;
use crate::client::{Emr, RequestFailure};
use crate::cluster::{self, Cluster, Step};
use crate::interrupt::Interrupt;
use crate::job::RUN_TAG;

use election::{Attempt, AttemptOutcome};
pub use records::enroll;
pub(crate) use records::{JOB, read, to_bytes};

/// Longest time between two requests for a state.
const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// EMR lists a cluster some seconds after its creation.
const LISTING: Duration = Duration::from_secs(30);
/// Half of this time is enough for a request that EMR refuses repeatedly because of its rate, the other half for one whose
/// response is late.
const TAKEOVER: Duration = Duration::from_secs(300);

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between two requests for a state.
    pub interval: Duration,
    /// Time in which a cluster appears in EMR's listing after its creation.
    pub listing: Duration,
    /// Time after which an attempt that led to nothing is repeated by another process.
    pub takeover: Duration,
}

impl Pace {
    /// The pace of a program that displays states once per `interval`. The times that prevent a second cluster do not
    /// depend on it.
    pub fn of(interval: Duration) -> Self {
        Self { interval: interval.min(INTERVAL_MAX), listing: LISTING, takeover: TAKEOVER }
    }
}

/// The requests of a job.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Where the steps run.
    pub cluster: Target,
    /// The steps, for a cluster that exists. A new cluster has them from its creation, so that it never waits for
    /// work. The name of each contains the id of the run.
    pub steps: Vec<Value>,
    /// The id of the run, the value of [`RUN_TAG`].
    pub run_id: String,
}

/// The cluster of a job.
#[derive(Clone, Debug)]
pub enum Target {
    /// A cluster that exists.
    Existing(String),
    /// A new cluster.
    New(Value),
}

/// A job on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The id of the cluster.
    pub cluster: String,
    /// Whether this process has created the cluster.
    pub is_new: bool,
}

/// Finds the cluster of a job, or creates it and adds the steps. A job whose steps have completed is submitted again if its
/// dataset does not exist.
pub fn submit(
    emr: &Emr,
    store: &Store,
    requests: &Requests,
    is_made: &dyn Fn() -> bool,
    pace: &Pace,
    interrupt: &Interrupt,
    progress: &ProgressBars,
) -> Result<Submitted, Error> {
    let submission = Submission { emr, store, requests, is_made, pace, interrupt, progress };
    loop {
        let attempt = match election::latest(store)? {
            None => 1,
            Some(latest) => match submission.outcome(&latest)? {
                Some(AttemptOutcome::Cluster(cluster)) if submission.is_worth_following(&cluster)? => {
                    return Ok(Submitted { cluster, is_new: false });
                }
                _ => latest.attempt + 1,
            },
        };
        if let Some(mandate) = election::claim(store, attempt, pace)? {
            let outcome = submission.carry_out(&mandate);
            let recorded = match &outcome {
                Ok(Some(submitted)) => Some(AttemptOutcome::Cluster(submitted.cluster.clone())),
                // Others wait for the time of this attempt, in which the cluster would be listed.
                Ok(None) | Err(Error::Unknown { .. }) => None,
                // A refused attempt must not let the next one wait.
                Err(error) => Some(AttemptOutcome::Refused(error.to_string())),
            };
            // An id of a cluster, or the error of the attempt, is not lost with its record.
            if let Some(recorded) = recorded
                && let Err(error) = mandate.end(store, &recorded)
            {
                notice(
                    "emr",
                    &format!("warning: the run has no record of this attempt ({recorded}): {error}"),
                );
            }
            if let Some(submitted) = outcome? {
                return Ok(submitted);
            }
        }
    }
}

/// The cluster of a job that was submitted, by the records of its run.
pub fn submitted(store: &Store) -> Result<Option<String>, Error> {
    let Some(latest) = election::latest(store)? else { return Ok(None) };
    // An attempt in progress has no outcome yet; the one before it may have.
    for attempt in (1..=latest.attempt).rev() {
        if let Some(AttemptOutcome::Cluster(cluster)) = election::outcome(store, attempt)? {
            return Ok(Some(cluster));
        }
    }
    Ok(None)
}

/// The steps of a job on a cluster: those of its last submission.
///
/// An empty id stands for all steps.
pub fn steps_of(steps: Vec<Step>, run_id: &str) -> Vec<Step> {
    if run_id.is_empty() {
        return steps;
    }
    let mut of_job: Vec<Step> = steps.into_iter().filter(|step| step.name.contains(run_id)).collect();
    let first = |step: &Step| of_job.iter().rposition(|other| other.name == step.name);
    let begin = of_job.first().and_then(first).unwrap_or_default();
    of_job.split_off(begin)
}

struct Submission<'a> {
    emr: &'a Emr,
    store: &'a Store,
    requests: &'a Requests,
    is_made: &'a dyn Fn() -> bool,
    pace: &'a Pace,
    interrupt: &'a Interrupt,
    progress: &'a ProgressBars,
}

impl Submission<'_> {
    /// What an attempt of another process led to. Waits for it; `None` if it led to nothing in its time.
    fn outcome(&self, attempt: &Attempt) -> Result<Option<AttemptOutcome>, Error> {
        let patience = attempt.patience();
        let mut is_said = false;
        let mut waited = Duration::ZERO;
        loop {
            if let Some(outcome) = election::outcome(self.store, attempt.attempt)? {
                return Ok(Some(outcome));
            }
            // Its process may have ended after it added the steps, or may have lost the response.
            if let Some(cluster) = self.cluster()?
                && self.is_worth_following(&cluster)?
            {
                let found = AttemptOutcome::Cluster(cluster);
                election::record(self.store, attempt.attempt, &found)?;
                return Ok(Some(found));
            }
            if waited >= patience {
                return Ok(None);
            }
            if !is_said {
                let holder = &attempt.holder;
                let limit_s = patience.as_secs();
                self.progress.notice(&format!(
                    "{holder} is starting a cluster for this job; waiting for it for at most {limit_s} s"
                ));
                is_said = true;
            }
            self.pause(self.pace.interval)?;
            waited += self.pace.interval;
        }
    }

    /// Whether the job runs on this cluster or was completed by it. A job that failed is started again.
    fn is_worth_following(&self, id: &str) -> Result<bool, Error> {
        let cluster = match self.emr.cluster(id) {
            Ok(cluster) => cluster,
            // EMR forgets clusters after two months.
            Err(failure) if failure.is_absence() => return Ok(false),
            Err(failure) => return Err(failure.into()),
        };
        let steps = self.steps(id)?;
        let is_complete = steps.iter().all(|step| step.state == StepState::Completed);
        Ok(self.are_worth_following(&steps) && (is_complete || cluster::accepts_steps(&cluster.state)))
    }

    /// Whether the steps are those of a job that runs, or that has made its dataset.
    fn are_worth_following(&self, steps: &[Step]) -> bool {
        let is_whole = !steps.is_empty() && steps.len() >= self.requests.steps.len();
        let has_failed = steps.iter().any(|step| cluster::step_has_failed(&step.state));
        let is_complete = steps.iter().all(|step| step.state == StepState::Completed);
        is_whole && !has_failed && (!is_complete || (self.is_made)())
    }

    /// The steps of the job on a cluster.
    fn steps(&self, cluster: &str) -> Result<Vec<Step>, RequestFailure> {
        Ok(steps_of(self.emr.steps(cluster)?, &self.requests.run_id))
    }

    /// The cluster on which the job may be running.
    fn cluster(&self) -> Result<Option<String>, Error> {
        match &self.requests.cluster {
            Target::Existing(id) => Ok(Some(id.clone())),
            Target::New(_) => Ok(self.find()?.map(|cluster| cluster.id)),
        }
    }

    /// The cluster with the tag of the run that accepts steps. If there are two, the one that was created first is
    /// kept.
    fn find(&self) -> Result<Option<Cluster>, Error> {
        let mut found = Vec::new();
        for listed in self.emr.clusters()? {
            // The name, which the listing has, saves a request per cluster of the account.
            if !listed.name.contains(&self.requests.run_id) {
                continue;
            }
            let cluster = self.emr.cluster(&listed.id)?;
            if cluster.tags.get(RUN_TAG) == Some(&self.requests.run_id)
                && cluster::accepts_steps(&cluster.state)
            {
                found.push(cluster);
            }
        }
        found.sort_by(|a, b| (a.times.created_unix_s, &a.id).cmp(&(b.times.created_unix_s, &b.id)));
        let mut found = found.into_iter();
        let kept = found.next();
        for other in found {
            let id = &other.id;
            self.progress.notice(&format!("{id} is a second cluster of this job; terminating it"));
            self.emr.terminate(id)?;
        }
        Ok(kept)
    }

    /// Creates the cluster with its steps, or adds the steps to an existing one, as far as they do not exist. `None` if
    /// the mandate has expired.
    fn carry_out(&self, mandate: &election::Mandate) -> Result<Option<Submitted>, Error> {
        let existing = match &self.requests.cluster {
            Target::Existing(id) => Some(id.clone()),
            Target::New(_) => self.find()?.map(|cluster| cluster.id),
        };
        match (existing, &self.requests.cluster) {
            (Some(cluster), _) => {
                let is_added = self.add_steps(mandate, &cluster)?;
                Ok(is_added.then_some(Submitted { cluster, is_new: false }))
            }
            (None, Target::New(request)) => {
                let created = self.create(mandate, request)?;
                Ok(created.map(|cluster| Submitted { cluster, is_new: true }))
            }
            (None, Target::Existing(_)) => Ok(None),
        }
    }

    fn create(&self, mandate: &election::Mandate, request: &Value) -> Result<Option<String>, Error> {
        let created = self.request(
            mandate,
            "the cluster was created",
            |may_send| self.emr.create(request, may_send),
            || Ok(self.find()?.map(|cluster| cluster.id)),
        )?;
        let Some(id) = created else { return Ok(None) };
        // The cluster costs money, so its id is printed before anything else can fail.
        self.progress.notice(&format!("created cluster {id}"));
        // Terminates a second cluster, if a suspended process has created one.
        match self.find() {
            Ok(kept) => Ok(Some(kept.map_or(id, |kept| kept.id))),
            Err(error) => {
                notice("emr", &format!("warning: {id} was created, and its state is unknown: {error}"));
                Ok(Some(id))
            }
        }
    }

    /// Adds the steps unless they are there. `false` if the mandate has expired.
    fn add_steps(&self, mandate: &election::Mandate, cluster: &str) -> Result<bool, Error> {
        let before = self.steps(cluster)?;
        if self.are_worth_following(&before) {
            return Ok(true);
        }
        let is_known = |id: &String| before.iter().any(|other| &other.id == id);
        let added = || -> Result<Option<Vec<String>>, Error> {
            let ids = self.steps(cluster)?.into_iter().map(|step| step.id);
            Ok(Some(ids.filter(|id| !is_known(id)).collect()).filter(|ids: &Vec<_>| !ids.is_empty()))
        };
        let send = |may_send: &dyn Fn() -> bool| self.emr.add_steps(cluster, &self.requests.steps, may_send);
        Ok(self.request(mandate, "the steps were added", send, added)?.is_some())
    }

    fn pause(&self, time: Duration) -> Result<(), Error> {
        if self.interrupt.sleep(time) { Err(Error::NotSubmitted) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Times;

    #[test]
    fn the_times_that_prevent_a_second_cluster_do_not_depend_on_the_interval() {
        for seconds in [0.1, 10.0, 600.0] {
            let pace = Pace::of(Duration::from_secs_f64(seconds));
            assert_eq!((pace.listing, pace.takeover), (LISTING, TAKEOVER));
            assert!(pace.interval <= pace.listing);
        }
    }

    #[test]
    fn the_steps_of_a_job_are_those_of_its_last_submission_and_without_a_job_all() {
        let names = ["Hadoop job of a", "merge of a", "Hadoop job of b", "Hadoop job of a", "merge of a"];
        let step = |(n, name): (usize, &str)| Step {
            id: format!("s-{n}"),
            name: name.to_owned(),
            state: StepState::Pending,
            reason: None,
            log_file: None,
            times: Times::default(),
        };
        let steps: Vec<Step> = names.into_iter().enumerate().map(step).collect();
        let ids = |run_id: &str| -> Vec<String> {
            steps_of(steps.clone(), run_id).into_iter().map(|step| step.id).collect()
        };
        assert_eq!(ids("of a"), ["s-3", "s-4"]);
        assert_eq!(ids("of b"), ["s-2"]);
        assert_eq!(ids("").len(), 5);
    }
}

//! A job as requests to Amazon EMR, with the checks before they are sent. Makes no client and sends nothing.

mod checks;
pub mod instance_types;
pub mod merging;
pub mod price;
pub mod programs;
pub mod releases;
pub mod requests;
mod steps;

use std::collections::BTreeMap;

use crate::Error;
use crate::finding::Finding;
use crate::gpus;
use crate::job::{Job, JobRecord};
use price::Estimate;
use programs::Program;
use requests::{JobRequest, add_job_flow_steps, run_job_flow};

pub use checks::check_running;
pub use programs::{MERGE, file_names};
pub use steps::{Scheme, job_name, streaming, streaming_of_tasks};

/// All that a job sends, what it costs, and what is wrong with it.
#[derive(Debug)]
pub struct Plan {
    /// The id of the run.
    pub run_id: String,
    /// The requests.
    pub requests: JobRequest,
    /// Number of tasks that merge the run; 1 for one program.
    pub merge_tasks: u32,
    /// The files that are uploaded before the requests.
    pub programs: Vec<Program>,
    /// The content of `job.json` in the run.
    pub record: JobRecord,
    /// Time and price, if the size of the input is known.
    pub estimate: Option<Estimate>,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
}

impl Plan {
    /// Plans a job for EMR. `input_bytes` is the size of the input, if it was measured; else that of the job file.
    pub fn of(job: &Job, input_bytes: Option<u64>) -> Result<Self, Error> {
        let cluster = job.cluster()?;
        let (programs, mut findings) = programs::read(job);
        let merge_tasks = price::merge_tasks(job);
        let requests = match &cluster.id {
            // Another job's steps can wait on this cluster. If the Hadoop job fails, merge fails at once.
            Some(id) => {
                let steps = steps::steps(job, &programs, merge_tasks, "CONTINUE");
                JobRequest::AddJobFlowSteps(add_job_flow_steps(id, &steps))
            }
            None => {
                let action = if cluster.keep { "CANCEL_AND_WAIT" } else { "TERMINATE_CLUSTER" };
                let steps = steps::steps(job, &programs, merge_tasks, action);
                JobRequest::RunJobFlow(run_job_flow(job, cluster, &steps))
            }
        };
        findings.extend(checks::check(job, cluster, &programs, &requests));
        // Warnings about machines for training are for those who start them.
        let training = job.gpus.iter().flat_map(|gpus| gpus::plan(job, gpus).findings);
        findings.extend(training.filter(Finding::is_error));
        let digests: BTreeMap<_, _> =
            programs.iter().map(|program| (program.name.clone(), program.sha256.clone())).collect();
        Ok(Self {
            run_id: job.run_id(),
            merge_tasks,
            record: job.record(&digests),
            estimate: input_bytes.or(job.input.bytes).and_then(|bytes| price::estimate(job, bytes)),
            requests,
            programs,
            findings,
        })
    }

    /// Whether the job can be started.
    pub fn is_runnable(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

#[cfg(test)]
mod tests;

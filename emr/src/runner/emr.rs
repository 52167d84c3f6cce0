//! `--runner emr`: uploads the programs, submits the job once, and follows it.

use std::time::Duration;

use program::location::S3Url;
use store::{ObjectContent, Put, S3Options, Store};

use super::Error as RunnerError;
use crate::Error;
use crate::client::Emr;
use crate::interrupt::Interrupt;
use crate::plan::Plan;
use crate::plan::programs::Program;
use crate::plan::requests::{AddJobFlowSteps, Requests};
use crate::submission::{self, Pace, Submitted, Target};
use progress::ProgressBars;

/// Submits a planned job, unless it was submitted before. Uploads its programs first.
pub fn submit(
    plan: &Plan,
    emr: &Emr,
    store: &Store,
    s3: &S3Options,
    interval: Duration,
    interrupt: &Interrupt,
    progress: &ProgressBars,
) -> Result<Submitted, Error> {
    store.probe()?;
    submission::enroll(store, &plan.record)?;
    upload(&plan.programs, s3, progress)?;
    let steps = plan.requests.steps().to_vec();
    let cluster = match &plan.requests {
        Requests::RunJobFlow(request) => Target::New(Box::new(request.request())),
        Requests::AddJobFlowSteps(request) => Target::Existing(request.job_flow_id.clone()),
    };
    let requests = submission::Requests {
        cluster,
        n_steps: steps.len(),
        steps: AddJobFlowSteps { job_flow_id: String::new(), steps }.request(),
        run_id: plan.run_id.clone(),
    };
    Ok(submission::submit(emr, store, &requests, &Pace::of(interval), interrupt, progress)?)
}

/// Uploads the programs that the bucket does not have. Their names contain their digests.
fn upload(programs: &[Program], options: &S3Options, progress: &ProgressBars) -> Result<(), Error> {
    for program in programs {
        let object = program.url.to_string();
        let url = S3Url::parse(&object)
            .map_err(|error| Error::BadPlace { place: object.clone(), found: error.to_string() })?;
        let (store, key) = Store::of_object(&url, options)?;
        if store.head(&key)?.is_none() {
            progress.notice(&format!("uploading {} ({} bytes)", program.name, program.bytes));
            if let Put::Stored(_) = store.put_if_absent(&key, ObjectContent::File(&program.path))? {
                continue;
            }
        }
        let found = store.head(&key)?.map_or(0, |info| info.bytes);
        if found != program.bytes {
            return Err(RunnerError::DamagedProgram { object, found, expected: program.bytes }.into());
        }
    }
    Ok(())
}

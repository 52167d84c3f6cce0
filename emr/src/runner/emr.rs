//! `--runner emr`: uploads the programs, submits the job once, and follows it.

use std::time::Duration;

use durable::sha256;
use program::bounded;
use program::exit::Exit;
use store::{ObjectContent, Put, S3Options, Store};

use crate::Error;
use crate::client::Emr;
use crate::interrupt::Interrupt;
use crate::job::Place;
use crate::plan::Plan;
use crate::plan::programs::{PROGRAM_BYTES_MAX, Program};
use crate::plan::requests::{JobRequest, text};
use crate::result::Made;
use crate::submission::{self, Pace, Submitted, Target};
use program::bars::ProgressBars;

/// Where and how a planned job is submitted.
#[derive(Debug)]
pub struct Submitter<'a> {
    /// The client.
    pub emr: &'a Emr,
    /// The run.
    pub store: &'a Store,
    /// The dataset.
    pub dataset: &'a Place,
    /// Options for the dataset and the programs.
    pub s3: &'a S3Options,
    /// Time between two requests for a state.
    pub interval: Duration,
}

/// Submits a planned job, unless it was submitted before. Uploads its programs first.
pub fn submit(
    plan: &Plan,
    to: &Submitter<'_>,
    interrupt: &Interrupt,
    progress: &ProgressBars,
) -> Result<Submitted, Error> {
    let Submitter { emr, store, dataset, s3, interval } = to;
    store.probe()?;
    submission::enroll(store, &plan.record)?;
    upload(&plan.programs, s3, progress)?;
    let cluster = match &plan.requests {
        JobRequest::RunJobFlow(request) => Target::New(request.clone()),
        JobRequest::AddJobFlowSteps(request) => Target::Existing(text(&request["JobFlowId"]).to_owned()),
    };
    let requests =
        submission::Requests { cluster, steps: plan.requests.steps().to_vec(), run_id: plan.run_id.clone() };
    // A dataset that cannot be read is an error of those who follow the job.
    let is_made = || !matches!(Made::read(dataset, s3), Ok(None));
    let pace = Pace::of(*interval);
    submission::submit(emr, store, &requests, &is_made, &pace, interrupt, progress)
}

/// Uploads the programs that the bucket does not have. Their names contain their digests. An existing object is
/// fetched and compared with its name.
fn upload(programs: &[Program], options: &S3Options, progress: &ProgressBars) -> Result<(), Error> {
    for program in programs {
        let object = program.url.to_string();
        let url = program.url.s3_url()?;
        let (store, key) = Store::of_object(&url, options)?;
        if store.head(&key)?.is_none() {
            progress.notice(&format!("uploading {} ({} bytes)", program.name, program.bytes));
            if let Put::Stored(_) = store.put_if_absent(&key, ObjectContent::Bytes(&planned(program)?))? {
                continue;
            }
        }
        let content = store.get_small(&key, program.bytes)?.unwrap_or_default();
        let (found, expected) = (sha256::of_bytes(&content), program.sha256.clone());
        if found != expected {
            return Err(Error::new(
                Exit::MissingInput,
                format!(
                    "{object}: the SHA-256 is {found:.8}, expected {expected:.8}; delete the object, which is damaged"
                ),
            ));
        }
    }
    Ok(())
}

/// The content of a program, which must be the one whose digest the requests contain.
fn planned(program: &Program) -> Result<Vec<u8>, Error> {
    let content = bounded::read(&program.path, PROGRAM_BYTES_MAX).ok();
    content.filter(|content| sha256::of_bytes(content) == program.sha256).ok_or_else(|| {
        let path = program.path.display();
        let message = format!("{path}: changed after the job was planned; run the command again");
        Error::new(Exit::TryAgain, message)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::job::Place;

    #[test]
    fn a_program_that_changed_after_the_plan_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mapper");
        fs::write(&path, "one").unwrap();
        let program = Program {
            name: "mapper".to_owned(),
            path: path.clone(),
            url: Place::parse("s3://bucket/mapper", Path::new("")).unwrap(),
            sha256: sha256::of_bytes(b"one"),
            bytes: 3,
            needs: None,
        };
        assert_eq!(planned(&program).unwrap(), b"one");
        fs::write(&path, "two").unwrap();
        let error = planned(&program).unwrap_err().to_string();
        assert!(
            error.ends_with("/mapper: changed after the job was planned; run the command again"),
            "{error}"
        );
    }
}

//! What a command is about: the cluster of a job or one that is named, or the run of a job without EMR.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use program::exit::Exit;
use store::{Key, S3Options, Store};

use crate::Error;
use crate::client::Emr;
use crate::failures::{self, RunFailure};
use crate::job::{Job, Prices};
use crate::result::Made;
use crate::{runner, submission};

/// A job file or a cluster.
#[derive(Args, Clone, Debug)]
pub struct Subject {
    /// Job file
    #[arg(value_name = "JOB.toml", required_unless_present = "cluster")]
    pub job: Option<PathBuf>,
    /// Id of a cluster, in place of the cluster of a job
    #[arg(long, value_name = "ID", conflicts_with = "job")]
    pub cluster: Option<String>,
    /// Region of the cluster [default: that of the job, or AWS_REGION]
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// A cluster with a client for its region.
pub struct FoundCluster {
    /// The client.
    pub emr: Emr,
    /// The id of the cluster.
    pub cluster: String,
    /// The job, if the command names one.
    pub job: Option<JobWithRun>,
}

/// A job whose run exists.
pub struct JobWithRun {
    /// The job file.
    pub job: Job,
    /// Its run.
    pub store: Store,
}

/// Where a job ran last.
pub enum Ran {
    /// On a cluster of EMR.
    OnEmr(Box<FoundCluster>),
    /// On Hadoop or on this machine.
    Elsewhere(Box<Elsewhere>),
}

/// A job that ran on Hadoop or on this machine.
pub struct Elsewhere {
    /// The job and its run.
    pub of: JobWithRun,
    /// How it failed, if the last command failed.
    pub failure: Option<RunFailure>,
    /// The dataset, if it exists and was made from this run or by sentimill.
    pub made: Option<Made>,
    /// Whether the Hadoop job has completed, so that only its run has to be merged.
    pub has_counts: bool,
}

impl Subject {
    /// Finds the cluster of a job, or its run if it did not run on EMR. The last of both counts.
    pub fn ran(&self) -> Result<Ran, Error> {
        let Some(path) = &self.job else { return Ok(Ran::OnEmr(Box::new(self.find()?))) };
        let job = Job::read_without_cluster(path)?;
        let options = job.bucket_options();
        let store = Store::open_with(&job.run.to_string(), &options)?;
        let failure = failures::last(&store)?;
        if submission::submitted(&store)?.is_some() {
            let found = self.find()?;
            let Some(failed) = &failure else { return Ok(Ran::OnEmr(Box::new(found))) };
            let created = match found.emr.cluster(&found.cluster) {
                Ok(cluster) => cluster.times.created_unix_s,
                // EMR forgets clusters after two months.
                Err(error) if error.is_absence() => Some(0),
                Err(error) => return Err(error.into()),
            };
            let created = created.map(|created| UNIX_EPOCH + Duration::from_secs(created));
            if created.is_none_or(|created| created >= failed.ended) {
                return Ok(Ran::OnEmr(Box::new(found)));
            }
        }
        let is_of_run = |made: &Made| made.run.as_ref().is_none_or(|run| *run == store.url());
        let made = Made::read(&job.dataset, &options)?.filter(is_of_run);
        let counted = store.list(runner::hadoop::LOG)?.first().map(|log| log.modified);
        let written = if made.is_some() { Made::written(&job.dataset, &options)? } else { None };
        let is_enrolled = store.head(&Key::new(submission::JOB)?)?.is_some();
        if failure.is_none() && made.is_none() && counted.is_none() && !is_enrolled {
            let (run, job) = (store.url(), path.display());
            return Err(Error::new(
                Exit::MissingInput,
                format!("{run}: found no record of a run of this job; start it with emr run {job}"),
            ));
        }
        // A failure before a later success is history.
        let failure = failure.filter(|failure| counted.max(written).is_none_or(|done| done < failure.ended));
        let has_counts = counted.is_some();
        Ok(Ran::Elsewhere(Box::new(Elsewhere { of: JobWithRun { job, store }, failure, made, has_counts })))
    }

    /// Finds the cluster. A job that was not submitted is an error.
    pub fn find(&self) -> Result<FoundCluster, Error> {
        let Some(path) = &self.job else {
            let cluster = self.cluster.clone().unwrap_or_default();
            let options = S3Options { region: self.region.clone(), ..S3Options::default() };
            return Ok(FoundCluster { emr: Emr::connect(&options)?, cluster, job: None });
        };
        let job = Job::read(path)?;
        let emr = connect(&job, self.region.as_deref())?;
        let store = Store::open_with(&job.run.to_string(), &job.bucket_options())?;
        let cluster = submission::submitted(&store)?;
        let cluster = cluster.ok_or_else(|| {
            let (run, job) = (store.url(), path.display());
            let message = format!(
                "{run}: no cluster was started for this run, expected one on EMR; start it with emr run {job}, or see emr \
                 status {job}"
            );
            Error::new(Exit::MissingInput, message)
        })?;
        Ok(FoundCluster { emr, cluster, job: Some(JobWithRun { job, store }) })
    }

    /// The job file or the cluster as an argument of another command.
    pub fn argument(&self) -> String {
        match (&self.job, &self.cluster) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(cluster)) => format!("--cluster {cluster}"),
            (None, None) => String::new(),
        }
    }
}

impl FoundCluster {
    /// The id of the run, which the names of the job's steps contain; empty for all steps of a cluster.
    pub fn run_id(&self) -> String {
        self.job.as_ref().map(|submitted| submitted.job.run_id()).unwrap_or_default()
    }

    /// The prices of the job file.
    pub fn prices(&self) -> Prices {
        self.job.as_ref().map(|submitted| submitted.job.prices.clone()).unwrap_or_default()
    }
}

/// A client for the region of a job.
pub fn connect(job: &Job, region: Option<&str>) -> Result<Emr, Error> {
    let of_job =
        job.cluster.as_ref().map(|cluster| cluster.region.clone()).filter(|region| !region.is_empty());
    let region = region.map(str::to_owned).or(of_job);
    let profile = job.s3_options.profile.clone();
    Ok(Emr::connect(&S3Options { region, profile, ..S3Options::default() })?)
}

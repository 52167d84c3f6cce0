//! The cluster that a command is about: that of a job, or one that is named.

use std::path::PathBuf;

use clap::Args;
use store::{S3Options, Store};

use crate::Error;
use crate::client::Emr;
use crate::job::{Job, Prices};
use crate::submission;

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
pub struct Found {
    /// The client.
    pub emr: Emr,
    /// The id of the cluster.
    pub cluster: String,
    /// The job, if the command names one.
    pub job: Option<Submitted>,
}

/// A job whose run exists.
pub struct Submitted {
    /// The job file.
    pub job: Job,
    /// Its run.
    pub store: Store,
}

impl Subject {
    /// Finds the cluster. A job that was not submitted is an error.
    pub fn find(&self) -> Result<Found, Error> {
        let Some(path) = &self.job else {
            let cluster = self.cluster.clone().unwrap_or_default();
            let options = S3Options { region: self.region.clone(), ..S3Options::default() };
            return Ok(Found { emr: Emr::connect(&options)?, cluster, job: None });
        };
        let job = Job::read(path)?;
        let emr = connect(&job, self.region.as_deref())?;
        let store = Store::open_with(&job.run.to_string(), &job.bucket_options())?;
        let cluster = submission::submitted(&store)?;
        let cluster = cluster.ok_or_else(|| Error::NotSubmitted { job: path.clone(), run: store.url() })?;
        Ok(Found { emr, cluster, job: Some(Submitted { job, store }) })
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

impl Found {
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

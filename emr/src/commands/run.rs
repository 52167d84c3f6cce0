//! `emr run`: runs a job to its dataset.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use program::exit::{Exit, notice};
use serde::Serialize;
use store::{S3Options, Store};

use super::subject::connect;
use super::watch::{self, Watched};
use crate::Error;
use crate::client::Emr;
use crate::credentials;
use crate::follow::JobState;
use crate::interrupt::Interrupt;
use crate::job::Job;
use crate::online;
use crate::plan::{Plan, programs};
use crate::result::{Made, NO_RUN};
use crate::runner::emr::Submitter;
use crate::runner::hadoop::HadoopSubmission;
use crate::runner::{self, Runner};
use crate::submission;

const EXAMPLES: &str = "\
Examples:
  emr run JOB.toml
      Run the job on Amazon EMR, follow it, and print the ledger and the cost

  emr run JOB.toml --runner local
      Make the same dataset on this machine";

/// Run a job on EMR, on a Hadoop cluster or on this machine
///
/// All runners write the same dataset. A job that is started twice runs once: the second command follows the first
/// one. A job that failed continues; committed shards are not written again. Ctrl-C leaves a job on EMR running.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Job file
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Where the job runs
    ///
    /// emr creates a cluster or uses that of the job file. hadoop uses the cluster that the command hadoop on the PATH
    /// reaches, with the jar $HADOOP_STREAMING_JAR or the command mapred. local starts sentimill.
    #[arg(long, value_name = "RUNNER", default_value = "emr")]
    pub runner: Runner,
    /// Submit the job to EMR without following it
    #[arg(long)]
    pub detach: bool,
    /// How a job on EMR is followed.
    #[command(flatten)]
    pub follow: watch::FollowArguments,
}

/// The document of `emr run --json` for a job that was not run on EMR, or is not followed.
#[derive(Debug, Serialize)]
struct Document {
    runner: &'static str,
    result: Option<Made>,
    cluster: Option<String>,
}

/// Runs the job.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    if arguments.detach && arguments.runner != Runner::Emr {
        let runner = arguments.runner.name();
        return Err(Error::new(
            Exit::Usage,
            format!(
                "--detach: a job with --runner {runner} ends with its command, expected --runner emr; remove --detach"
            ),
        ));
    }
    let job = match arguments.runner {
        Runner::Emr => Job::read(&arguments.job)?,
        Runner::Hadoop | Runner::Local => Job::read_without_cluster(&arguments.job)?,
    };
    let options = job.bucket_options();
    match arguments.runner {
        Runner::Emr => on_emr(arguments, &job, &options),
        Runner::Hadoop => on_hadoop(arguments, &job, &options),
        Runner::Local => {
            // sentimill gets the same signal, deletes its files and ends; this program waits for it.
            Interrupt::catch()?;
            runner::local::run_job(&job, &options, arguments.follow.quiet)?;
            finish(arguments, &job, "local", &options)
        }
    }
}

fn on_emr(arguments: &Arguments, job: &Job, options: &S3Options) -> Result<(), Error> {
    let plan = Plan::of(job, None)?;
    check(&arguments.job, plan.findings.iter())?;
    let store = Store::open_with(&job.run.to_string(), options)?;
    let made = made(job, options, &store)?;
    let interrupt = Interrupt::catch()?;
    let follow = &arguments.follow;
    let progress = follow.progress();
    let emr = connect(job, None)?;
    let cluster = if made.is_none() {
        // A job that was submitted before is followed, whatever its cluster is like.
        if let Some(id) = &job.cluster()?.id
            && submission::submitted(&store)?.is_none()
        {
            check(&arguments.job, online::running_cluster(job, id, &plan.programs, &emr)?.iter())?;
        }
        let interval = Duration::from_secs_f64(follow.interval);
        let to = Submitter { emr: &emr, store: &store, dataset: &job.dataset, s3: options, interval };
        let submitted = runner::emr::submit(&plan, &to, &interrupt, &progress)?;
        if !submitted.is_new {
            progress.notice(&format!("found cluster {} for {}", submitted.cluster, job.name));
        }
        if arguments.detach {
            let path = arguments.job.display();
            let document = Document { runner: "emr", result: None, cluster: Some(submitted.cluster.clone()) };
            let text = format!("{}: submitted; follow it with emr watch {path}\n", submitted.cluster);
            return super::print(follow.json, &document, || text);
        }
        submitted.cluster
    } else {
        submission::enroll(&store, &plan.record)?;
        progress.notice(&format!("{} already exists, made from this run; nothing to do", job.dataset));
        match followed(&emr, &store, &job.run_id())? {
            Some(cluster) => cluster,
            None => return finish(arguments, job, "emr", options),
        }
    };
    let argument = arguments.job.display().to_string();
    let watched = Watched { emr: &emr, cluster: &cluster, job: Some((job, &store)), argument };
    watched.watch(follow, options, &interrupt, &progress)
}

/// The cluster of a job whose dataset exists, if it says how the dataset was made or still works. A cluster that failed, or
/// that EMR has forgotten, has nothing to say: the dataset was made by another runner.
fn followed(emr: &Emr, store: &Store, run_id: &str) -> Result<Option<String>, Error> {
    let Some(cluster) = submission::submitted(store)? else { return Ok(None) };
    let state = match JobState::of(emr, &cluster, run_id) {
        Ok(state) => state,
        Err(failure) if failure.is_absence() => return Ok(None),
        Err(failure) => return Err(failure.into()),
    };
    if !state.has_ended() || state.is_complete() {
        return Ok(Some(cluster));
    }
    if state.is_idle() {
        notice(
            "emr",
            &format!("{cluster} is idle and costs money; emr terminate --cluster {cluster} ends it"),
        );
    }
    Ok(None)
}

fn on_hadoop(arguments: &Arguments, job: &Job, options: &S3Options) -> Result<(), Error> {
    runner::hadoop::check(job)?;
    let (programs, findings) = programs::read(job);
    check(&arguments.job, findings.iter())?;
    let digests = programs.iter().map(|program| (program.name.clone(), program.sha256.clone())).collect();
    let store = Store::open_with(&job.run.to_string(), options)?;
    store.probe()?;
    let environment = credentials::of_tasks(job, options)?;
    submission::enroll(&store, &job.record(&digests))?;
    let interrupt = Interrupt::catch()?;
    let argument = arguments.job.display().to_string();
    let is_quiet = arguments.follow.quiet;
    let (store, environment, interrupt) = (&store, &environment[..], &interrupt);
    let submission =
        HadoopSubmission { job, argument: &argument, store, environment, s3: options, interrupt, is_quiet };
    submission.run(&programs)?;
    finish(arguments, job, "hadoop", options)
}

/// Prints warnings. Errors stop the job before anything is sent.
fn check<'a>(path: &Path, findings: impl Iterator<Item = &'a crate::finding::Finding>) -> Result<(), Error> {
    let (errors, warnings): (Vec<_>, Vec<_>) = findings.cloned().partition(|finding| finding.is_error());
    for warning in &warnings {
        notice("emr", &format!("warning: {warning}"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::BadJob { path: path.to_owned(), findings: errors }) }
}

/// The dataset, if it was made from this run. A dataset of another run is an error before any money is spent.
fn made(job: &Job, options: &S3Options, store: &Store) -> Result<Option<Made>, Error> {
    let made = Made::read(&job.dataset, options)?;
    match made {
        Some(made) if made.run.as_ref() != Some(&store.url()) => {
            let found = made.run.unwrap_or_else(|| NO_RUN.to_owned());
            let (dataset, expected) = (made.dataset, store.url());
            Err(Error::new(
                Exit::Usage,
                format!(
                    "{dataset}: was made from the run {found}, expected {expected}; choose another dataset in the job file"
                ),
            ))
        }
        made => Ok(made),
    }
}

/// Prints the result of a job that has ended.
fn finish(arguments: &Arguments, job: &Job, runner: &'static str, options: &S3Options) -> Result<(), Error> {
    let result = Made::after(job, options, "run the command again")?;
    let text = result.text();
    let document = Document { runner, result: Some(result), cluster: None };
    super::print(arguments.follow.json, &document, || text)
}

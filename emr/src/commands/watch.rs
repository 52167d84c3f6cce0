//! `emr watch`: follows a job on EMR until it ends, and prints its result.

use std::time::Duration;

use aws_sdk_emr::types::StepState;
use clap::Args;
use program::bars::ProgressBars;
use program::exit::Exit;
use serde::Serialize;
use store::{S3Options, Store};

use super::subject::Subject;
use crate::Error;
use crate::client::Emr;
use crate::cluster::{Cluster, Step, has_ended};
use crate::cost::{Cost, now_unix_s};
use crate::follow::{End, Followed, JobState, StepLog, exit_code, follow};
use crate::idle::{Idle, duration};
use crate::interrupt::Interrupt;
use crate::job::Job;
use crate::result::Made;
use crate::runner;

const EXAMPLES: &str = "\
Examples:
  emr watch JOB.toml
      Follow the job until it ends, then print the ledger and the cost

  emr watch --cluster j-2AXXXXXXGAPLF --interval 30
      Follow all steps of a cluster, with two requests per 30 seconds";

/// Follow a job on EMR until it ends
///
/// Works from any machine that can read the run. Ctrl-C ends only the command.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The job or the cluster.
    #[command(flatten)]
    pub subject: Subject,
    /// How the job is followed.
    #[command(flatten)]
    pub follow: FollowArguments,
}

/// How a job on EMR is followed.
#[derive(Args, Clone, Debug)]
pub struct FollowArguments {
    /// Seconds between two requests for the state
    ///
    /// EMR limits the rate of requests per account.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = interval)]
    pub interval: f64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress, only warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=600.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number from 0.1 to 600".to_owned())
}

impl FollowArguments {
    /// Where progress is shown.
    pub fn progress(&self) -> ProgressBars {
        if self.quiet { ProgressBars::to_nobody() } else { ProgressBars::to_stderr("emr") }
    }
}

/// The document of `emr watch --json` and `emr run --json`.
#[derive(Debug, Serialize)]
struct Document {
    runner: &'static str,
    result: Option<Made>,
    cluster: Cluster,
    steps: Vec<Step>,
    cost: Cost,
    idle: Option<Idle>,
}

/// Follows the job.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.subject.find()?;
    let interrupt = Interrupt::catch()?;
    let progress = arguments.follow.progress();
    let options = found.job.as_ref().map(|submitted| submitted.job.bucket_options()).unwrap_or_default();
    let job = found.job.as_ref().map(|submitted| (&submitted.job, &submitted.store));
    let argument = arguments.subject.argument();
    let watched = Watched { emr: &found.emr, cluster: &found.cluster, job, argument };
    watched.watch(&arguments.follow, &options, &interrupt, &progress)
}

/// A job on a cluster, or a cluster.
pub(super) struct Watched<'a> {
    /// The client.
    pub emr: &'a Emr,
    /// The cluster.
    pub cluster: &'a str,
    /// The job and its run.
    pub job: Option<(&'a Job, &'a Store)>,
    /// The job file or the cluster as an argument of another command.
    pub argument: String,
}

impl Watched<'_> {
    /// Follows to the end and prints the result.
    pub fn watch(
        &self,
        arguments: &FollowArguments,
        s3: &S3Options,
        interrupt: &Interrupt,
        progress: &ProgressBars,
    ) -> Result<(), Error> {
        let run_id = self.job.map(|(job, _)| job.run_id()).unwrap_or_default();
        let followed = Followed {
            emr: self.emr,
            store: self.job.map(|(_, store)| store),
            s3,
            cluster: self.cluster,
            run_id: &run_id,
            partitions: self.job.map_or(0, |(job, _)| job.hadoop.reducers),
            interval: Duration::from_secs_f64(arguments.interval),
        };
        match follow(&followed, interrupt, progress)? {
            End::Completed(state) => self.completed(state, arguments.json, s3),
            End::Failed(state) => Err(self.failed(&state, s3, progress)),
            End::Interrupted => {
                let (cluster, argument) = (self.cluster, &self.argument);
                let remedy = format!(
                    "the job continues on {cluster}; emr watch {argument} follows it, emr cancel {argument} stops it"
                );
                Err(Error::interrupted(&remedy))
            }
        }
    }

    fn completed(&self, state: JobState, is_json: bool, s3: &S3Options) -> Result<(), Error> {
        let (cost, idle) = self.cost(&state)?;
        let result = match self.job {
            Some((job, _)) => {
                Some(Made::after(job, s3, &format!("emr diagnose {} shows the logs", self.argument))?)
            }
            None => None,
        };
        let JobState { cluster, steps, .. } = state;
        let document = Document { runner: "emr", result, cluster, steps, cost, idle };
        super::print(is_json, &document, || document.text())
    }

    /// The error of a job that failed. Prints what remains and costs money.
    fn failed(&self, state: &JobState, s3: &S3Options, progress: &ProgressBars) -> Error {
        match self.cost(state) {
            Ok((cost, idle)) => {
                progress.notice(&format!("cost: {cost}"));
                if let Some(idle) = idle {
                    program::exit::notice("emr", &idle.sentence(&state.cluster.id));
                }
            }
            Err(error) => progress.notice(&format!("the cost is unknown: {error}")),
        }
        let (what, exit) = why(state, s3);
        Error::new(exit, format!("{what}; emr diagnose {} shows the cause", self.argument))
    }

    fn cost(&self, state: &JobState) -> Result<(Cost, Option<Idle>), Error> {
        let prices = self.job.map(|(job, _)| job.prices.clone()).unwrap_or_default();
        let cost = Cost::of(&self.emr.instances(self.cluster)?, &prices, now_unix_s());
        let idle = Idle::of(self.emr, state, &cost);
        Ok((cost, idle))
    }
}

/// The step that failed, or the end of the cluster, and the exit code of the program that caused it.
fn why(state: &JobState, s3: &S3Options) -> (String, Exit) {
    let cluster = &state.cluster;
    let reason = cluster.reason.as_ref().map(|reason| reason.text()).filter(|text| !text.is_empty());
    let ended = |step: &&Step| matches!(step.state, StepState::Failed | StepState::Interrupted);
    let Some(step) = state.steps.iter().find(ended) else {
        if has_ended(&cluster.state) || state.steps.is_empty() {
            let reason = reason.unwrap_or("EMR states no reason");
            let what =
                format!("{}: the cluster ended ({}) before the job: {reason}", cluster.id, cluster.state);
            return (what, exit_of_cluster(cluster));
        }
        return (format!("{}: the steps were cancelled", cluster.id), Exit::TryAgain);
    };
    // The logs of a step that was interrupted have no cause.
    let log = Some(step).filter(|step| step.state == StepState::Failed);
    let log = log.and_then(|step| StepLog::read(cluster, &step.id, s3));
    let code = log.and_then(|log| exit_code(log.text()));
    let reason =
        step.reason.as_ref().map(|reason| reason.text()).or(reason).unwrap_or("EMR states no reason");
    let program = code.map(|code| format!(" (a program exited with code {code})")).unwrap_or_default();
    let reason = reason.trim_end_matches('.');
    let what = format!("{}: step {}, {}, failed: {reason}{program}", cluster.id, step.id, step.name);
    (what, code.map_or_else(|| exit_of_cluster(cluster), runner::exit_of))
}

/// The meaning of the end of a cluster, by EMR's codes.
fn exit_of_cluster(cluster: &Cluster) -> Exit {
    // A waiting cluster has a code too, which is about its last step.
    let reason = cluster.reason.as_ref().filter(|_| has_ended(&cluster.state));
    match reason.and_then(|reason| reason.code.as_deref()) {
        Some("INTERNAL_ERROR" | "INSTANCE_FAILURE" | "INSTANCE_FLEET_TIMEOUT") => Exit::Unavailable,
        Some("VALIDATION_ERROR") => Exit::Settings,
        Some("USER_REQUEST") => Exit::TryAgain,
        _ => Exit::Internal,
    }
}

impl Document {
    fn text(&self) -> String {
        let Self { result, cluster, steps, cost, idle, .. } = self;
        let mut text = result.as_ref().map(Made::text).unwrap_or_default();
        text += &format!("cluster           {}: {}\n", cluster.id, cluster.state);
        for step in steps {
            let times = step.times.started_unix_s.zip(step.times.ended_unix_s);
            let took = times.map(|(begin, end)| format!(", {}", duration(end.saturating_sub(begin))));
            text += &format!("step              {}: {}{}\n", step.name, step.state, took.unwrap_or_default());
        }
        text += &format!("cost              {cost}\n");
        if let Some(idle) = idle {
            text += &format!("idle              {}\n", idle.sentence(&cluster.id));
        }
        text
    }
}

//! `emr status`: the state of a job and of its cluster.

use clap::Args;
use serde::Serialize;

use super::subject::{Elsewhere, FoundCluster, JobWithRun, Ran, Subject};
use crate::Error;
use crate::cluster::{Cluster, Step};
use crate::cost::{Cost, now_unix_s};
use crate::failures::RunFailure;
use crate::follow;
use crate::idle::{Idle, duration};
use crate::result::Made;
use crate::runner::Runner;

const EXAMPLES: &str = "\
Examples:
  emr status JOB.toml
      Print the state of the job, its cluster and its cost so far

  emr status --cluster j-2AXXXXXXGAPLF --json
      Print the state of a cluster as JSON";

/// Print the state of a job and its cost so far
///
/// Also for jobs that were started on another machine: the run states the cluster, or how the job failed on Hadoop or on this
/// machine.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The job or the cluster.
    #[command(flatten)]
    pub subject: Subject,
    /// Print the state as JSON
    #[arg(long)]
    pub json: bool,
}

/// The document of `emr status --json`.
#[derive(Debug, Serialize)]
struct Document {
    cluster: Cluster,
    steps: Vec<Step>,
    shards: Option<Shards>,
    cost: Cost,
    idle: Option<Idle>,
}

/// Committed shards of a run.
#[derive(Debug, Serialize)]
struct Shards {
    committed: usize,
    partitions: u32,
}

/// The document of a job that did not run on EMR.
#[derive(Debug, Serialize)]
struct WithoutEmr {
    state: RunState,
    failure: Option<RunFailure>,
    shards: Option<Shards>,
    result: Option<Made>,
    #[serde(skip)]
    run: String,
    #[serde(skip)]
    argument: String,
}

/// The state of a job that did not run on EMR.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum RunState {
    /// The last command failed.
    Failed,
    /// There is a dataset.
    Completed,
    /// The Hadoop job has completed, and merge has not.
    NotMerged,
    /// A command has started the job. Whether it runs is not known.
    Started,
}

/// Prints the state.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    match arguments.subject.ran()? {
        Ran::OnEmr(found) => {
            let document = Document::of(&found)?;
            super::print(arguments.json, &document, || document.text())
        }
        Ran::Elsewhere(ran) => {
            let document = WithoutEmr::of(*ran, arguments.subject.argument())?;
            super::print(arguments.json, &document, || document.text())
        }
    }
}

impl Shards {
    fn of(submitted: &JobWithRun) -> Result<Self, Error> {
        let committed = submitted.store.list("commit/")?.len();
        Ok(Self { committed, partitions: submitted.job.hadoop.reducers })
    }

    fn text(&self) -> String {
        format!("shards            {} of {} committed\n", self.committed, self.partitions)
    }
}

impl WithoutEmr {
    fn of(ran: Elsewhere, argument: String) -> Result<Self, Error> {
        let Elsewhere { of, failure, made: result, has_counts } = ran;
        let state = match (&failure, &result) {
            (Some(_), _) => RunState::Failed,
            (None, Some(_)) => RunState::Completed,
            (None, None) if has_counts => RunState::NotMerged,
            (None, None) => RunState::Started,
        };
        let is_local = failure.as_ref().is_some_and(|failure| failure.runner() == Runner::Local.name())
            || result.as_ref().is_some_and(|made| made.run.is_none());
        let shards = if is_local { None } else { Some(Shards::of(&of)?) };
        Ok(Self { state, failure, shards, result, run: of.store.url(), argument })
    }

    fn text(&self) -> String {
        let Self { state, failure, shards, result, run, argument } = self;
        let said = match (state, failure) {
            (RunState::Failed, Some(failure)) => failure.text(),
            (RunState::NotMerged, _) => {
                "the Hadoop job has completed, and its run has not been merged".to_owned()
            }
            (RunState::Started, _) => {
                "started, and no end is recorded: it runs, or its command was killed".to_owned()
            }
            (RunState::Completed | RunState::Failed, _) => "completed".to_owned(),
        };
        let mut text = format!("run               {run}\nstate             {said}\n");
        if let Some(record) = failure.as_ref().and_then(|failure| failure.record.as_ref()) {
            text += &format!("message           {}\n", record.message);
            if let Some(application) = &record.application {
                text += &format!("application       {application}\n");
            }
        }
        for log in failure.iter().flat_map(|failure| &failure.logs) {
            text += &format!("log               {run}/{log}\n");
        }
        text += &shards.as_ref().map(Shards::text).unwrap_or_default();
        if let Some(made) = result {
            text +=
                &format!("dataset           {} ({} bytes, {} rows)\n", made.dataset, made.bytes, made.rows);
        }
        let runner = failure.as_ref().map_or("hadoop", RunFailure::runner);
        let next = match state {
            RunState::Failed => format!(
                "emr diagnose {argument} shows the cause; emr run {argument} --runner {runner} starts it again"
            ),
            RunState::NotMerged => format!("emr run {argument} --runner hadoop merges it"),
            RunState::Completed | RunState::Started => return text,
        };
        text + &format!("next              {next}\n")
    }
}

impl Document {
    fn of(found: &FoundCluster) -> Result<Self, Error> {
        let state = follow::JobState::of(&found.emr, &found.cluster, &found.run_id())?;
        let cost = Cost::of(&found.emr.instances(&found.cluster)?, &found.prices(), now_unix_s());
        let idle = Idle::of(&found.emr, &state, &cost);
        let shards = found.job.as_ref().map(Shards::of).transpose()?;
        Ok(Self { cluster: state.cluster, steps: state.steps, shards, cost, idle })
    }

    fn text(&self) -> String {
        let Self { cluster, steps, shards, cost, idle } = self;
        let now = now_unix_s();
        let since = cluster.times.created_unix_s.map(|created| {
            let end = cluster.times.ended_unix_s.unwrap_or(now);
            format!(", {} after its creation", duration(end.saturating_sub(created)))
        });
        let release = cluster.release.as_deref().unwrap_or("no release");
        let mut text = format!(
            "cluster           {} ({release}): {}{}\n",
            cluster.id,
            cluster.state,
            since.unwrap_or_default()
        );
        if let Some(reason) =
            cluster.reason.as_ref().map(|reason| reason.text()).filter(|text| !text.is_empty())
        {
            text += &format!("                  {reason}\n");
        }
        for (n, step) in (1..).zip(steps) {
            let took = step.times.started_unix_s.map(|begin| {
                let end = step.times.ended_unix_s.unwrap_or(now);
                format!(", {}", duration(end.saturating_sub(begin)))
            });
            let name = format!("step {n} of {}", steps.len());
            text += &format!("{name:18}{}: {}{}\n", step.name, step.state, took.unwrap_or_default());
            if let Some(reason) = step.reason.as_ref().map(|reason| reason.text()) {
                text += &format!("                  {reason}\n");
            }
        }
        text += &shards.as_ref().map(Shards::text).unwrap_or_default();
        text += &format!("cost              {cost}\n");
        if let Some(idle) = idle {
            text += &format!("idle              {}\n", idle.sentence(&cluster.id));
        }
        text
    }
}

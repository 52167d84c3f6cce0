//! `emr status`: the state of a job and of its cluster.

use clap::Args;
use serde::Serialize;

use super::subject::{Found, Subject};
use crate::Error;
use crate::cluster::{Cluster, Step};
use crate::cost::{Cost, now_unix_s};
use crate::follow::State;
use crate::idle::{Idle, duration};

const EXAMPLES: &str = "\
Examples:
  emr status JOB.toml
      Print the state of the job, its cluster and its cost so far

  emr status --cluster j-2AXXXXXXGAPLF --json
      Print the state of a cluster as JSON";

/// Print the state of a job and its cost so far
///
/// Also for jobs that were started on another machine: the run states the cluster.
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

/// Prints the state.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.subject.find()?;
    let document = Document::of(&found)?;
    super::print(arguments.json, &document, || document.text())
}

impl Document {
    fn of(found: &Found) -> Result<Self, Error> {
        let state = State::of(&found.emr, &found.cluster, &found.run_id())?;
        let cost = Cost::of(&found.emr.instances(&found.cluster)?, &found.prices(), now_unix_s());
        let idle = Idle::of(&found.emr, &state, &cost);
        let shards = match &found.job {
            Some(submitted) => Some(Shards {
                committed: submitted.store.list("commit/")?.len(),
                partitions: submitted.job.hadoop.reducers,
            }),
            None => None,
        };
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
        if let Some(Shards { committed, partitions }) = shards {
            text += &format!("shards            {committed} of {partitions} committed\n");
        }
        text += &format!("cost              {cost}\n");
        if let Some(idle) = idle {
            text += &format!("idle              {}\n", idle.sentence(&cluster.id));
        }
        text
    }
}

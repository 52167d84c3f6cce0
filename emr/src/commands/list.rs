//! `emr list`: the clusters of this project in an account and region.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use store::S3Options;

use crate::Error;
use crate::client::Emr;
use crate::cluster::{self, Cluster};
use crate::cost::{Cost, now_unix_s};
use crate::follow::JobState;
use crate::idle::{Idle, duration};
use crate::job::{Job, Prices, RUN_TAG};

const EXAMPLES: &str = "\
Examples:
  emr list
      List the clusters that emr created and that have not ended

  emr list --idle --prices JOB.toml
      List those without work, with what they cost per hour";

/// List the clusters that emr created
///
/// Clusters that have not ended and have the tag sentimill-run, in one region.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Only clusters without work
    #[arg(long)]
    pub idle: bool,
    /// Job file with the prices of instances
    #[arg(long, value_name = "JOB.toml")]
    pub prices: Option<PathBuf>,
    /// Region [default: that of --prices, or AWS_REGION]
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

/// The document of `emr list --json`.
#[derive(Debug, Serialize)]
struct Document {
    region: String,
    clusters: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    cluster: Cluster,
    cost: Cost,
    idle: Option<Idle>,
}

/// Prints the list.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let job = arguments.prices.as_deref().map(Job::read).transpose()?;
    let (emr, prices) = match &job {
        Some(job) => (super::subject::connect(job, arguments.region.as_deref())?, job.prices.clone()),
        None => {
            let options = S3Options { region: arguments.region.clone(), ..S3Options::default() };
            (Emr::connect(&options)?, Prices::default())
        }
    };
    let document =
        Document { region: emr.region().to_owned(), clusters: entries(&emr, &prices, arguments.idle)? };
    super::print(arguments.json, &document, || document.text(arguments.idle))
}

fn entries(emr: &Emr, prices: &Prices, only_idle: bool) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for listed in emr.clusters()? {
        let cluster = emr.cluster(&listed.id)?;
        // A cluster may have ended since it was listed.
        if !cluster.tags.contains_key(RUN_TAG) || !cluster::accepts_steps(&cluster.state) {
            continue;
        }
        let steps = emr.steps(&cluster.id)?;
        let state = JobState::new(cluster, steps, "");
        if only_idle && !state.is_idle() {
            continue;
        }
        let cost = Cost::of(&emr.instances(&state.cluster.id)?, prices, now_unix_s());
        let idle = Idle::of(emr, &state, &cost);
        entries.push(Entry { cluster: state.cluster, cost, idle });
    }
    Ok(entries)
}

impl Document {
    fn text(&self, only_idle: bool) -> String {
        if self.clusters.is_empty() {
            let idle = if only_idle { "idle " } else { "" };
            return format!("no {idle}clusters of emr in {}\n", self.region);
        }
        self.clusters.iter().map(Entry::text).collect()
    }
}

impl Entry {
    fn text(&self) -> String {
        let Self { cluster, cost, idle } = self;
        let age = cluster.times.created_unix_s.map(|created| now_unix_s().saturating_sub(created));
        let age = age.map(|seconds| format!(", created {} ago", duration(seconds))).unwrap_or_default();
        let mut text = format!("{} {} {}{age}: {cost}\n", cluster.id, cluster.state, cluster.name);
        if let Some(idle) = idle {
            text += &format!("  {}\n", idle.sentence(&cluster.id));
        }
        text
    }
}

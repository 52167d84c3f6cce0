//! `emr terminate`: ends a cluster.

use clap::Args;
use program::exit::Exit;
use serde::Serialize;

use super::subject::Subject;
use crate::Error;
use crate::cluster::has_ended;

const EXAMPLES: &str = "\
Examples:
  emr terminate JOB.toml
      End the cluster of the job

  emr terminate --cluster j-2AXXXXXXGAPLF
      End a cluster";

/// End the cluster of a job
///
/// Running steps are lost, and so is what HDFS holds. Committed shards remain in the run, and emr run continues the
/// job on a new cluster.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The job or the cluster.
    #[command(flatten)]
    pub subject: Subject,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The document of `emr terminate --json`.
#[derive(Debug, Serialize)]
struct Document {
    cluster: String,
    had_ended: bool,
}

/// Ends the cluster.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.subject.find()?;
    let cluster = found.emr.cluster(&found.cluster)?;
    let had_ended = has_ended(&cluster.state);
    if cluster.is_protected && !had_ended {
        let id = &cluster.id;
        return Err(Error::new(
            Exit::Settings,
            format!(
                "{id}: termination protection is on, expected it off; turn it off with aws emr modify-cluster-attributes \
                 --cluster-id {id} --no-termination-protected"
            ),
        ));
    }
    if !had_ended {
        found.emr.terminate(&cluster.id)?;
    }
    let document = Document { cluster: cluster.id, had_ended };
    super::print(arguments.json, &document, || match had_ended {
        true => format!("{}: has already ended ({})\n", document.cluster, cluster.state),
        false => {
            format!("{}: is being terminated; emr status shows its end and its cost\n", document.cluster)
        }
    })
}

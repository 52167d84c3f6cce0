//! `emr cancel`: cancels the steps of a job. The cluster remains.

use aws_sdk_emr::types::StepState;
use clap::Args;
use program::exit::Exit;
use serde::Serialize;

use super::subject::Subject;
use crate::Error;
use crate::cluster::has_ended;
use crate::follow::JobState;

const EXAMPLES: &str = "\
Examples:
  emr cancel JOB.toml
      Cancel the steps of the job; its cluster remains

  emr cancel --cluster j-2AXXXXXXGAPLF
      Cancel all steps of a cluster";

/// Cancel the steps of a job
///
/// A running step is stopped: EMR ends its Hadoop client. On a cluster that remains, the YARN application of the step
/// may continue until `yarn application -kill` ends it. Committed shards remain, and emr run continues the job. A
/// cluster that was created for the job ends by itself; another cluster remains.
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

/// The document of `emr cancel --json`.
#[derive(Debug, Serialize)]
struct Document {
    cluster: String,
    cancelled: Vec<String>,
    refused: Vec<String>,
    /// Whether one of the cancelled steps was running.
    was_running: bool,
    stays: bool,
}

/// Cancels the steps.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let found = arguments.subject.find()?;
    let state = JobState::of(&found.emr, &found.cluster, &found.run_id())?;
    // EMR refuses to cancel a step that is being cancelled.
    let open =
        state.steps.iter().filter(|step| matches!(step.state, StepState::Pending | StepState::Running));
    let open: Vec<String> = open.map(|step| step.id.clone()).collect();
    let refused = match open.is_empty() || has_ended(&state.cluster.state) {
        true => Vec::new(),
        false => found.emr.cancel_steps(&found.cluster, &open)?,
    };
    let is_refused = |step: &String| refused.iter().any(|line| line.starts_with(step.as_str()));
    let cancelled: Vec<String> = open.into_iter().filter(|step| !is_refused(step)).collect();
    let mut running = state.steps.iter().filter(|step| step.state == StepState::Running);
    let was_running = running.any(|step| cancelled.contains(&step.id));
    let (cluster, stays) = (found.cluster, state.cluster.stays && !has_ended(&state.cluster.state));
    let document = Document { cluster, cancelled, refused, was_running, stays };
    super::print(arguments.json, &document, || document.text())?;
    match document.refused.len() {
        0 => Ok(()),
        refused => {
            let cluster = document.cluster;
            Err(Error::new(
                Exit::TryAgain,
                format!(
                    "{cluster}: EMR refused to cancel {refused} steps, listed above; run the command again, or end the \
                     cluster with emr terminate"
                ),
            ))
        }
    }
}

impl Document {
    fn text(&self) -> String {
        let Self { cluster, cancelled, refused, was_running, stays } = self;
        let mut text = match cancelled.len() {
            0 => format!("{cluster}: no step to cancel\n"),
            n => format!("{cluster}: {n} steps cancelled: {}\n", cancelled.join(", ")),
        };
        for line in refused {
            text += &format!("{cluster}: EMR refused to cancel {line}\n");
        }
        if *stays && *was_running {
            text += &format!(
                "{cluster}: the YARN application of the running step may continue; on the primary node, yarn application \
                 -list shows it and yarn application -kill ends it\n"
            );
        }
        if *stays {
            text +=
                &format!("{cluster}: remains and costs money; emr terminate --cluster {cluster} ends it\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_step_of_a_cluster_that_remains_may_leave_its_application() {
        let text = |was_running, stays| {
            let (cluster, cancelled) = ("j-1".to_owned(), vec!["s-1".to_owned()]);
            Document { cluster, cancelled, refused: Vec::new(), was_running, stays }.text()
        };
        assert_eq!(text(true, false), "j-1: 1 steps cancelled: s-1\n");
        let remains = "j-1: remains and costs money; emr terminate --cluster j-1 ends it\n";
        assert_eq!(text(false, true), format!("j-1: 1 steps cancelled: s-1\n{remains}"));
        assert!(text(true, true).contains("yarn application -kill"));
    }
}

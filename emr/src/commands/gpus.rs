//! `emr gpus`: machines for training, and the commands that start them.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::Error;
use crate::finding::Finding;
use crate::gpus::{Training, plan};
use crate::job::Job;

/// The examples of the help.
pub const EXAMPLES: &str = "\
Examples:
  emr gpus JOB.toml
      Print the commands that start the machines and the training

  emr gpus JOB.toml --user-data >user-data.sh
      Write the start-up script of the machines";

/// What to plan.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Job file with the table `gpus`
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Print only the start-up script
    ///
    /// The script is for EC2's user data. It contains no credentials.
    #[arg(long)]
    pub user_data: bool,
    /// Print the commands as JSON
    ///
    /// One JSON document on standard output. With errors it has no commands.
    #[arg(long, conflicts_with = "user_data")]
    pub json: bool,
}

/// Prints the commands. With errors nothing is printed to standard output, except with `--json`.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let job = Job::read(&arguments.job)?;
    let gpus = job
        .gpus
        .as_ref()
        .ok_or_else(|| job.no_table("gpus", "so there are no machines to plan; add the table"))?;
    let training = plan(&job, gpus);
    let errors: Vec<_> = training.findings.iter().filter(|finding| finding.is_error()).cloned().collect();
    let text = match (arguments.json, arguments.user_data) {
        (true, _) => as_json(&training, errors.is_empty()),
        _ if !errors.is_empty() => String::new(),
        (_, true) => training.user_data.clone(),
        _ => as_text(&training),
    };
    program::exit::print(&text).map_err(Error::output)?;
    for warning in training.findings.iter().filter(|finding| !Finding::is_error(finding)) {
        program::exit::notice("emr", &format!("warning: {warning}"));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Error::BadJob { path: arguments.job.clone(), findings: errors })
    }
}

fn as_json(training: &Training, is_usable: bool) -> String {
    let mut document = json!(training);
    if let Some(fields) = document.as_object_mut().filter(|_| !is_usable) {
        fields.retain(|name, _| !["user_data", "start", "key", "train"].contains(&name.as_str()));
    }
    format!("{document:#}\n")
}

fn as_text(training: &Training) -> String {
    let price =
        training.price_per_hour.as_ref().map(|price| format!(", {price} per hour")).unwrap_or_default();
    let mut text = format!(
        "# {} × {}, {} × {} each{price}\n\n# The start-up script, user-data.sh:\n\n{}\n# Start the machines:\n\n{}\n",
        training.machines,
        training.instance_type,
        training.gpus_per_machine,
        training.gpu,
        training.user_data,
        training.start
    );
    if let Some(key) = &training.key {
        text += &format!(
            "\n# On machine 0, once: a key for the ranks. All machines read it at this path:\n\n{key}\n\n\
             # On each machine: the private address of machine 0:\n\nexport FIRST=10.0.0.1\n"
        );
    }
    for (rank, line) in training.train.iter().enumerate() {
        text += &format!("\n# On machine {rank}:\n\n{line}\n");
    }
    text
}

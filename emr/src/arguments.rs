//! The arguments of the program `emr`.

use clap::{Parser, Subcommand};

use crate::Error;
use crate::commands::{diagnose, doctor, logs};

/// Plan, submit and watch jobs on Amazon EMR
///
/// A job file, JOB.toml, names the reviews, the run, the dataset and the cluster.
#[derive(Parser, Clone, Debug)]
#[command(version, disable_help_subcommand = true)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, in the order in which a user needs them.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// List or print logs of a cluster
    Logs(logs::Arguments),
    /// Find the cause of a failure in logs
    Diagnose(diagnose::Arguments),
    /// Check what this machine can do
    Doctor(doctor::Arguments),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<(), Error> {
        match self {
            Self::Logs(arguments) => logs::run(arguments),
            Self::Diagnose(arguments) => diagnose::run(arguments),
            Self::Doctor(arguments) => doctor::run(arguments),
        }
    }
}

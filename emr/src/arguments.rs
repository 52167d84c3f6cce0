//! The arguments of the program `emr`.

use clap::{Parser, Subcommand};

use crate::Error;
use crate::commands::doctor;

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
    /// Check what this machine can do
    Doctor(doctor::Arguments),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<(), Error> {
        match self {
            Self::Doctor(arguments) => doctor::run(arguments),
        }
    }
}

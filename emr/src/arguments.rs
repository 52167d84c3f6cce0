//! The arguments of the program `emr`.

use clap::{Parser, Subcommand};

use crate::Error;
use crate::commands::{cancel, diagnose, doctor, gpus, list, logs, plan, run, status, terminate, watch};

const EXAMPLES: &str = "\
Examples:
  emr plan JOB.toml
      Check a job and print its requests, its time and its price

  emr run JOB.toml
      Run it on Amazon EMR, and print the ledger and the cost";

/// Plan, submit and watch jobs on Amazon EMR
///
/// A job file, JOB.toml, names the reviews, the run, the dataset and the cluster.
#[derive(Parser, Clone, Debug)]
#[command(version, disable_help_subcommand = true, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, in the order in which a user needs them.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Check a job; print its price, time and cluster
    ///
    /// Reads a job file, checks it, and prints the requests to Amazon EMR that `emr run` would send. Nothing is sent
    /// without --online. With errors the exit code is 78.
    #[command(after_long_help = plan::EXAMPLES)]
    Plan(plan::Arguments),
    /// Run a job on EMR, on a Hadoop cluster or on this machine
    Run(run::Arguments),
    /// Follow a job on EMR until it ends
    Watch(watch::Arguments),
    /// Print the state of a job and its cost so far
    Status(status::Arguments),
    /// List or print logs of a job or a cluster
    Logs(logs::Arguments),
    /// Find the cause of a failure in logs
    Diagnose(diagnose::Arguments),
    /// Cancel the steps of a job
    Cancel(cancel::Arguments),
    /// End the cluster of a job
    Terminate(terminate::Arguments),
    /// List the clusters that emr created
    List(list::Arguments),
    /// Print commands and start-up script of machines for training
    ///
    /// Reads the table `gpus` of a job file, checks it, and prints the commands that start the machines and the
    /// training. Nothing is sent.
    #[command(after_long_help = gpus::EXAMPLES)]
    Gpus(gpus::Arguments),
    /// Check what this machine can do
    Doctor(doctor::Arguments),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<(), Error> {
        match self {
            Self::Plan(arguments) => plan::run(arguments),
            Self::Run(arguments) => run::run(arguments),
            Self::Watch(arguments) => watch::run(arguments),
            Self::Status(arguments) => status::run(arguments),
            Self::Logs(arguments) => logs::run(arguments),
            Self::Diagnose(arguments) => diagnose::run(arguments),
            Self::Cancel(arguments) => cancel::run(arguments),
            Self::Terminate(arguments) => terminate::run(arguments),
            Self::List(arguments) => list::run(arguments),
            Self::Gpus(arguments) => gpus::run(arguments),
            Self::Doctor(arguments) => doctor::run(arguments),
        }
    }
}

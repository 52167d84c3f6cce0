//! The commands of the program. Each module converts the arguments of a command into calls of the other
//! modules.

mod autotune;
mod data;
mod device;
mod evaluate;
mod explain;
mod export;
mod fit;
mod folds;
mod init;
mod launch;
mod ngrams;
mod predict;
mod pretrain;
mod progress;
mod recipe;
mod soft_labels;
mod summary;
mod training;

use std::path::PathBuf;
use std::process::ExitCode;

use ::training::model;
use ::training::page::report;
use ::training::ranks::check_alone;
use program::exit::{Exit, Failed};
use program::limits::memory_limit;
use program::location::Location;
use store::S3Options;

use crate::arguments::Command;
use crate::error::Result;

/// Address space that PyTorch needs, for `ulimit -v`.
const TORCH_BYTES: u64 = 1 << 30;
/// Threads of a training besides those that compute.
const OTHER_THREADS: usize = 4;

/// Runs a command.
pub fn run(command: &Command) -> Result<ExitCode> {
    if !matches!(command, Command::Launch(_) | Command::Report(_) | Command::Autotune(_)) {
        check_limits()?;
    }
    match command {
        Command::Launch(arguments) => return launch::launch(arguments),
        Command::Report(arguments) => report(arguments)?,
        Command::Autotune(arguments) => {
            check_alone(Exit::Settings, ", because autotune has one rank")?;
            autotune::tune(arguments)?;
        }
        Command::Fit(arguments) => fit::fit(arguments)?,
        Command::Pretrain(arguments) => pretrain::pretrain(arguments)?,
        Command::Evaluate(arguments) => evaluate::evaluate(arguments)?,
        Command::Predict(arguments) => predict::predict(arguments)?,
        Command::Explain(arguments) => explain::explain(arguments)?,
        Command::Export(arguments) => export::export(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses limits with which PyTorch ends the process.
fn check_limits() -> Result<()> {
    // With less memory, the libraries end the process when they start a thread.
    if let Some(limit) = memory_limit().filter(|&limit| limit < TORCH_BYTES) {
        let expected = format!("at least {TORCH_BYTES}; raise it with ulimit -v");
        let message = format!("PyTorch: found a limit of {limit} bytes of memory, expected {expected}");
        return Err(Failed::new(Exit::Io, message).into());
    }
    // OpenMP and PyTorch end the process if they get no thread.
    program::threads::check(usize::try_from(tch::get_num_threads()).unwrap_or(1) + OTHER_THREADS);
    Ok(())
}

/// The local model folder of a classifier, of which `command` is a command.
fn model_at(model: &Location, s3: &S3Options, command: &str) -> Result<PathBuf> {
    let path = model::path(model, s3)?;
    if model::is_of_ngrams(&path) {
        let message = format!(
            "{model}: a model of n-grams, expected one of `trainer fit`; run `ngrams {command} {model}`"
        );
        return Err(Failed::new(Exit::Usage, message).into());
    }
    Ok(path)
}

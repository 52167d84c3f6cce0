//! The commands of the program. Each module converts the arguments of a command into calls of the other
//! modules.

mod classes;
mod device;
mod evaluate;
mod explain;
mod export;
mod fit;
mod folds;
mod init;
mod launch;
mod lines;
mod model;
mod out;
mod outcome;
mod predict;
mod pretrain;
mod progress;
mod recipe;
mod report;
mod rows;
mod soft_labels;
mod summary;
mod training;

use crate::arguments::Command;
use crate::error::{Error, Result};

pub use launch::launch;

/// Runs a command that needs no tensors. `None` if the command needs them.
pub fn without_torch(command: &Command) -> Option<Result<()>> {
    match command {
        Command::Report(arguments) => Some(report::report(arguments)),
        Command::Fit(_)
        | Command::Pretrain(_)
        | Command::Evaluate(_)
        | Command::Predict(_)
        | Command::Explain(_)
        | Command::Export(_)
        | Command::Launch(_) => None,
    }
}

/// Runs a command that [`without_torch`] does not run.
pub fn with_torch(command: &Command) -> Result<()> {
    match command {
        Command::Fit(arguments) => fit::fit(arguments),
        Command::Pretrain(arguments) => pretrain::pretrain(arguments),
        Command::Evaluate(arguments) => evaluate::evaluate(arguments),
        Command::Predict(arguments) => predict::predict(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Export(arguments) => export::export(arguments),
        Command::Report(_) | Command::Launch(_) => {
            Err(Error::internal(&"a command without tensors was not run"))
        }
    }
}

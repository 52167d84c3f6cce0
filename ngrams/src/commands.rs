//! The commands. Each module converts the arguments of a command into calls of the other modules.

mod autotune;
mod evaluate;
mod explain;
mod export;
mod initial;
mod out;
mod predict;
mod progress;
mod record;
mod settings;
mod soft_labels;
mod top;
mod train;

use std::path::PathBuf;

use classifiers::Classifier;
use program::exit::{Exit, Failed};
use program::location::Location;
use runs::saved::CONFIG;
use store::S3Options;
use training::Result;
use training::lines::InvalidUtf8;
use training::model::{is_of_ngrams, path};
use training::page::report;
use training::ranks::check_alone;

use crate::arguments::Command;

/// Why there are no ranks, with which earlier releases trained.
const ALONE: &str = " for ngrams: one process with --threads is faster than ranks";

/// Runs a command.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Train(arguments) => {
            check_alone(Exit::Usage, ALONE)?;
            train::train(arguments)
        }
        Command::Evaluate(arguments) => evaluate::evaluate(arguments),
        Command::Predict(arguments) => match (&arguments.of_all.soft, &arguments.of_all.files[..]) {
            (Some(out), [dataset]) => soft_labels::write(arguments, dataset, out),
            _ => predict::predict(arguments),
        },
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Export(arguments) => export::export(arguments),
        Command::Autotune(arguments) => {
            check_alone(Exit::Usage, ALONE)?;
            autotune::tune(arguments)
        }
        Command::Report(arguments) => report(arguments),
    }
}

/// The local path of a model of n-grams, of which `command` is a command.
fn model_at(model: &Location, s3: &S3Options, command: &str) -> Result<PathBuf> {
    let path = path(model, s3)?;
    if is_of_ngrams(&path) || !path.join(CONFIG).exists() {
        return Ok(path);
    }
    let message = format!(
        "{model}: the model of another program, expected one of `ngrams train`; run `trainer {command} {model}`"
    );
    Err(Failed::new(Exit::Usage, message).into())
}

/// How a model reads bytes that are not UTF-8.
fn invalid_utf8(classifier: &Classifier) -> InvalidUtf8 {
    match classifier.words().rules() {
        Some(_) => InvalidUtf8::Spaces,
        None => InvalidUtf8::Bytes,
    }
}

//! The commands of the program. Each module converts the arguments of a command into calls of the other
//! modules.

mod autotune;
mod classes;
mod device;
mod embed;
mod evaluate;
mod explain;
mod export;
mod family;
mod fit;
mod folds;
pub(crate) mod group;
mod init;
mod launch;
mod lines;
mod model;
mod ngrams;
mod out;
mod outcome;
mod predict;
mod pretrain;
mod print;
mod progress;
mod recipe;
mod report;
mod rows;
mod serve;
mod soft_labels;
mod summary;
mod texts_out;
mod training;
mod vectors;

use std::path::{Path, PathBuf};

use crate::arguments::{Command, Evaluate, Explain, Export, Predict};
use crate::environment::{check_alone, has_ranks, refuse_ranks};
use crate::error::{Error, Result};

pub use launch::launch;

/// Runs a command that needs no tensors, such as each command of an n-gram model. `None` if the command needs them.
pub fn without_torch(command: &Command) -> Option<Result<()>> {
    match command {
        Command::Ngrams(arguments) => Some(refuse_ranks().and_then(|()| ngrams::ngrams(arguments))),
        Command::Embed(_) if has_ranks() => None,
        Command::Embed(arguments) => Some(embed::embed(arguments)),
        Command::Serve(arguments) => Some(check_alone("serve").and_then(|()| serve::serve(arguments))),
        Command::Autotune(arguments) => {
            Some(check_alone("autotune").and_then(|()| autotune::autotune(arguments)))
        }
        Command::Report(arguments) => Some(report::report(arguments)),
        Command::Vectors(arguments) => Some(vectors::vectors(arguments)),
        Command::Evaluate(arguments) => {
            let Evaluate { model, storage, given, .. } = arguments;
            of_ngrams(family::ngrams(model, &storage.options(), given, &[]), |path| {
                ngrams::evaluate(arguments, path)
            })
        }
        Command::Predict(arguments) => {
            let Predict { model, storage, given, .. } = arguments;
            let shared = ["format", "preset", "text_field", "with_title"];
            let found = family::ngrams(model, &storage.options(), given, &shared);
            of_ngrams(found, |path| match (&arguments.soft, &arguments.files[..]) {
                (Some(out), [dataset]) => soft_labels::write_by_ngrams(arguments, dataset, out, path),
                _ => ngrams::predict(arguments, path),
            })
        }
        Command::Explain(arguments) => {
            let Explain { model, storage, given, .. } = arguments;
            let shared = ["format", "preset", "text_field", "with_title", "top"];
            let found = family::ngrams(model, &storage.options(), given, &shared);
            of_ngrams(found, |path| ngrams::explain(arguments, path))
        }
        Command::Export(arguments) => {
            let Export { model, storage, given, .. } = arguments;
            of_ngrams(family::ngrams(model, &storage.options(), given, &[]), |path| {
                ngrams::export(arguments, path)
            })
        }
        Command::Fit(_) | Command::Pretrain(_) | Command::Launch(_) => None,
    }
}

/// Runs a command if the model is one of n-grams. An error of the detection ends the command.
fn of_ngrams(found: Result<Option<PathBuf>>, run: impl FnOnce(&Path) -> Result<()>) -> Option<Result<()>> {
    found.map(|path| path.map(|path| run(&path))).transpose().map(Result::flatten)
}

/// Threads of a training besides those that compute.
const OTHER_THREADS: usize = 4;

/// Runs a command that [`without_torch`] does not run.
pub fn with_torch(command: &Command) -> Result<()> {
    // OpenMP and PyTorch end the process if they get no thread.
    program::threads::check(usize::try_from(tch::get_num_threads()).unwrap_or(1) + OTHER_THREADS);
    match command {
        Command::Fit(arguments) => fit::fit(arguments),
        Command::Pretrain(arguments) => pretrain::pretrain(arguments),
        Command::Evaluate(arguments) => evaluate::evaluate(arguments),
        Command::Predict(arguments) => predict::predict(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Export(arguments) => export::export(arguments),
        Command::Embed(arguments) => embed::on_ranks(arguments),
        Command::Ngrams(_)
        | Command::Autotune(_)
        | Command::Serve(_)
        | Command::Report(_)
        | Command::Vectors(_)
        | Command::Launch(_) => Err(Error::internal(&"a command without tensors was not run")),
    }
}

//! The paths and URLs in the arguments of a command.

use program::location::Location;

use training::arguments::Report;

use crate::arguments::{Command, Fit, Pretrain};

/// The paths and URLs in the arguments of a command.
pub(super) fn locations(command: &Command) -> Vec<&Location> {
    match command {
        Command::Fit(fit) => locations_of_fit(fit),
        Command::Pretrain(pretrain) => {
            let Pretrain { dataset, out, lstm, training, .. } = &**pretrain;
            let optional = [out, &lstm.init_from, &training.resume];
            std::iter::once(dataset).chain(optional.into_iter().flatten()).collect()
        }
        Command::Evaluate(evaluate) => std::iter::once(&evaluate.model).chain(&evaluate.files).collect(),
        Command::Predict(predict) => {
            std::iter::once(&predict.of_all.model).chain(&predict.of_all.files).collect()
        }
        Command::Explain(explain) => {
            std::iter::once(&explain.of_all.model).chain(&explain.of_all.input).collect()
        }
        Command::Export(export) => std::iter::once(&export.model).chain(&export.out).collect(),
        Command::Report(Report { runs, out, .. }) => runs.iter().chain([out]).collect(),
        // The places of a search are checked by `of_search`.
        Command::Autotune(_) | Command::Launch(_) => Vec::new(),
    }
}

pub(super) fn locations_of_fit(fit: &Fit) -> Vec<&Location> {
    let Fit { dataset, out, validation, test, soft_labels, unlabelled, lstm, training, .. } = fit;
    let optional = [out, validation, test, unlabelled, &lstm.init_from, &training.resume];
    std::iter::once(dataset).chain(soft_labels).chain(optional.into_iter().flatten()).collect()
}

/// The output of a command, and whether `--force` was passed for it.
pub(super) fn out(command: &Command) -> (Option<&Location>, bool) {
    let (out, force) = match command {
        Command::Fit(fit) => (&fit.out, fit.training.force),
        Command::Pretrain(pretrain) => (&pretrain.out, pretrain.training.force),
        Command::Export(export) => (&export.out, export.force),
        _ => (&None, false),
    };
    (out.as_ref(), force)
}

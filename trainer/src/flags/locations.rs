//! The paths and URLs in the arguments of a command.

use program::location::Location;

use training::flags::Report;

use crate::arguments::{Command, Explain, Fit, Predict, Pretrain};

/// The paths and URLs in the arguments of a command.
pub(super) fn locations(command: &Command) -> Vec<&Location> {
    match command {
        Command::Fit(fit) => locations_of_fit(fit),
        Command::Pretrain(pretrain) => {
            let Pretrain { dataset, out, lstm, training, .. } = &**pretrain;
            let optional = [out, &lstm.init_from, &training.resume];
            std::iter::once(dataset).chain(optional.into_iter().flatten()).collect()
        }
        Command::Evaluate(evaluate) => std::iter::once(&evaluate.model).chain(&evaluate.datasets).collect(),
        Command::Predict(Predict { model, files, .. }) => std::iter::once(model).chain(files).collect(),
        Command::Explain(Explain { model, input, .. }) => std::iter::once(model).chain(input).collect(),
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

/// The URL of an output that `--force` would replace.
pub(super) fn replaced_in_s3(command: &Command) -> Option<&Location> {
    let out = match command {
        Command::Fit(fit) if fit.training.force => &fit.out,
        Command::Pretrain(pretrain) if pretrain.training.force => &pretrain.out,
        Command::Export(export) if export.force => &export.out,
        _ => return None,
    };
    out.as_ref().filter(|out| matches!(out, Location::S3(_)))
}

//! `trainer fit`: converts arguments and datasets into a saved classifier.

use training::print::print_json;

use super::data::Data;
use super::folds::fit_folds;
use super::recipe;
use super::training::{Job, Session, output};
use crate::arguments::Fit;
use crate::error::Result;

/// Trains a classifier. Every rank calls it with the same arguments; rank 0 writes.
pub fn fit(arguments: &Fit) -> Result<()> {
    if let Some(n_folds) = arguments.folds {
        return fit_folds(arguments, n_folds);
    }
    let Fit { lstm, training, .. } = arguments;
    let session = Session::join(training, arguments.backend.compute)?;
    let out = output(&arguments.out, &arguments.dataset, "model")?;
    let out = session.take(&out, training, lstm.init_from.as_ref())?;
    let data = Data::open(arguments, recipe::division(arguments)?, &session)?;
    let recipe = recipe::of_fit(arguments, data.splits(), session.device())?;
    let notes = data.notes(arguments, &recipe, &session)?;
    let (splits, soft_labels, test_every) = (data.splits(), &arguments.soft_labels[..], arguments.test_every);
    let job = Job {
        session: &session,
        out: &out,
        recipe: &recipe,
        splits,
        ngrams: data.ngrams.as_ref(),
        soft_labels,
        test_every,
        lstm,
        training,
    };
    match job.run(notes.into_iter())? {
        Some(summary) if training.json => Ok(print_json(&summary)?),
        _ => Ok(()),
    }
}

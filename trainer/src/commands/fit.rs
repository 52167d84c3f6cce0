//! `trainer fit`: converts arguments and datasets into a saved classifier.

use batches::{Division, Part, Rows, Smallest, training_texts_in};
use program::location::Location;

use super::folds::fit_folds;
use super::out::default_of;
use super::recipe;
use super::rows::{Reader, cut, trained_on_warning, validation_warning};
use super::summary::print;
use super::training::{Job, Session};
use crate::arguments::Fit;
use crate::error::Result;
use crate::splits::Splits;

/// Trains a classifier. Every rank calls it with the same arguments; rank 0 writes.
pub fn fit(arguments: &Fit) -> Result<()> {
    if let Some(n_folds) = arguments.folds {
        return fit_folds(arguments, n_folds);
    }
    let Fit { lstm, training, .. } = arguments;
    let out = arguments.out.clone().unwrap_or_else(|| default_of(&arguments.dataset, "model"));
    let session = Session::join(training, arguments.backend.compute)?;
    let out = session.take(&out, training, lstm.init_from.as_ref())?;
    let data = Data::open(arguments, recipe::division(arguments)?)?;
    let recipe = recipe::of_fit(arguments, data.splits(), session.device())?;
    let notes = data.notes(arguments, &recipe, &session)?;
    let (splits, test_every) = (data.splits(), arguments.test_every);
    let job = Job { session: &session, out: &out, recipe: &recipe, splits, test_every, lstm, training };
    match job.run(notes.into_iter())? {
        Some(summary) if training.json => print(&summary),
        _ => Ok(()),
    }
}

/// The datasets of a training.
pub(super) struct Data {
    rows: Rows,
    validation: Option<Rows>,
    test: Option<Rows>,
}

impl Data {
    /// Opens DATASET, and the datasets of --validation and --test, which must have its vocabulary and row settings.
    pub(super) fn open(arguments: &Fit, division: Division) -> Result<Self> {
        let Fit { lstm, training, .. } = arguments;
        let reader = Reader::of(lstm.tokens, &training.running, &training.storage);
        let rows = reader.open(&arguments.dataset, division, &Smallest::default())?;
        rows.check_classes(Part::Training)?;
        let held_back = |location: &Option<Location>, division| {
            let location = location.as_ref();
            location.map(|location| open_beside(location, division, &rows, &reader)).transpose()
        };
        let validation = held_back(&arguments.validation, Division::all_validation())?;
        let test = held_back(&arguments.test, Division::all_test())?;
        Ok(Self { rows, validation, test })
    }

    /// The splits.
    pub(super) fn splits(&self) -> Splits<'_> {
        Splits { rows: &self.rows, validation: self.validation.as_ref(), test: self.test.as_ref() }
    }

    /// Notes and warnings about the rows and the chosen settings, for rank 0.
    pub(super) fn notes(
        &self,
        arguments: &Fit,
        recipe: &runs::recipe::Recipe,
        session: &Session,
    ) -> Result<Vec<String>> {
        let Self { rows, validation, test } = self;
        let shared = match validation {
            Some(validation) => session.ranks().told(|| Ok(training_texts_in(validation, rows)?))?,
            None => 0,
        };
        let notes = [
            recipe::chosen_of_fit(arguments, recipe, rows)?,
            recipe::without_kernels(recipe, session.compute()),
            cut(rows, arguments.lstm.tokens),
            validation.as_ref().and_then(|validation| validation_warning(validation, rows, shared)),
            test.as_ref().and_then(|test| trained_on_warning(&test.name(), test.known(Part::Test))),
        ];
        Ok(notes.into_iter().flatten().collect())
    }
}

/// Opens a dataset whose rows are held back from training on `rows`.
fn open_beside(location: &Location, division: Division, rows: &Rows, reader: &Reader) -> Result<Rows> {
    let held_back = reader.open(location, division, rows.smallest())?;
    held_back.check_fits(&rows.vocabulary().words, &rows.settings().rows, &rows.name())?;
    Ok(held_back)
}

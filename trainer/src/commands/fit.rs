//! `trainer fit`: converts arguments and a dataset into a saved classifier.

use batches::{Division, Part, Rows, Smallest};
use program::location::Location;

use super::out::default_of;
use super::recipe;
use super::rows::{Reader, cut, trained_on_warning};
use super::training::{Job, Session};
use crate::arguments::Fit;
use crate::error::Result;

/// Trains a classifier. Every rank calls it with the same arguments; rank 0 writes.
pub fn fit(arguments: &Fit) -> Result<()> {
    let Fit { lstm, training, .. } = arguments;
    let out = arguments.out.clone().unwrap_or_else(|| default_of(&arguments.dataset, "model"));
    let session = Session::begin(&out, training, lstm.init_from.as_ref(), arguments.backend.compute)?;
    let division = recipe::division(arguments)?;
    let reader = Reader::of(lstm.tokens, &training.running, &training.storage);
    let rows = reader.open(&arguments.dataset, division, &Smallest::default())?;
    rows.check_classes(Part::Training)?;
    let test = arguments.test.as_ref().map(|test| open_test(test, &rows, &reader)).transpose()?;
    let recipe = recipe::of_fit(arguments, &rows, session.device())?;
    let warning = test.as_ref().and_then(|test| trained_on_warning(&test.name(), test.known(Part::Test)));
    let notes = [
        recipe::chosen_of_fit(arguments, &recipe, &rows),
        recipe::without_kernels(&recipe, session.compute()),
        cut(&rows, lstm.tokens),
        warning,
    ];
    let job = Job { session: &session, recipe: &recipe, rows: &rows, test: test.as_ref(), lstm, training };
    job.run(notes.into_iter().flatten())
}

fn open_test(test: &Location, rows: &Rows, reader: &Reader) -> Result<Rows> {
    let test = reader.open(test, Division::all_test(), rows.smallest())?;
    test.check_fits(&rows.vocabulary().words, &rows.settings().rows, &rows.name())?;
    Ok(test)
}

//! `trainer pretrain`: converts arguments and a dataset into a saved next-word model. All rows are training
//! rows.

use batches::{Division, Part, Smallest};
use training::datasets::{Reader, cut};
use training::print::print_json;

use super::data::alone;
use super::recipe;
use super::training::{Job, Session, output};
use crate::arguments::Pretrain;
use crate::error::Result;
use crate::train::splits::Splits;

/// Trains a next-word model. Every rank calls it with the same arguments; rank 0 writes.
pub fn pretrain(arguments: &Pretrain) -> Result<()> {
    let Pretrain { lstm, optimisation, training, .. } = arguments;
    let session = Session::join(training, arguments.backend.compute)?;
    let out = output(&arguments.out, &arguments.dataset, "pretrained")?;
    let out = session.take(&out, training, lstm.init_from.as_ref())?;
    let division = Division::by_fractions(0.0, 0.0)?;
    let reader = Reader::new(lstm.tokens, training.running.memory as u64, &training.storage);
    let rows = reader.open(&arguments.dataset, division, &Smallest::default())?;
    let recipe = recipe::of_pretrain(arguments, &rows, session.device())?;
    let n_rows = rows.census(Part::Training).rows;
    let notes = [
        recipe::chosen(optimisation, &recipe, n_rows, None),
        alone(optimisation, &session),
        cut(&rows, lstm.tokens),
    ];
    let (splits, test_every) = (Splits::of(&rows), false);
    let job = Job {
        session: &session,
        out: &out,
        recipe: &recipe,
        splits,
        ngrams: None,
        soft_labels: &[],
        test_every,
        lstm,
        training,
    };
    match job.run(notes.into_iter().flatten())? {
        Some(summary) if training.json => Ok(print_json(&summary)?),
        _ => Ok(()),
    }
}

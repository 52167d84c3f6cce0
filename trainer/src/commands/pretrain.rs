//! `trainer pretrain`: trains and saves a model that predicts next words. It holds no rows back.

use batches::{Division, Smallest};

use super::recipe;
use super::rows::{cut, open};
use super::training::{Job, Session};
use crate::arguments::Pretrain;
use crate::error::Result;

/// Trains a model that predicts next words. Every rank calls it with the same arguments; rank 0 writes.
pub fn pretrain(arguments: &Pretrain) -> Result<()> {
    let Pretrain { lstm, optimisation, training, .. } = arguments;
    let session = Session::begin(&arguments.out, training)?;
    let division = Division::by_fractions(0.0, 0.0)?;
    let rows = open(&arguments.dataset, division, lstm.tokens, &training.running, &Smallest::default())?;
    let recipe = recipe::of_pretrain(arguments, &rows, session.device())?;
    let said = [recipe::chosen(optimisation, &recipe, &rows, None), cut(&rows, lstm.tokens)];
    let job = Job { session: &session, recipe: &recipe, rows: &rows, test: None, lstm, training };
    job.run(said.into_iter().flatten())
}

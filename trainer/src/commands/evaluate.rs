//! `trainer evaluate`: a saved model's metrics on the rows of a dataset.

use std::io::{self, Write};

use super::device;
use super::fit::open;
use crate::arguments::Evaluate;
use crate::batches::{Division, Part};
use crate::error::{Error, Result};
use crate::evaluate::{self, Evaluation};
use crate::models::{Classifier, read_classifier};
use crate::ranks::Ranks;

/// Prints the metrics as one JSON object.
pub fn evaluate(arguments: &Evaluate) -> Result<()> {
    let compute = device::choose(&arguments.running)?;
    let ranks = Ranks::join(compute.device())?;
    let Classifier { lstm, objective, vocabulary, config } =
        read_classifier(&arguments.model, compute.device())?;
    let division = match arguments.test_fraction {
        Some(fraction) => Division::by_fractions(fraction, 0.0)?,
        None => Division::all_test(),
    };
    let rows = open(&arguments.dataset, division, config.tokens_max, &arguments.running)?;
    if rows.vocabulary().words != vocabulary {
        return Err(Error::OtherVocabulary { path: arguments.dataset.clone(), of: arguments.model.clone() });
    }
    let evaluation = Evaluation {
        part: Part::Test,
        batch_rows: arguments.batch as usize,
        objective,
        positive_from: config.preparation.positive_from,
        loaders: usize::from(arguments.running.loaders),
    };
    let metrics = evaluate::evaluate(&lstm, &rows, &ranks, &compute, &evaluation)?;
    if ranks.is_first() {
        let json = serde_json::to_string(&metrics).map_err(|error| Error::internal(&error))?;
        writeln!(io::stdout(), "{json}").map_err(|source| Error::io("standard output".as_ref(), source))?;
    }
    Ok(())
}

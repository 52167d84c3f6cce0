//! `trainer evaluate`: a saved model's metrics on the rows of datasets.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::fit::open;
use super::{device, model};
use crate::arguments::Evaluate;
use crate::batches::{Division, Part, Rows};
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::evaluate::{self, Evaluation};
use crate::metrics::Metrics;
use crate::models::{Classifier, read_classifier};
use crate::ranks::Ranks;

/// What is printed of a dataset.
#[derive(Serialize)]
struct Evaluated<'a> {
    /// As it was named.
    dataset: &'a Path,
    #[serde(flatten)]
    metrics: Metrics,
}

/// Prints a JSON object for each dataset.
pub fn evaluate(arguments: &Evaluate) -> Result<()> {
    let compute = device::choose(&arguments.running)?;
    let ranks = Ranks::join(compute.device())?;
    let classifier = read_classifier(&model::folder(&arguments.model), compute.device())?;
    let division = match arguments.test_fraction {
        Some(fraction) => Division::by_fractions(fraction, 0.0)?,
        None => Division::all_test(),
    };
    for dataset in &arguments.datasets {
        let rows = opened(dataset, division, &classifier, arguments)?;
        let metrics = metrics_of(&rows, &classifier, &ranks, &compute, arguments)?;
        if ranks.is_first() {
            print(&Evaluated { dataset, metrics })?;
        }
    }
    Ok(())
}

/// Opens a dataset whose ids are the model's.
fn opened(dataset: &Path, division: Division, classifier: &Classifier, arguments: &Evaluate) -> Result<Rows> {
    let rows = open(dataset, division, classifier.config.tokens_max, &arguments.running)?;
    if rows.vocabulary().words != classifier.vocabulary {
        return Err(Error::OtherVocabulary { path: dataset.to_owned(), of: arguments.model.clone() });
    }
    Ok(rows)
}

fn metrics_of(
    rows: &Rows,
    classifier: &Classifier,
    ranks: &Ranks,
    compute: &Compute,
    arguments: &Evaluate,
) -> Result<Metrics> {
    let evaluation = Evaluation {
        part: Part::Test,
        batch_rows: arguments.batch as usize,
        objective: classifier.objective,
        positive_from: classifier.config.preparation.positive_from,
        loaders: usize::from(arguments.running.loaders),
    };
    evaluate::evaluate(&classifier.lstm, rows, ranks, compute, &evaluation)
}

fn print(evaluated: &Evaluated<'_>) -> Result<()> {
    let json = serde_json::to_string(evaluated).map_err(|error| Error::internal(&error))?;
    writeln!(io::stdout(), "{json}").map_err(|source| Error::io("standard output".as_ref(), source))
}

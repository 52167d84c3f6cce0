//! `trainer evaluate`: metrics of a saved model on datasets.

use std::io::{self, Write};

use serde::Serialize;

use super::classes::{Class, classes};
use super::rows::{Reader, trained_on_warning};
use super::{device, model};
use crate::arguments::Evaluate;
use crate::compute::Compute;
use crate::error::{Error, Result, STANDARD_OUTPUT};
use crate::families::classifier::{self, Evaluation};
use crate::families::{SavedClassifier, read_classifier};
use crate::ranks::Ranks;
use crate::tell::tell;
use batches::{Division, Part, Rows};
use program::location::Location;
use scoring::Metrics;

/// The output for a dataset.
#[derive(Serialize)]
struct Evaluated {
    /// The dataset's name as passed.
    dataset: String,
    #[serde(flatten)]
    metrics: Metrics,
    /// Metrics of each class, if the classes have names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Class>,
    /// Number of rows that are known to be in the model's training split: the model folder contains their hashes.
    /// `null` if the model folder contains no hashes.
    trained_on: Option<u64>,
}

/// Prints one JSON object per dataset.
pub fn evaluate(arguments: &Evaluate) -> Result<()> {
    let compute = device::choose(&arguments.running.computing, arguments.backend.compute)?;
    let ranks = Ranks::join(compute.device())?;
    let classifier = read_classifier(
        &model::folder(&arguments.model, &arguments.storage.options(), "MODEL")?,
        compute.device(),
    )?;
    let division = match arguments.test_fraction {
        Some(fraction) => Division::by_fractions(fraction, 0.0)?,
        None => Division::all_test(),
    };
    for dataset in &arguments.datasets {
        let rows = opened(dataset, division, &classifier, arguments)?;
        let metrics = metrics_of(&rows, &classifier, &ranks, &compute, arguments)?;
        if ranks.is_first() {
            let trained_on = classifier.trained_on.as_ref().map(|_| rows.known(Part::Test));
            if let Some(warning) =
                trained_on.and_then(|known| trained_on_warning(dataset.to_string().as_ref(), known))
            {
                tell(&warning);
            }
            let names = classifier.config.preparation.labels.given_names();
            let classes = classes(&names, &metrics.confusion);
            print(&Evaluated { dataset: dataset.to_string(), metrics, classes, trained_on })?;
        }
    }
    Ok(())
}

/// Opens a dataset whose texts were prepared with the model's settings.
fn opened(
    dataset: &Location,
    division: Division,
    classifier: &SavedClassifier,
    arguments: &Evaluate,
) -> Result<Rows> {
    let SavedClassifier { vocabulary, config, trained_on, .. } = classifier;
    let known = trained_on.as_ref().map(|trained_on| trained_on.smallest_hashes.clone()).unwrap_or_default();
    let reader = Reader::of(config.tokens_max, &arguments.running, &arguments.storage);
    let rows = reader.open(dataset, division, &known)?;
    rows.check_fits(vocabulary, &config.preparation, arguments.model.to_string().as_ref())?;
    Ok(rows)
}

fn metrics_of(
    rows: &Rows,
    classifier: &SavedClassifier,
    ranks: &Ranks,
    compute: &Compute,
    arguments: &Evaluate,
) -> Result<Metrics> {
    let evaluation = Evaluation {
        part: Part::Test,
        batch_rows: arguments.batch as usize,
        scoring: classifier.scoring,
        loaders: usize::from(arguments.running.loaders),
    };
    classifier::evaluate(&classifier.model, rows, ranks, compute, &evaluation)
}

fn print(evaluated: &Evaluated) -> Result<()> {
    let json = serde_json::to_string(evaluated).map_err(|error| Error::internal(&error))?;
    writeln!(io::stdout(), "{json}").map_err(|source| Error::io(STANDARD_OUTPUT.as_ref(), source))
}

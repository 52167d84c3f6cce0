//! Soft labels of datasets: `trainer predict --soft` writes them, and `trainer fit --soft-labels` reads them.

use std::path::{Path, PathBuf};

use batches::{Part, Rows};
use program::location::Location;
use runs::soft_labels::{Labelled, SoftLabels};
use scoring::{Decision, Scoring};
use store::S3Options;
use training::places;
use training::soft_labels::{check, digests, each_batch, open, put};
use training::tell::tell;

use super::{device, model_at};
use crate::arguments::Predict;
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::{SavedClassifier, read_classifier};
use crate::inputs::token_rows;
use crate::soft_targets::SoftTargets;

/// Writes the probabilities of a dataset's rows to `out`, predicted by an LSTM.
pub(super) fn write(arguments: &Predict, dataset: &Location, out: &Path) -> Result<()> {
    check(out)?;
    let folder = model_at(&arguments.of_all.model, &arguments.storage.options(), "predict")?;
    let (rows, labels) = of_lstm(arguments, dataset, &folder)?;
    Ok(put(&labels, &rows, out)?)
}

fn of_lstm(arguments: &Predict, dataset: &Location, folder: &Path) -> Result<(Rows, SoftLabels)> {
    let compute = device::choose(&arguments.computing, arguments.backend.compute)?;
    let classifier = read_classifier(folder, compute.device())?;
    let SavedClassifier { model, vocabulary, config, scoring, trained_on } = &classifier;
    if matches!(scoring, Scoring::Rating { .. }) {
        let expected =
            "a model of --loss label or five-ratings; a model of --loss rating predicts no probability";
        return Err(setting("--soft", "for a model of --loss rating", expected));
    }
    let known = trained_on.as_ref().map(|known| known.smallest_hashes.clone()).unwrap_or_default();
    let rows = open(dataset, config.tokens_max, &known, &arguments.storage)?;
    rows.check_fits(vocabulary, &config.preparation, arguments.of_all.model.to_string().as_ref())?;
    let known = rows.known(Part::Test);
    if known > 0 {
        tell(&format!(
            "warning: {}: at least {known} of these rows are training rows of the model, so their probabilities are too \
             close to 0 and 1",
            rows.name().display()
        ));
    }
    let decision = config.decision(*scoring);
    let mut answers = Answers::of(model, &compute);
    let labels = each_batch(&rows, Part::Test, arguments.batch, |batch| {
        let outputs = answers.of_rows(token_rows(batch, &batch.tokens))?;
        Ok::<_, Error>(outputs.iter().map(|outputs| probabilities(decision, outputs)).collect())
    })?;
    Ok((rows, labels))
}

/// The probability of each class for these outputs; `None` if one is not finite.
fn probabilities(decision: Decision, outputs: &[f64]) -> Option<Vec<f32>> {
    let probabilities = match decision.scoring() {
        Scoring::Classes { .. } => decision.probabilities(outputs).all().to_vec(),
        _ => {
            let positive = decision.probability(decision.score(outputs))?;
            vec![(1.0 - positive) as f32, positive as f32]
        }
    };
    probabilities.iter().all(|probability| probability.is_finite()).then_some(probabilities)
}

/// Reads the soft labels of a training; `None` without any. Each file belongs to one of the two datasets. If the rows of
/// `unlabelled` have none, they get those of `teacher`.
pub(super) fn read(
    files: &[Location],
    rows: &Rows,
    unlabelled: Option<&Rows>,
    s3: &S3Options,
    teacher: impl FnOnce(&Rows) -> Result<SoftLabels>,
) -> Result<Option<SoftTargets>> {
    if files.is_empty() && unlabelled.is_none() {
        return Ok(None);
    }
    let n_classes = rows.settings().rows.labels.n_classes();
    let names: Vec<(PathBuf, &Rows)> =
        std::iter::once(rows).chain(unlabelled).map(|rows| (rows.name(), rows)).collect();
    let labelled = names.iter().map(|(name, rows)| Labelled {
        name,
        digests: digests(rows),
        n_rows: rows.n_rows_of_file(),
        n_classes,
    });
    let datasets: Vec<Labelled<'_>> = labelled.collect();
    let mut found = [None, None];
    for file in files {
        let (at, labels) = SoftLabels::read(&places::file(file, s3)?, &datasets)?;
        if found[at].replace(labels).is_some() {
            let of = format!("two files for {}", names[at].0.display());
            return Err(setting("--soft-labels", &of, "one file per dataset"));
        }
    }
    let [of_dataset, mut of_unlabelled] = found;
    if let (Some(unlabelled), None) = (unlabelled, &of_unlabelled) {
        of_unlabelled = Some(teacher(unlabelled)?);
    }
    let n_rows = rows.n_rows_of_file() as usize;
    Ok(Some(SoftTargets::new(n_classes, n_rows, of_dataset, of_unlabelled)))
}

fn setting(setting: &'static str, found: &str, expected: &str) -> Error {
    training::Error::setting(setting, found, expected).into()
}

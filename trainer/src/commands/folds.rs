//! `trainer fit --folds`: a cross-validation. Each fold is a training that holds out one range of split numbers. Its
//! result is the mean and the standard deviation of each metric, and no model of all rows.

mod folder;

use std::path::Path;

use batches::{Division, Fold, Part};
use runs::folds::{FOLDS, FoldsRecord};
use runs::recipe::Recipe;
use scoring::{Estimate, Metrics};
use serde::Serialize;
use training::print::print_json;
use training::tell::tell;

use self::folder::Folder;
use super::data::Data;
use super::recipe;
use super::training::{Job, Session, output};
use crate::arguments::Fit;
use crate::error::{Error, Result};

/// The result that `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    /// The folder of the cross-validation.
    training: &'a Path,
    #[serde(flatten)]
    record: &'a FoldsRecord,
}

/// Trains `n_folds` classifiers, one after the other. Every rank calls it with the same arguments; rank 0 writes.
pub(super) fn fit_folds(arguments: &Fit, n_folds: u16) -> Result<()> {
    let training = &arguments.training;
    let session = Session::join_for_several(training, arguments.backend.compute)?;
    let out = output(&arguments.out, &arguments.dataset, "folds")?;
    let folder = Folder::take(&out, arguments, &session)?;
    let mut metrics = Vec::new();
    for number in 1..=n_folds {
        let fold = Fold { number, of: n_folds };
        metrics.extend(fit_fold(arguments, fold, &folder, &session)?);
    }
    if !session.ranks().is_first() {
        return Ok(());
    }
    let record = FoldsRecord::of(&metrics);
    folder.put(&record)?;
    lines(&record).iter().for_each(|line| tell(line));
    tell(&format!("the metrics of the folds are in {}", folder.shown().join(FOLDS).display()));
    if training.json {
        print_json(&Printed { training: folder.shown(), record: &record })?;
    }
    Ok(())
}

/// Trains one fold, or finds it complete. Returns the metrics of the rows that it holds out on rank 0.
fn fit_fold(arguments: &Fit, fold: Fold, folder: &Folder, session: &Session) -> Result<Option<Metrics>> {
    let Fit { lstm, training, .. } = arguments;
    let data = Data::open(arguments, recipe::division_of(arguments, fold)?, session)?;
    let splits = data.splits();
    let recipe = Recipe { fold: Some(fold), ..recipe::of_fit(arguments, splits, session.device())? };
    if fold.number == 1 {
        check_folds(arguments, &data, &recipe, fold.of)?;
        folder.clear(session)?;
    }
    let [trained, tested] = [Part::Training, Part::Test].map(|part| splits.rows.n_rows(part));
    let Fold { number, of } = fold;
    session.tell(&format!("fold {number} of {of}: {trained} training rows, {tested} test rows"));
    let notes = data.notes(arguments, &recipe, session)?;
    let out = session.take(&folder.of_fold(number), training, lstm.init_from.as_ref())?;
    let test_every = arguments.test_every;
    let soft_labels = &arguments.soft_labels[..];
    let ngrams = data.ngrams.as_ref();
    let job =
        Job { session, out: &out, recipe: &recipe, splits, ngrams, soft_labels, test_every, lstm, training };
    let Some(summary) = job.run(notes.into_iter())? else { return Ok(None) };
    let evaluated = summary.evaluation.filter(|evaluation| evaluation.part == Part::Test);
    let missing = || Error::internal(&format!("fold {number} has no test metrics"));
    evaluated.ok_or_else(missing).and_then(|evaluation| as_read(&evaluation.metrics)).map(Some)
}

/// Metrics as they are read from the file of a complete fold: the last bit of a number can change when it is written
/// and read. A resumed cross-validation then has the same result as an uninterrupted one.
fn as_read(metrics: &Metrics) -> Result<Metrics> {
    let json = serde_json::to_vec(metrics);
    json.and_then(|json| serde_json::from_slice(&json)).map_err(|error| Error::internal(&error))
}

/// Refuses folds whose rows cannot train, choose or test, before the first of them is trained.
fn check_folds(arguments: &Fit, data: &Data, recipe: &Recipe, of: u16) -> Result<()> {
    let rows = data.splits().rows;
    for number in 1..=of {
        let division: Division = recipe::division_of(arguments, Fold { number, of })?;
        rows.check_classes_under(division, Part::Training)?;
        if recipe.fits_decision() && arguments.validation.is_none() {
            rows.check_classes_under(division, Part::Validation)?;
        }
        if rows.rows_under(division, Part::Test) == 0 {
            return Err(training::Error::setting(
                "--folds",
                of,
                format!("fewer folds, because fold {number} has no rows"),
            )
            .into());
        }
    }
    Ok(())
}

/// Accuracy, F1 and AUC, as far as all folds have them.
fn lines(record: &FoldsRecord) -> Vec<String> {
    let n_folds = record.folds.len();
    let line = |(label, name): (&str, &str)| {
        let Estimate { mean, deviation } = record.metrics.get(name)?;
        Some(format!("{label} {mean:.4} ± {deviation:.4} (mean and standard deviation of {n_folds} folds)"))
    };
    let has_classes = record.folds.iter().any(|fold| fold.metrics.confusion.n_classes() > 2);
    let f1 = if has_classes { "macro F1" } else { "F1      " };
    [("accuracy", "accuracy"), (f1, "f1"), ("AUC     ", "auc")].into_iter().filter_map(line).collect()
}

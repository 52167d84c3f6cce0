//! The result of a training as one JSON document, for `--json`.

use std::path::{Path, PathBuf};

use batches::Part;
use runs::recipe::Position;
use runs::training::{EVALUATION, EvaluationRecord, MODEL, best_epoch, read_json};
use scoring::{Calibrator, Intervals, Metrics, ProbabilityQuality, Threshold};
use serde::Serialize;

use training::classes::{Class, classes};

use super::ngrams::Parts;

/// The summary that `fit --json` and `pretrain --json` print.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// The training folder.
    training: PathBuf,
    /// The model folder.
    model: PathBuf,
    /// Whether `--resume` found the training complete, so that nothing was computed.
    was_complete: bool,
    /// Number of epochs.
    epochs: Option<u32>,
    /// Number of steps.
    steps: Option<u64>,
    /// The epoch whose weights were saved and its validation loss, if there is a validation split.
    kept: Option<Kept>,
    /// Metrics of the validation split with the saved weights, before a threshold and a calibration are fitted on it;
    /// `null` without a validation split.
    validation: Option<Metrics>,
    /// Metrics of the validation split by the LSTM and by the n-grams alone and by both; `null` without --with-ngrams.
    pub(super) parts: Option<Parts>,
    /// The final evaluation; `null` if no rows were held out.
    pub(super) evaluation: Option<SplitEvaluation>,
}

#[derive(Debug, Serialize)]
struct Kept {
    epoch: u32,
    validation_loss: f64,
}

/// Metrics of the split that was evaluated.
#[derive(Debug, Serialize)]
pub(super) struct SplitEvaluation {
    pub(super) part: Part,
    dataset: String,
    #[serde(flatten)]
    pub(super) metrics: Metrics,
    /// Metrics of each class, if the classes have names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Class>,
    intervals: Option<Intervals>,
    probabilities: Option<ProbabilityQuality>,
    /// The chosen threshold; `null` if it is the default.
    threshold: Option<Threshold>,
    /// The calibration; `null` if there is none.
    calibration: Option<Calibrator>,
}

impl From<&EvaluationRecord> for SplitEvaluation {
    fn from(record: &EvaluationRecord) -> Self {
        let EvaluationRecord { part, metrics, intervals, probabilities, threshold, calibration, .. } =
            *record;
        let classes = classes(&record.classes, &metrics.confusion);
        let dataset = record.dataset.clone();
        Self { part, dataset, metrics, classes, intervals, probabilities, threshold, calibration }
    }
}

impl Summary {
    /// The summary of a training that ended at this position. `shown` is the path or URL of its folder.
    pub(super) fn of(folder: &Path, shown: &Path, position: &Position) -> Self {
        let kept = position.best.map(|(validation_loss, epoch)| Kept { epoch, validation_loss });
        Self {
            training: shown.to_owned(),
            model: shown.join(MODEL),
            was_complete: false,
            epochs: Some(position.epoch),
            steps: Some(position.steps),
            kept,
            validation: best_epoch(folder).map(|(_, metrics)| metrics),
            parts: None,
            evaluation: None,
        }
    }

    /// The summary of a training that was already complete, from the files in its folder.
    pub(super) fn of_complete(folder: &Path, shown: &Path) -> Self {
        let record: Option<EvaluationRecord> = read_json(&folder.join(EVALUATION));
        Self {
            training: shown.to_owned(),
            model: shown.join(MODEL),
            was_complete: true,
            epochs: None,
            steps: record.as_ref().map(|record| record.step),
            kept: None,
            validation: best_epoch(folder).map(|(_, metrics)| metrics),
            parts: None,
            evaluation: record.as_ref().map(SplitEvaluation::from),
        }
    }
}

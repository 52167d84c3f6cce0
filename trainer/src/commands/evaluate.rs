//! `trainer evaluate`: metrics of a saved model on datasets.

use batches::{Division, Part, Rows};
use program::location::Location;
use scoring::{Calibrator, Intervals, Metrics, ProbabilityQuality, Threshold};
use serde::Serialize;
use training::classes::{Class, classes};
use training::datasets::{Reader, trained_on_warning};
use training::print::{MetricTable, names_of_means, print_json};
use training::tell::tell;

use super::{device, model_at};
use crate::arguments::Evaluate;
use crate::compute::Compute;
use crate::error::Result;
use crate::families::classifier::{self, EvaluatedRows, Evaluation};
use crate::families::{SavedClassifier, read_classifier};
use crate::ranks::Ranks;

/// The output for a dataset.
#[derive(Serialize)]
struct DatasetEvaluation {
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
    /// The 95 % confidence intervals of the metrics.
    intervals: Intervals,
    /// The quality of probabilities; `null` if the model predicts the rating.
    probabilities: Option<ProbabilityQuality>,
    /// The model's threshold; `null` if it is the default.
    threshold: Option<Threshold>,
    /// The model's calibration; `null` if it has none.
    calibration: Option<Calibrator>,
}

/// Prints one JSON object per dataset.
pub fn evaluate(arguments: &Evaluate) -> Result<()> {
    let folder = model_at(&arguments.model, &arguments.storage.options(), "evaluate")?;
    let compute = device::choose(&arguments.running.computing, arguments.backend.compute)?;
    let ranks = Ranks::join(compute.device())?;
    let classifier = read_classifier(&folder, compute.device())?;
    let division = match arguments.test_fraction {
        Some(fraction) => Division::by_fractions(fraction, 0.0)?,
        None => Division::all_test(),
    };
    for dataset in &arguments.datasets {
        let rows = opened(dataset, division, &classifier, arguments)?;
        let evaluated = evaluated(&rows, &classifier, &ranks, &compute, arguments)?;
        if ranks.is_first() {
            let trained_on = classifier.trained_on.as_ref().map(|_| rows.known(Part::Test));
            if let Some(warning) =
                trained_on.and_then(|known| trained_on_warning(dataset.to_string().as_ref(), known))
            {
                tell(&warning);
            }
            let SavedClassifier { config, scoring, .. } = &classifier;
            let decision = config.decision(*scoring);
            let names = config.preparation.labels.given_names();
            let evaluated = DatasetEvaluation {
                dataset: dataset.to_string(),
                metrics: evaluated.metrics,
                classes: classes(&names, &evaluated.metrics.confusion),
                trained_on,
                intervals: evaluated.intervals(decision),
                probabilities: evaluated.probabilities(decision),
                threshold: config.threshold,
                calibration: config.calibration,
            };
            match arguments.text {
                true => print_table(&evaluated)?,
                false => print_json(&evaluated)?,
            }
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
    let reader = Reader::new(config.tokens_max, arguments.running.memory as u64, &arguments.storage);
    let rows = reader.open(dataset, division, &known)?;
    rows.check_fits(vocabulary, &config.preparation, arguments.model.to_string().as_ref())?;
    Ok(rows)
}

fn evaluated(
    rows: &Rows,
    classifier: &SavedClassifier,
    ranks: &Ranks,
    compute: &Compute,
    arguments: &Evaluate,
) -> Result<EvaluatedRows> {
    let evaluation = Evaluation {
        part: Part::Test,
        batch_rows: arguments.batch as usize,
        decision: classifier.config.decision(classifier.scoring),
        loaders: usize::from(arguments.running.loaders),
    };
    classifier::evaluate_rows(&classifier.model, rows, ranks, compute, &evaluation)
}

/// Prints a table of metrics and their intervals.
fn print_table(evaluated: &DatasetEvaluation) -> Result<()> {
    let DatasetEvaluation { dataset, metrics, classes, trained_on, intervals, probabilities, .. } = evaluated;
    let mut table = MetricTable::of(dataset, metrics.rows);
    table.add("accuracy", Some(metrics.accuracy), Some(intervals.accuracy));
    let [f1, precision, recall] = names_of_means(metrics.confusion.n_classes());
    table.add(f1, Some(metrics.f1), Some(intervals.f1));
    table.add(precision, Some(metrics.precision), Some(intervals.precision));
    table.add(recall, Some(metrics.recall), Some(intervals.recall));
    table.add("AUC", metrics.auc, intervals.auc);
    table.add("loss", Some(metrics.loss), Some(intervals.loss));
    if let Some(ProbabilityQuality { quality, uncalibrated }) = probabilities {
        table.add("Brier score", Some(quality.brier), intervals.brier);
        if let Some(before) = uncalibrated {
            table.add("  uncalibrated", Some(before.brier), None);
        }
        table.add("calibration error", Some(quality.calibration_error), None);
        if let Some(before) = uncalibrated {
            table.add("  uncalibrated", Some(before.calibration_error), None);
        }
    }
    let name = |label: usize| classes.get(label).map_or_else(|| label.to_string(), |of| of.name().to_owned());
    let heads: Vec<String> =
        (0..metrics.confusion.n_classes()).map(|class| format!("predicted {}", name(class))).collect();
    table.add_line(format!("{:<18}  {}", "", heads.join("  ")));
    for (label, counts) in metrics.confusion.labels().enumerate() {
        let counts = counts.iter().zip(&heads);
        let counts: Vec<String> =
            counts.map(|(count, head)| format!("{count:>width$}", width = head.chars().count())).collect();
        table.add_line(format!("{:<18}  {}", format!("label {}", name(label)), counts.join("  ")));
    }
    if let Some(known) = trained_on {
        table.add_line(format!("{:<18}  {known:>8}", "known to the model"));
    }
    Ok(table.print()?)
}

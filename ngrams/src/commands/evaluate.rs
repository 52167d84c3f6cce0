//! `ngrams evaluate`.

use classifiers::Classifier;
use corpus::ledger::Limits;
use runs::training::{RunSettings, SETTINGS, read_json};
use scoring::Measured;
use serde::Serialize;
use training::answers::wrong::{OtherLabels, Wrong};
use training::arguments::threads;
use training::formats::Trained;
use training::inputs::{Counters, Input, division};
use training::lines::{FastTextLine, check_no_model};
use training::print::{MetricTable, names_of_means, print_json};
use training::tell::tell;
use training::{Error, Result};

use super::model_at;
use super::out::absolute;
use crate::arguments::Evaluate;
use crate::classifier::evaluate::{Evaluation, evaluate as evaluate_texts};
use crate::classifier::predict::{Options, Shown, run};
use crate::classifier::quality::Evaluated;

/// The output for a file.
#[derive(Serialize)]
struct Printed<'a> {
    /// The file or dataset as passed.
    dataset: String,
    #[serde(flatten)]
    evaluated: &'a Evaluated,
    /// Lines without a label, which are not evaluated.
    without_label: u64,
    /// The counts of lines; `null` for a dataset.
    ledger: Option<Counters>,
    /// Texts without a known word or n-gram, for a file of the fastText program; they are not evaluated.
    only_unknown: u64,
    /// Texts with a label that the model does not have.
    unknown_label: u64,
}

/// Prints one JSON object per file.
pub(super) fn evaluate(arguments: &Evaluate) -> Result<()> {
    let model = model_at(&arguments.model, &arguments.storage.options(), "evaluate")?;
    check_no_model(&arguments.files, &arguments.model)?;
    let wrong = arguments.texts.wrong_file(&arguments.files, &arguments.storage.options())?;
    let classifier = Classifier::read(&model)?;
    // The model may not be in its training folder.
    let training: Option<RunSettings> = model.parent().and_then(|folder| read_json(&folder.join(SETTINGS)));
    let trained = training.as_ref().map(Trained::from).unwrap_or_default();
    let of_file = |place: &str| trained.of_labelled(place, &arguments.texts);
    let mut n_wrong = 0;
    for file in &arguments.files {
        let place = file.to_string();
        let (format, rated) = of_file(&place);
        let input = Input {
            rated: &rated,
            format: &format,
            fasttext: FastTextLine::Words,
            limits: Limits::default(),
            threads: threads(),
            rows: None,
            s3: arguments.storage.options(),
            tell,
        };
        let (texts, ledger) =
            input.read_evaluated(&place, arguments.test_fraction, classifier.words(), arguments.memory)?;
        if let Some(held_out) = training.as_ref().and_then(|training| trained_share(training, &place))
            && arguments.test_fraction.is_none_or(|fraction| fraction > held_out)
        {
            tell(&trained_on_warning(&place, held_out));
        }
        let evaluation = evaluate_texts(&classifier, &texts, input.threads)?;
        let Evaluation { evaluated, only_unknown, unknown_label, .. } = &evaluation;
        if *unknown_label == texts.n_texts() {
            return Err(Error::useless_texts(
                place,
                "no text has a label of the model",
                "pass the --format, --labels, --label-field or --positive-from of its training",
            ));
        }
        let (rows, accuracy) = (evaluated.metrics.rows(), evaluated.metrics.accuracy());
        n_wrong += rows - (rows as f64 * accuracy).round() as u64;
        evaluation.warnings(&place, texts.n_texts()).iter().for_each(|warning| tell(warning));
        let without_label = texts.counts().n_unlabelled;
        let printed = Printed {
            dataset: place,
            evaluated,
            without_label,
            ledger: ledger.map(Counters),
            only_unknown: *only_unknown,
            unknown_label: *unknown_label,
        };
        match arguments.text {
            true => print_table(&printed)?,
            false => print_json(&printed)?,
        }
    }
    let Some(wrong) = wrong else { return Ok(()) };
    let division = division(arguments.test_fraction)?;
    let of_wrong = Wrong::new((classifier.words(), None), division, OtherLabels::Wrong)?;
    let options = Options { shown: Shown::default(), threads: threads(), answers_unknown: true };
    let of_model = (classifier.labels().names(), of_wrong, n_wrong);
    wrong.write((FastTextLine::Words, of_file), of_model, |input, output, lines| {
        Ok(run(input, output, lines, &classifier, &options)?)
    })
}

/// The `--test-fraction` of the training, if `place` is its input.
fn trained_share(training: &RunSettings, place: &str) -> Option<f64> {
    let share = training.recipe.get("test_fraction")?.as_f64()?;
    (training.dataset.path == absolute(place)).then_some(share)
}

fn trained_on_warning(place: &str, held_out: f64) -> String {
    let remedy = match held_out > 0.0 {
        true => format!("pass its --test-fraction {held_out}"),
        false => "evaluate other texts".to_owned(),
    };
    format!(
        "warning: {place}: the model was trained on texts of this file, so its metrics are too high; {remedy}"
    )
}

/// Prints a table of metrics and their intervals.
fn print_table(printed: &Printed<'_>) -> Result<()> {
    let Evaluated { metrics, precision_at_1, recall_at_1, classes, intervals, probabilities, .. } =
        printed.evaluated;
    let mut table = MetricTable::of(&printed.dataset, metrics.rows());
    let of = intervals.as_ref();
    table.add_line(format!("{:<18}  {:>8}", "distinct texts", printed.evaluated.distinct_texts));
    table.add("accuracy", Some(metrics.accuracy()), of.map(|of| of.accuracy));
    table.add("distinct accuracy", Some(printed.evaluated.distinct_accuracy), None);
    let [f1, precision, recall] = names_of_means(classes.len());
    let (values, auc, loss) = match *metrics {
        Measured::Few(metrics) => {
            ([metrics.f1, metrics.precision, metrics.recall], metrics.auc, metrics.loss)
        }
        Measured::Many { loss, f1, precision, recall, .. } => ([f1, precision, recall], None, loss),
    };
    table.add(f1, Some(values[0]), of.map(|of| of.f1));
    table.add(precision, Some(values[1]), of.map(|of| of.precision));
    table.add(recall, Some(values[2]), of.map(|of| of.recall));
    table.add("precision at 1", Some(*precision_at_1), None);
    table.add("recall at 1", Some(*recall_at_1), None);
    if of.is_some() {
        table.add("AUC", auc, of.and_then(|of| of.auc));
    }
    table.add("loss", Some(loss), of.map(|of| of.loss));
    if let Some(probabilities) = probabilities {
        table.add_quality(probabilities, of.and_then(|of| of.brier));
    }
    table.print()
}

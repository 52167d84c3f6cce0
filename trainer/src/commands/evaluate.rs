//! `trainer evaluate`: metrics of a saved model on datasets and on files of texts with labels.

use batches::{Part, Rows};
use classifiers::Words;
use corpus::arguments::FormatArguments;
use corpus::labels::Labels;
use corpus::ledger::Limits;
use kernels::TokenRows;
use program::location::Location;
use runs::recipe::Objective;
use scoring::{Calibrator, Decision, Intervals, Metrics, ProbabilityQuality, Threshold};
use serde::Serialize;
use training::answers::wrong::{OtherLabels, Wrong};
use training::arguments::{Rated, threads};
use training::classes::{Class, classes};
use training::datasets::{Reader, trained_on_warning};
use training::formats::Trained;
use training::inputs::{Counters, Input, division, repeatable};
use training::lines::{FastTextLine, check_no_model};
use training::places::is_dataset;
use training::print::{MetricTable, names_of_means, print_json};
use training::tell::tell;
use training::wrong::WrongFile;

use super::{device, model_at};
use crate::arguments::Evaluate;
use crate::compute::Compute;
use crate::error::{Error, Result};
use crate::families::classifier::predict::{PredictOptions, Tokenizer, run};
use crate::families::classifier::{self, Answers, EvaluatedRows, EvaluatedTexts, Evaluation, Truth};
use crate::families::{SavedClassifier, read_classifier};
use crate::ranks::{Ranks, local_world_size};

/// The output for a file.
#[derive(Serialize)]
struct Printed {
    /// The file or dataset as passed.
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
    /// What was found in a file of texts.
    #[serde(flatten)]
    texts: Option<Found>,
}

/// What was found in a file of texts.
#[derive(Serialize)]
struct Found {
    /// The counts of lines.
    ledger: Option<Counters>,
    /// Texts of stop words only, which are not evaluated.
    only_stopwords: u64,
    /// Texts with a label that the model does not have, which are not evaluated.
    unknown_label: u64,
}

/// What all files are evaluated with.
struct Evaluator<'a> {
    arguments: &'a Evaluate,
    classifier: &'a SavedClassifier,
    /// How the input of its dataset was read, and its labels.
    trained: &'a Trained,
    decision: Decision,
    ranks: &'a Ranks,
    compute: &'a Compute,
}

/// Prints one JSON object per file.
pub fn evaluate(arguments: &Evaluate) -> Result<()> {
    let folder = model_at(&arguments.model, &arguments.storage.options(), "evaluate")?;
    check_no_model(&arguments.files, &arguments.model)?;
    let wrong = arguments.texts.wrong_file(&arguments.files, &arguments.storage.options())?;
    let compute = device::choose(&arguments.running.computing, arguments.backend.compute)?;
    let ranks = Ranks::join(compute.device())?;
    check_repeatable(arguments, &ranks)?;
    let classifier = &read_classifier(&folder, compute.device())?;
    let SavedClassifier { config, scoring, trained_on, .. } = classifier;
    let decision = config.decision(*scoring);
    let trained = &Trained::of(&folder).with_labels(&config.preparation.labels);
    let evaluator = Evaluator { arguments, classifier, trained, decision, ranks: &ranks, compute: &compute };
    let mut n_wrong = 0;
    for file in &arguments.files {
        let place = file.to_string();
        let (evaluated, n_known, texts) = match is_dataset(&place) {
            true => evaluator.of_dataset(file)?,
            false => evaluator.of_texts(&place)?,
        };
        let n_right: u64 = (0..).zip(evaluated.metrics.confusion.labels()).map(|(at, of)| of[at]).sum();
        n_wrong += evaluated.metrics.rows - n_right;
        if !ranks.is_first() {
            continue;
        }
        let trained_on = trained_on.as_ref().map(|_| n_known);
        let warning = trained_on.and_then(|known| trained_on_warning(place.as_ref(), known));
        warning.iter().for_each(|warning| tell(warning));
        let names = config.preparation.labels.given_names();
        let printed = Printed {
            dataset: place,
            metrics: evaluated.metrics,
            classes: classes(&names, &evaluated.metrics.confusion),
            trained_on,
            intervals: evaluated.intervals(decision),
            probabilities: evaluated.probabilities(decision),
            threshold: config.threshold,
            calibration: config.calibration,
            texts,
        };
        match arguments.text {
            true => print_table(&printed)?,
            false => print_json(&printed)?,
        }
    }
    match wrong {
        Some(wrong) if ranks.is_first() => evaluator.write_wrong(&wrong, n_wrong),
        _ => Ok(()),
    }
}

/// Refuses a pipe as the input of several ranks, each of which would get other texts.
fn check_repeatable(arguments: &Evaluate, ranks: &Ranks) -> Result<()> {
    if ranks.world_size() == 1 {
        return Ok(());
    }
    let reader = format!("{} ranks", ranks.world_size());
    for place in arguments.files.iter().map(ToString::to_string).filter(|place| !is_dataset(place)) {
        repeatable(&place, &arguments.storage.options(), &reader, "evaluate with one rank")?;
    }
    Ok(())
}

/// Results of rows or texts, the number of those that are known to the model, and what was found in a file of texts.
type Evaluated = (EvaluatedRows, u64, Option<Found>);

impl Evaluator<'_> {
    fn of_dataset(&self, dataset: &Location) -> Result<Evaluated> {
        let rows = opened(dataset, self.classifier, self.arguments)?;
        let evaluation = Evaluation {
            part: Part::Test,
            batch_rows: self.arguments.batch as usize,
            decision: self.decision,
            loaders: usize::from(self.arguments.running.loaders),
        };
        let model = &self.classifier.model;
        let evaluated = classifier::evaluate_rows(model, &rows, self.ranks, self.compute, &evaluation)?;
        Ok((evaluated, rows.known(Part::Test), None))
    }

    fn of_texts(&self, place: &str) -> Result<Evaluated> {
        let Self { arguments, classifier, ranks, .. } = *self;
        let SavedClassifier { model, vocabulary, config, trained_on, .. } = classifier;
        let preparation = &config.preparation;
        let mut tokenizer = Tokenizer::new(preparation, vocabulary, config.tokens_max)?;
        let (format, rated) = self.format(place);
        let labelling = Labelling::of(rated, &preparation.labels, model.settings().objective)?;
        let input = Input {
            format: &format,
            rated: &labelling.read,
            fasttext: FastTextLine::Review,
            limits: Limits::default(),
            threads: threads(),
            rows: Some(preparation),
            s3: arguments.storage.options(),
            tell: if ranks.is_first() { tell } else { |_| () },
        };
        let words = Words::of_rows(preparation);
        // Each rank of this machine has all texts.
        let memory = arguments.running.memory / local_world_size();
        let (texts, ledger) = input.read_evaluated(place, arguments.test_fraction, words, memory)?;
        let truths: Vec<_> = texts.dictionary.labels().iter().map(|name| labelling.truth(name)).collect();
        let EvaluatedTexts { rows, unknown_label, only_stopwords } = classifier::evaluate_texts(
            (model, &mut tokenizer),
            (&texts, &truths),
            ranks,
            self.compute,
            (self.decision, arguments.batch as usize),
        )?;
        let Some(rows) = rows else {
            if only_stopwords > 0 {
                let found = "the texts with a label of the model have stop words only";
                return Err(training::Error::useless_texts(place, found, "pass other texts").into());
            }
            let found =
                format!("no text has a label of the model, {}", preparation.labels.names().join(" or "));
            let remedy = "pass the flags with which sentimill read the reviews of its dataset, such as --class-ratings, or \
                          --label-field with these labels";
            return Err(training::Error::useless_texts(place, found, remedy).into());
        };
        if unknown_label > 0 {
            let n_texts = texts.n_texts();
            (input.tell)(&format!(
                "warning: {place}: {unknown_label} of {n_texts} texts have a label that the model does not have; they are not \
                 evaluated"
            ));
        }
        let keys = rows.keys.iter().flatten();
        let is_known =
            |key: &&u64| trained_on.as_ref().is_some_and(|known| known.smallest_hashes.contains(**key));
        let n_known = keys.filter(is_known).count() as u64;
        let ledger = ledger.map(Counters);
        Ok((rows, n_known, Some(Found { ledger, only_stopwords, unknown_label })))
    }

    /// The format and the labels of a file.
    fn format(&self, place: &str) -> (FormatArguments, Rated) {
        self.trained.of_labelled(place, &self.arguments.texts)
    }

    /// Writes the wrong predictions. One rank does it, without the others.
    fn write_wrong(&self, wrong: &WrongFile, n_wrong: u64) -> Result<()> {
        let Self { arguments, classifier, decision, compute, .. } = *self;
        let SavedClassifier { model, vocabulary, config, .. } = classifier;
        let preparation = &config.preparation;
        let mut tokenizer = Tokenizer::new(preparation, vocabulary, config.tokens_max)?;
        let classes: Vec<String> = preparation.labels.names().into_iter().map(str::to_owned).collect();
        let batch_rows = arguments.batch as usize;
        let options =
            PredictOptions { batch_rows, decision, classes: classes.clone(), answers_unknown: true };
        let division = division(arguments.test_fraction)?;
        let of_rows = (Words::of_rows(preparation), Some(preparation));
        let of_wrong = Wrong::new(of_rows, division, OtherLabels::Omitted)?;
        let mut answers = Answers::of(model, compute);
        let format = |place: &str| self.format(place);
        let of_model = (classes, of_wrong, n_wrong);
        wrong.write((FastTextLine::Review, format), of_model, |input, output, lines| {
            run(input, output, lines, &mut tokenizer, &options, |texts: TokenRows<'_>| answers.of_rows(texts))
        })
    }
}

/// How labels of texts are read, and which labels of the model they are.
struct Labelling {
    /// How they are read.
    read: Rated,
    /// The label of each rating, if the model predicts ratings, which are then read as labels.
    of_ratings: Option<Labels>,
    /// The labels of the model.
    names: Vec<String>,
}

impl Labelling {
    fn of(rated: Rated, of_model: &Labels, objective: Objective) -> Result<Self> {
        let names = of_model.names().into_iter().map(str::to_owned).collect();
        if !matches!(objective, Objective::Rating | Objective::FiveRatings) {
            return Ok(Self { read: rated, of_ratings: None, names });
        }
        if let Some(field) = &rated.label_field {
            let expected = "--rating-field, because the model predicts ratings";
            return Err(training::Error::setting("--label-field", field, expected).into());
        }
        // A rating without a class is no label.
        let rated_labels = rated.all();
        let each = (1..=5).filter(|&rating| rated_labels.label(rating).is_some());
        let each = each.map(|rating: u8| format!("{rating}={rating}")).collect::<Vec<_>>().join(",");
        let each = each.parse().map_err(|error| Error::internal(&error))?;
        Ok(Self { read: Rated { labels: Some(each), ..rated }, of_ratings: Some(rated_labels), names })
    }

    /// The label of the model for one of the texts.
    fn truth(&self, name: &[u8]) -> Option<Truth> {
        let number = |name: &[u8]| self.names.iter().position(|of| of.as_bytes() == name);
        let (label, rating) = match &self.of_ratings {
            None => (number(name)?, 1),
            Some(labels) => {
                let rating = str::from_utf8(name).ok()?.parse().ok()?;
                let label = usize::from(labels.label(rating)?);
                (number(labels.names().get(label)?.as_bytes())?, rating)
            }
        };
        Some(Truth { label: label as u8, rating })
    }
}

/// Opens a dataset whose texts were prepared with the model's settings.
fn opened(dataset: &Location, classifier: &SavedClassifier, arguments: &Evaluate) -> Result<Rows> {
    let SavedClassifier { vocabulary, config, trained_on, .. } = classifier;
    let known = trained_on.as_ref().map(|trained_on| trained_on.smallest_hashes.clone()).unwrap_or_default();
    let division = division(arguments.test_fraction)?;
    let reader = Reader::new(config.tokens_max, arguments.running.memory as u64, &arguments.storage);
    let rows = reader.open(dataset, division, &known)?;
    rows.check_fits(vocabulary, &config.preparation, arguments.model.to_string().as_ref())?;
    Ok(rows)
}

/// Prints a table of metrics and their intervals.
fn print_table(evaluated: &Printed) -> Result<()> {
    let Printed { dataset, metrics, classes, trained_on, intervals, probabilities, .. } = evaluated;
    let mut table = MetricTable::of(dataset, metrics.rows);
    table.add("accuracy", Some(metrics.accuracy), Some(intervals.accuracy));
    let [f1, precision, recall] = names_of_means(metrics.confusion.n_classes());
    table.add(f1, Some(metrics.f1), Some(intervals.f1));
    table.add(precision, Some(metrics.precision), Some(intervals.precision));
    table.add(recall, Some(metrics.recall), Some(intervals.recall));
    table.add("AUC", metrics.auc, intervals.auc);
    table.add("loss", Some(metrics.loss), Some(intervals.loss));
    if let Some(probabilities) = probabilities {
        table.add_quality(probabilities, intervals.brier);
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

//! `trainer ngrams`: trains an n-gram model on the texts of an input.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::ngrams::{Texts, fasttext, linear};
use launch::interrupt::{Asked, Interrupts};
use report::whole;
use runs::training::{Line, NGRAMS, put_json};
use scoring::Interval;
use serde::Serialize;

use super::input::{Input, is_dataset};
use super::out::Out;
use super::progress::Progress;
use super::settings::{Settings, reading, words};
use super::top::top;
use crate::arguments::{ModelName, Ngrams};
use crate::commands::progress::Log;
use crate::commands::summary::print;
use crate::error::{Error, Result};
use crate::families::ngrams::evaluate::{Evaluation, evaluate};
use crate::families::ngrams::quality::{Evaluated, Measured};
use crate::families::ngrams::{Classifier, Model};
use crate::tell::tell;

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    /// The training folder.
    training: PathBuf,
    /// The model folder.
    model: PathBuf,
    /// Whether `--resume` found the training complete, so that nothing was computed.
    was_complete: bool,
    /// `linear` or `fasttext`.
    kind: &'static str,
    /// Number of epochs.
    epochs: u32,
    /// Number of texts.
    texts: Option<u64>,
    /// Number of words in the vocabulary.
    words: Option<u64>,
    /// Number of tokens of all texts.
    tokens: Option<u64>,
    /// Number of labels.
    labels: Option<u64>,
    /// Lines without a label, which are skipped.
    without_label: Option<u64>,
    /// Mean loss of the last epoch; `null` for a linear model.
    loss: Option<f64>,
    /// Seconds of reading, of training, and of the whole command up to the summary.
    seconds: Option<Seconds>,
    /// Metrics of `--test`; `null` without it.
    evaluation: Option<Evaluated>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Seconds {
    reading: f64,
    training: f64,
    whole: f64,
}

/// Trains a model.
pub(in crate::commands) fn ngrams(arguments: &Ngrams) -> Result<()> {
    let began = Instant::now();
    let Ok(kind) = arguments.model() else {
        return Err(Error::internal(&"flags of both models were accepted"));
    };
    let out = Out::take(arguments)?;
    let is_dataset = matches!(&arguments.input[..], [place] if is_dataset(place));
    let reading = reading(arguments, kind, words(arguments, kind, is_dataset));
    let settings = Settings::of(arguments, kind, reading.words);
    let recipe = settings.recipe(&reading);
    if out.is_complete(&recipe)? {
        tell(&format!("already complete: the model is in {}", out.model().display()));
        return if arguments.json {
            print(&Summary::of_complete(&out, kind, settings.epochs()))
        } else {
            Ok(())
        };
    }
    let input = Input {
        format: &arguments.format,
        rated: &arguments.rated,
        threads: arguments.n_threads(),
        s3: arguments.storage.options(),
    };
    let texts = input.read(&arguments.input, reading.clone())?;
    check(&texts, arguments)?;
    let read_s = began.elapsed().as_secs_f64();
    out.clear()?;
    out.describe(arguments, &texts, recipe, &settings)?;
    let began_training = Instant::now();
    let mut progress = out.progress(&texts, &settings)?;
    let model = match &settings {
        Settings::Linear(settings) => train_linear(&texts, reading.words, settings, &mut progress)?,
        Settings::FastText(settings) => train_fasttext(&texts, settings, &out, arguments, &mut progress)?,
    };
    let (loss, log) = progress.finish();
    let training_s = began_training.elapsed().as_secs_f64();
    let classifier = Classifier::new(model);
    put_json(&out.folder().join(NGRAMS), &top(&classifier, &texts)?)?;
    let (counts, n_words, n_labels) =
        (texts.counts(), texts.dictionary.n_words() as u64, texts.dictionary.labels().len() as u64);
    drop(texts);
    let evaluation = match arguments.test.is_empty() {
        true => None,
        false => {
            let reading = ::ngrams::Reading { words_max: usize::MAX >> 1, count_min: 1, ..reading };
            let test = input.read(&arguments.test, reading)?;
            Some(evaluate(&classifier, &test, input.threads)?)
        }
    };
    finish_log(log, &settings, evaluation.as_ref())?;
    classifier.write(&out.model())?;
    out.finish()?;
    evaluation.iter().flat_map(|evaluation| lines(&evaluation.evaluated)).for_each(|line| tell(&line));
    tell(&format!("the model is in {}", out.model().display()));
    if arguments.json {
        print(&Summary {
            texts: Some(counts.n_texts),
            words: Some(n_words),
            tokens: Some(counts.n_tokens),
            labels: Some(n_labels),
            without_label: Some(counts.n_unlabelled),
            loss,
            seconds: Some(Seconds {
                reading: read_s,
                training: training_s,
                whole: began.elapsed().as_secs_f64(),
            }),
            evaluation: evaluation.map(|evaluation| evaluation.evaluated),
            was_complete: false,
            ..Summary::of_complete(&out, kind, settings.epochs())
        })?;
    }
    Ok(())
}

impl Summary {
    fn of_complete(out: &Out, kind: ModelName, epochs: u32) -> Self {
        Self {
            training: out.folder().to_owned(),
            model: out.model(),
            was_complete: true,
            kind: kind.name(),
            epochs,
            texts: None,
            words: None,
            tokens: None,
            labels: None,
            without_label: None,
            loss: None,
            seconds: None,
            evaluation: None,
        }
    }
}

fn train_linear(
    texts: &Texts,
    words: ::ngrams::Words,
    settings: &linear::Settings,
    progress: &mut Progress,
) -> Result<Model> {
    let model = linear::train(texts, words, settings, |done| progress.note_linear(done))?;
    progress.end_epoch(settings.epochs, None);
    Ok(Model::Linear(Box::new(model)))
}

fn train_fasttext(
    texts: &Texts,
    settings: &fasttext::Settings,
    out: &Out,
    arguments: &Ngrams,
    progress: &mut Progress,
) -> Result<Model> {
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let mut training = out.begin(texts, settings, progress)?;
    let interval = Duration::from_secs_f64(arguments.checkpoint_every.min(1e9));
    let mut saved_at = Instant::now();
    while let Some(done) = training.step()? {
        progress.note(&done);
        let asked = interrupts.asked();
        let is_due = !interval.is_zero() && saved_at.elapsed() >= interval;
        if (asked.is_some() || is_due) && done.n_done < done.n_total {
            out.save(&training)?;
            saved_at = Instant::now();
        }
        if asked == Some(Asked::Stop) && done.n_done < done.n_total {
            return Err(Error::Interrupted { resume: out.checkpoints() });
        }
    }
    Ok(Model::FastText(Box::new(training.finish())))
}

/// Refuses texts from which nothing can be learned, and warns of labels that occur once.
pub fn check(texts: &Texts, arguments: &Ngrams) -> Result<()> {
    let (counts, labels) = (texts.counts(), texts.dictionary.labels());
    let input = arguments.input.join(" ");
    let refused = |found: String, remedy| Err(Error::UselessTexts { input: input.clone(), found, remedy });
    if counts.n_texts == 0 {
        return refused("no text with a label".to_owned(), "check --format");
    }
    if let 1 = labels.len() {
        let found = format!("every text has the label {}", String::from_utf8_lossy(labels.get(0)));
        return refused(found, "a classifier needs texts of at least two labels");
    }
    if counts.n_empty == counts.n_texts {
        return refused("no text has a word".to_owned(), "check --format and --words");
    }
    tell(&format!(
        "{} texts with {} tokens, {} words and {} labels",
        whole(counts.n_texts),
        whole(counts.n_tokens),
        whole(texts.dictionary.n_words() as u64),
        whole(labels.len() as u64)
    ));
    if counts.n_empty > 0 {
        let texts = if counts.n_empty == 1 {
            "1 text has".to_owned()
        } else {
            format!("{} texts have", whole(counts.n_empty))
        };
        tell(&format!("{texts} no word and no effect on the model"));
    }
    let once = (0..labels.len() as u32).filter(|&label| texts.dictionary.label_count(label) == 1).count();
    if once > 0 {
        let occur = if once == 1 { "occurs" } else { "occur" };
        tell(&format!("warning: {once} of {} labels {occur} in one text only", labels.len()));
    }
    Ok(())
}

/// The metrics of the test texts in some lines.
fn lines(evaluated: &Evaluated) -> Vec<String> {
    let Evaluated { metrics, intervals, precision_at_1, recall_at_1, .. } = evaluated;
    let interval = intervals.map_or_else(String::new, |of| {
        let Interval(low, high) = of.accuracy;
        format!(" [95 %: {low:.4} to {high:.4}]")
    });
    let rows = whole(metrics.rows());
    match metrics {
        Measured::Few(metrics) => {
            let larger = metrics.larger_class();
            let baseline = larger.accuracy;
            let f1 = if metrics.confusion.n_classes() == 2 { "F1      " } else { "macro F1" };
            vec![
                format!(
                    "accuracy {:.4}{interval} on {rows} test texts (majority-class baseline: {baseline:.4})",
                    metrics.accuracy
                ),
                format!("{f1} {:.4}", metrics.f1),
            ]
        }
        Measured::Many { f1, .. } => vec![
            format!("precision at 1 {precision_at_1:.4}, recall at 1 {recall_at_1:.4} on {rows} test texts"),
            format!("macro F1 {f1:.4}"),
        ],
    }
}

fn finish_log(mut log: Log, settings: &Settings, evaluation: Option<&Evaluation>) -> Result<()> {
    if let Some(Evaluation { evaluated: Evaluated { metrics: Measured::Few(metrics), .. }, .. }) = evaluation
    {
        log.write(&Line::Test { step: u64::from(settings.epochs()), metrics: *metrics });
    }
    log.finish()
}

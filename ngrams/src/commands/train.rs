//! `ngrams train`: trains an n-gram model on the texts of an input.

use std::io::BufReader;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use batches::Part;
use classifiers::fasttext::FastTextSettings;
use classifiers::linear::LinearSettings;
use classifiers::{Classifier, Model, Reading, Texts, fasttext, linear};
use launch::interrupt::{Interrupts, Requested};
use program::exit::{Exit, Failed};
use report::whole;
use runs::training::{NGRAMS, put_json};
use scoring::Scoring;
use serde::Serialize;
use training::inputs::{Counters, ReadInput};
use training::outcome::{FITTED, chosen};
use training::places::is_dataset;
use training::print::print_json;
use training::tell::tell;
use training::texts::Wanted;
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::initial::Initial;
use super::out;
use super::progress::{Progress, name_of};
use super::record::Record;
use super::settings::{
    ModelSettings, add_input, check_choice, check_min_count, label_weights, reading, words,
};
use super::top::top;
use crate::arguments::{ModelName, Train};
use crate::classifier::choice::{self, choose};
use crate::classifier::evaluate::measure;
use crate::classifier::quality::Evaluated;
use crate::input::{division, input, with_format};

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    /// The path or URL of the training folder.
    training: PathBuf,
    /// The path or URL of the model folder.
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
    /// The counts of lines; `null` for a dataset.
    ledger: Option<Counters>,
    /// Mean loss of the last epoch; `null` for a linear model.
    loss: Option<f64>,
    /// Seconds of reading, of training, and of the whole command up to the summary.
    seconds: Option<Seconds>,
    /// The split that was evaluated; `null` for none.
    evaluated: Option<Part>,
    /// Its metrics.
    evaluation: Option<&'a Evaluated>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Seconds {
    reading: f64,
    training: f64,
    whole: f64,
}

/// Of more labels that occur once each, nothing can be learned, in much time and memory.
const LABELS_OF_ONE_TEXT_MAX: usize = 100;

/// Default of `--checkpoint-every`.
const CHECKPOINT_EVERY_S: f64 = 600.0;

/// Trains a model.
pub(super) fn train(arguments: &Train) -> Result<()> {
    let began = Instant::now();
    let Ok(kind) = arguments.model() else {
        return Err(Error::internal(&"flags of both models were accepted"));
    };
    check_min_count(arguments, kind)?;
    check_choice(arguments)?;
    let arguments = &with_format(arguments, &[])?;
    let mut out = out::take(arguments)?;
    let is_dataset = matches!(&arguments.input[..], [place] if is_dataset(place));
    let reading = reading(arguments, kind, words(arguments, kind, is_dataset));
    let settings = ModelSettings::of(arguments, kind, reading.words);
    let mut recipe = settings.recipe(arguments, &reading);
    add_input(&mut recipe, arguments, is_dataset)?;
    let mut initial = Initial::of(arguments, &mut recipe)?;
    initial.check_settings(arguments, &settings, reading.words)?;
    if out.has_model(&recipe)? {
        out.finish_again()?;
        let summary = Summary::of_complete(&out, kind, settings.epochs());
        return if arguments.json { print_json(&summary) } else { Ok(()) };
    }
    let input = input(arguments, tell);
    let held_out = held_out(arguments);
    let of_evaluated =
        Reading { words_max: usize::MAX >> 1, count_min: 1, has_keys: true, ..reading.clone() };
    // Before the input, which takes longer, so that a missing file is found at once.
    let test = match arguments.test.is_empty() {
        true => None,
        false => Some((Part::Test, input.read(&arguments.test, of_evaluated.clone())?.0)),
    };
    let held_out = held_out.iter().map(|&part| (part, &of_evaluated));
    let wanted = [(Part::Training, &reading)].into_iter().chain(held_out.clone());
    let wanted = wanted.map(|(part, reading)| Wanted { part, reading: reading.clone() }).collect();
    let ReadInput { mut splits, ledger } =
        input.read_splits(&arguments.input, division(arguments)?, wanted)?;
    let mut texts = splits.remove(0);
    let held_out: Vec<(Part, Texts)> = held_out.map(|(part, _)| part).zip(splits).collect();
    check(&texts, arguments)?;
    check_labels(&texts, &held_out, arguments)?;
    initial.meet(&mut texts, settings.dim())?;
    let settings = settings.with_label_weights(label_weights(arguments, &texts.dictionary)?);
    let read_s = began.elapsed().as_secs_f64();
    out.clear()?;
    // The settings of a checkpoint are there. Its training may yet be refused.
    if !out.has_checkpoint()? {
        out::describe(&out, arguments, &texts, &held_out, recipe, &settings)?;
    }
    let evaluated = test.iter().chain(&held_out).filter(|_| arguments.test_every).collect();
    let mut progress = out::progress(&out, &texts, &settings)?;
    let began_training = Instant::now();
    let model = match &settings {
        ModelSettings::Linear(settings, weights) => {
            train_linear(&texts, reading.words, (settings, &weights[..]), initial, &mut progress)?
        }
        ModelSettings::FastText(settings) => {
            train_fasttext((&texts, evaluated), settings, initial, arguments, &mut out, &mut progress)?
        }
    };
    let (loss, n_weighted, mut log) = progress.finish();
    let training_s = began_training.elapsed().as_secs_f64();
    let mut classifier = Classifier::new(model);
    let choice = choose(&arguments.choice, &classifier, validation_of(&held_out), input.threads)?;
    classifier.choose(choice);
    chosen(choice, Scoring::Logit).iter().for_each(|chosen| tell(chosen));
    let mut top = top(&classifier, &texts)?;
    let (counts, n_words, n_labels) =
        (texts.counts(), texts.dictionary.n_words() as u64, texts.dictionary.labels().len() as u64);
    drop(texts);
    let record = match test.as_ref().or(held_out.first()) {
        Some((part, texts)) => {
            let place = match &arguments.test[..] {
                [] => format!("{}, {} split", arguments.input.join(" "), name_of(*part)),
                test => test.join(" "),
            };
            let mut record = Record::of(&classifier, (*part, texts), place, input.threads)?;
            record.add_to(&mut top);
            record.keep(&out, &mut log, settings.epochs().into())?;
            Some(record)
        }
        None => None,
    };
    top.weighted = n_weighted;
    put_json(&out.folder().join(NGRAMS), &top)?;
    log.finish()?;
    out::finish(&out, &classifier)?;
    record.iter().flat_map(Record::lines).for_each(|line| tell(&line));
    if record.as_ref().is_some_and(|record| record.part == Part::Validation) && choice.is_fitted() {
        tell(FITTED);
    }
    tell(&format!("the model is in {}", out.shown_model().display()));
    if arguments.json {
        print_json(&Summary {
            texts: Some(counts.n_texts),
            words: Some(n_words),
            tokens: Some(counts.n_tokens),
            labels: Some(n_labels),
            without_label: Some(counts.n_unlabelled),
            ledger: ledger.map(Counters),
            loss,
            seconds: Some(Seconds {
                reading: read_s,
                training: training_s,
                whole: began.elapsed().as_secs_f64(),
            }),
            evaluated: record.as_ref().map(|record| record.part),
            evaluation: record.as_ref().map(Record::evaluated),
            was_complete: false,
            ..Summary::of_complete(&out, kind, settings.epochs())
        })?;
    }
    Ok(())
}

impl Summary<'_> {
    fn of_complete(out: &TextsOut, kind: ModelName, epochs: u32) -> Self {
        Self {
            training: out.shown().to_owned(),
            model: out.shown_model(),
            was_complete: true,
            kind: kind.name(),
            epochs,
            texts: None,
            words: None,
            tokens: None,
            labels: None,
            without_label: None,
            ledger: None,
            loss: None,
            seconds: None,
            evaluated: None,
            evaluation: None,
        }
    }
}

fn train_linear(
    texts: &Texts,
    words: classifiers::Words,
    (settings, label_weights): (&LinearSettings, &[f32]),
    initial: Initial,
    progress: &mut Progress,
) -> Result<Model> {
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let is_stopped = || interrupts.is_stop_requested();
    let note = |done| progress.note_linear(done);
    let numbered = linear::Numbered::of(texts, settings, initial.linear())?;
    // Its weights are copied.
    drop(initial);
    let trained = numbered.train(texts, words, settings, label_weights, note, &is_stopped);
    let model = trained.map_err(|error| match error {
        classifiers::Error::Stopped => {
            let message = "interrupted; a linear training has no checkpoints: --resume starts it again";
            Failed::new(Exit::TryAgain, message).into()
        }
        error => Error::from(error),
    })?;
    progress.end_linear(settings.epochs);
    Ok(Model::Linear(Box::new(model)))
}

fn train_fasttext(
    (texts, evaluated): (&Texts, Vec<&(Part, Texts)>),
    settings: &FastTextSettings,
    initial: Initial,
    arguments: &Train,
    out: &mut TextsOut,
    progress: &mut Progress,
) -> Result<Model> {
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let mut training = match out::state(out)? {
        None => {
            let training = fasttext::Training::starting_from(texts, settings.clone(), initial.embeddings())?;
            initial.set_vectors(&training, settings.dim);
            training
        }
        Some((_, file)) => {
            progress.resume();
            let mut file = BufReader::new(file);
            fasttext::Training::resume(texts, settings.clone(), initial.embeddings(), &mut file)?
        }
    };
    // Its weights are copied.
    drop(initial);
    // It shares the weights of the training, which change between its evaluations.
    let mut current: Option<Classifier> = None;
    let interval = arguments.checkpoint_every.unwrap_or(CHECKPOINT_EVERY_S).min(1e9);
    let interval = Duration::from_secs_f64(interval);
    let mut saved_at = Instant::now();
    while let Some(done) = training.step()? {
        progress.note(&done, || {
            if evaluated.is_empty() {
                return Ok(Vec::new());
            }
            let model = || Classifier::new(Model::FastText(Box::new(training.model())));
            let classifier = current.get_or_insert_with(model);
            let of = |(part, texts): &&(Part, Texts)| -> Result<_> {
                Ok((*part, measure(classifier, texts, arguments.n_threads())?))
            };
            evaluated.iter().map(of).collect()
        })?;
        let is_due = !interval.is_zero() && saved_at.elapsed() >= interval;
        let asked = interrupts.requested().or(is_due.then_some(Requested::Checkpoint));
        if asked.is_some() && done.n_done < done.n_total {
            out.save(|file| training.save(file))?;
            saved_at = Instant::now();
        }
        if asked == Some(Requested::Stop) && done.n_done < done.n_total {
            out.checkpoints_saved()?;
            return Err(Error::Interrupted { resume: out.shown_checkpoints() });
        }
    }
    Ok(Model::FastText(Box::new(training.finish())))
}

/// The splits of --input that are read besides the training split. The first one is evaluated at the end, unless there is
/// --test.
fn held_out(arguments: &Train) -> Vec<Part> {
    let of_input = arguments.test_fraction > 0.0;
    let has_test = of_input || !arguments.test.is_empty();
    let has_use = !has_test || arguments.test_every || !arguments.choice.fitted().is_empty();
    let validation = (arguments.validation_fraction > 0.0 && has_use).then_some(Part::Validation);
    of_input.then_some(Part::Test).into_iter().chain(validation).collect()
}

/// Refuses a split without texts, and a threshold or calibration for which the labels of texts are not suitable.
fn check_labels(texts: &Texts, held_out: &[(Part, Texts)], arguments: &Train) -> Result<()> {
    let input = arguments.input.join(" ");
    for (part, texts) in held_out {
        if texts.n_texts() == 0 {
            let found = format!("no text is in the {} split", name_of(*part));
            return Err(Error::useless_texts(input, found, "raise its share, or omit it"));
        }
    }
    choice::check(&arguments.choice, texts, validation_of(held_out), &input)
}

fn validation_of(held_out: &[(Part, Texts)]) -> Option<&Texts> {
    held_out.iter().find(|(part, _)| *part == Part::Validation).map(|(_, texts)| texts)
}

/// Refuses texts from which nothing can be learned, and warns of labels that occur once.
pub fn check(texts: &Texts, arguments: &Train) -> Result<()> {
    let (counts, labels) = (texts.counts(), texts.dictionary.labels());
    let input = arguments.input.join(" ");
    let refused = |found: String, remedy| Err(Error::useless_texts(&input, found, remedy));
    if counts.n_texts == 0 {
        let is_divided = arguments.test_fraction + arguments.validation_fraction > 0.0;
        return match is_divided {
            true => refused(
                "no text with a label is in the training split".to_owned(),
                "check --format, or lower --test-fraction and --validation-fraction",
            ),
            false => refused("no text with a label".to_owned(), "check --format"),
        };
    }
    if let 1 = labels.len() {
        let found = format!("every text has the label {}", String::from_utf8_lossy(labels.get(0)));
        return refused(found, "a classifier needs texts of at least two labels");
    }
    let has_text = |class: &[u8]| labels.iter().any(|label| label == class);
    if let Some(class) = texts.dictionary.classes().iter().find(|class| !has_text(class)) {
        let found = format!("no text has the label {}", String::from_utf8_lossy(class));
        let remedy = "omit it from --labels, or pass texts of all labels: labels are numbered in the order of --labels";
        return refused(found, remedy);
    }
    if counts.n_empty == counts.n_texts {
        return refused("no text has a word".to_owned(), "check --format and --words");
    }
    let once = (0..labels.len() as u32).filter(|&label| texts.dictionary.label_count(label) == 1).count();
    if once == labels.len() && once > LABELS_OF_ONE_TEXT_MAX {
        let found = format!("each of {} labels occurs in one text only, as ids do", whole(once as u64));
        return refused(found, "pass the field of the label as --label-field, or texts that share labels");
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
    if once > 0 {
        let occur = if once == 1 { "occurs" } else { "occur" };
        tell(&format!("warning: {once} of {} labels {occur} in one text only", labels.len()));
    }
    Ok(())
}

//! `trainer ngrams`: trains an n-gram model on the texts of an input.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::ngrams::{Texts, fasttext, linear};
use launch::interrupt::{Asked, Interrupts};
use report::whole;
use runs::recipe::first_difference;
use runs::training::{
    self, CHECKPOINTS, DatasetRecord, FORMAT_VERSION, Hold, Line, METRICS, MODEL, NGRAMS, PATIENCE,
    RunSettings, SETTINGS, STATE, put, put_json,
};
use scoring::Interval;
use serde::Serialize;

use super::input::{Input, is_dataset};
use super::progress::Progress;
use super::settings::{Settings, reading, words};
use super::top::top;
use crate::arguments::{ModelName, Ngrams};
use crate::commands::out::{Existing, check_occupant, check_place, default_of_path};
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
        tell(&format!("already complete: the model is in {}", out.folder.join(MODEL).display()));
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
    put_json(&out.folder.join(NGRAMS), &top(&classifier, &texts)?)?;
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
    classifier.write(&out.folder.join(MODEL))?;
    out.finish()?;
    evaluation.iter().flat_map(|evaluation| lines(&evaluation.evaluated)).for_each(|line| tell(&line));
    tell(&format!("the model is in {}", out.folder.join(MODEL).display()));
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
            training: out.folder.clone(),
            model: out.folder.join(MODEL),
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
            return Err(Error::Interrupted { resume: out.folder.join(CHECKPOINTS) });
        }
    }
    Ok(Model::FastText(Box::new(training.finish())))
}

/// Refuses texts from which nothing can be learned, and warns of labels that occur once.
fn check(texts: &Texts, arguments: &Ngrams) -> Result<()> {
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

/// The training folder.
struct Out {
    folder: PathBuf,
    existing: Existing,
    _hold: Hold,
}

impl Out {
    /// Locks the folder, which must be new, empty or, as the flags allow, a training.
    fn take(arguments: &Ngrams) -> Result<Self> {
        let folder = arguments.out.clone().unwrap_or_else(|| {
            let first = arguments.input.first().map_or("-", String::as_str);
            default_of_path(Path::new(first.trim_start_matches("-")), "ngrams")
        });
        let existing = match (arguments.resume, arguments.force) {
            (true, _) => Existing::Resume,
            (false, true) => Existing::Replace,
            (false, false) => Existing::Refuse,
        };
        check_place(&folder)?;
        let hold = Hold::take(&folder, PATIENCE)?;
        check_occupant(&folder, existing)?;
        Ok(Self { folder, existing, _hold: hold })
    }

    /// Deletes the training that is replaced, if any.
    fn clear(&self) -> Result<()> {
        if self.existing == Existing::Replace {
            training::clear(&self.folder)?;
        }
        Ok(())
    }

    /// Whether the training is complete. Errors: the existing training has other settings.
    fn is_complete(&self, recipe: &serde_json::Value) -> Result<bool> {
        let path = self.folder.join(SETTINGS);
        if self.existing != Existing::Resume || !path.exists() {
            return Ok(false);
        }
        let json = fs::read(&path).map_err(|source| Error::io(&path, source))?;
        let settings: RunSettings = serde_json::from_slice(&json).map_err(|error| Error::Weights {
            path: path.clone(),
            found: error.to_string(),
            expected: "the settings of a training; choose another --out".to_owned(),
        })?;
        // Numbers are compared in their written form.
        let text = serde_json::to_vec(recipe).map_err(|error| Error::internal(&error))?;
        let recipe = serde_json::from_slice(&text).map_err(|error| Error::internal(&error))?;
        match first_difference(&settings.recipe, &recipe) {
            None => Ok(self.folder.join(MODEL).is_dir()),
            Some((what, found, expected)) => {
                Err(runs::Error::OtherTraining { path, what, found, expected }.into())
            }
        }
    }

    /// Writes the settings and the description of the texts.
    fn describe(
        &self,
        arguments: &Ngrams,
        texts: &Texts,
        recipe: serde_json::Value,
        settings: &Settings,
    ) -> Result<()> {
        let counts = texts.counts();
        let dictionary = &texts.dictionary;
        let labels = dictionary.labels();
        let mut classes: Vec<(String, [u64; 3])> = (0..labels.len() as u32)
            .map(|label| {
                let name = String::from_utf8_lossy(labels.get(label)).into_owned();
                (name, [dictionary.label_count(label), 0, 0])
            })
            .collect();
        classes.sort();
        let card = [
            ("texts", counts.n_texts),
            ("texts without words", counts.n_empty),
            ("lines without a label", counts.n_unlabelled),
            ("tokens", counts.n_tokens),
            ("words", dictionary.n_words() as u64),
            ("labels", labels.len() as u64),
        ];
        let path = match &arguments.input[..] {
            [place] => {
                std::path::absolute(place).map_or_else(|_| place.clone(), |path| path.display().to_string())
            }
            places => places.join(" "),
        };
        let settings = RunSettings {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: None,
            dataset: DatasetRecord {
                path,
                rows: [counts.n_texts, 0, 0],
                positive: [0; 3],
                classes,
                card: card.map(|(name, n)| (name.to_owned(), whole(n))).into(),
            },
            validation: None,
            unlabelled: None,
            soft_labels: Vec::new(),
            test: None,
            init_from: None,
            recipe,
            parameters: settings.parameters(dictionary.n_words() as u64, labels.len() as u64),
            steps_of_epoch: 1,
            world_size: 1,
            device: "CPU".to_owned(),
        };
        Ok(put_json(&self.folder.join(SETTINGS), &settings)?)
    }

    fn progress(&self, texts: &Texts, settings: &Settings) -> Result<Progress> {
        if self.existing != Existing::Resume || !self.folder.join(CHECKPOINTS).join(STATE).exists() {
            // The lines of an earlier process, which has left no checkpoint.
            let _ = fs::remove_file(self.folder.join(METRICS));
        }
        let log = Log::begin(&self.folder, 0, 1, "CPU".to_owned())?;
        Progress::new(log, settings.epochs(), texts.n_texts())
    }

    /// A new training, or one that is resumed from the checkpoint.
    fn begin<'a>(
        &self,
        texts: &'a Texts,
        settings: &fasttext::Settings,
        progress: &mut Progress,
    ) -> Result<fasttext::Training<'a>> {
        let state = self.folder.join(CHECKPOINTS).join(STATE);
        if self.existing != Existing::Resume {
            return Ok(fasttext::Training::new(texts, settings.clone())?);
        }
        match File::open(&state) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tell("no checkpoint to resume from: starting from the first text");
                Ok(fasttext::Training::new(texts, settings.clone())?)
            }
            opened => {
                let file = opened.map_err(|source| Error::io(&state, source))?;
                let training =
                    fasttext::Training::resume(texts, settings.clone(), &mut BufReader::new(file))?;
                progress.resume();
                tell("resuming from the checkpoint");
                Ok(training)
            }
        }
    }

    /// Replaces the checkpoint.
    fn save(&self, training: &fasttext::Training<'_>) -> Result<()> {
        let folder = self.folder.join(CHECKPOINTS);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(&folder, error));
            }
            _ => {}
        }
        Ok(put(&folder.join(STATE), |file| training.save(file).map_err(io::Error::other))?)
    }

    /// Deletes the checkpoint of a complete training.
    fn finish(&self) -> Result<()> {
        let folder = self.folder.join(CHECKPOINTS);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&folder, error)),
            _ => Ok(()),
        }
    }
}

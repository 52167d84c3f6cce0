//! `trainer ngrams`: trains an n-gram model on the texts of an input.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::ngrams::ranks::Traffic;
use ::ngrams::{Reading, Texts, fasttext, linear};
use batches::Part;
use launch::interrupt::{Asked, Interrupts};
use report::whole;
use runs::training::{Line, OfManyLabels, OfOneLabel, Tested};
use scoring::{Interval, LargerClass};
use serde::Serialize;
use tch::Device;
use texts::Wanted;

use super::input::{Counters, Input, ReadInput, division, is_dataset};
use super::out;
use super::progress::Progress;
use super::settings::{Settings, add_input, check_min_count, reading, words};
use super::top::top;
use crate::arguments::{ModelName, Ngrams};
use crate::commands::group::{Exchanged, Group};
use crate::commands::outcome::{Remedies, not_above_baseline};
use crate::commands::print::print_json;
use crate::commands::progress::Log;
use crate::commands::texts_out::TextsOut;
use crate::error::{Error, Result};
use crate::families::ngrams::evaluate::{Evaluation, evaluate};
use crate::families::ngrams::quality::{Evaluated, Measured};
use crate::families::ngrams::{Classifier, Model};
use crate::ranks::Ranks;
use crate::tell::{set_quiet, tell};

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
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
    evaluation: Option<Evaluated>,
    /// What the ranks exchanged, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<Exchanged>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Seconds {
    reading: f64,
    training: f64,
    whole: f64,
}

/// Default of `--checkpoint-every`.
const CHECKPOINT_EVERY_S: f64 = 600.0;

/// Trains a model as one of several ranks. Every rank calls it with the same arguments; rank 0 writes.
pub(in crate::commands) fn on_ranks(arguments: &Ngrams) -> Result<()> {
    let ranks = Ranks::join(Device::Cpu)?;
    // Rank 0 reports for all.
    set_quiet(arguments.quiet || !ranks.is_first());
    // Otherwise the optimizer finds that all ranks are of this type and refers to its methods, and with them to
    // libtorch, in the executable without it.
    ngrams(arguments, black_box(Some(&ranks)))
}

/// Trains a model.
pub(in crate::commands) fn ngrams(
    arguments: &Ngrams,
    ranks: Option<&dyn ::ngrams::ranks::Ranks>,
) -> Result<()> {
    let began = Instant::now();
    let group = Group::of(ranks);
    let Ok(kind) = arguments.model() else {
        return Err(Error::internal(&"flags of both models were accepted"));
    };
    check_min_count(arguments, kind)?;
    if group.world_size() > 1 && arguments.input.iter().any(|place| place == "-") {
        return Err(Error::Setting {
            setting: "--input",
            found: "- on several ranks".to_owned(),
            expected: "files or URLs, which each rank reads".to_owned(),
        });
    }
    let mut out = group.on_first(|| out::take(arguments))?;
    let is_dataset = matches!(&arguments.input[..], [place] if is_dataset(place));
    let reading = reading(arguments, kind, words(arguments, kind, is_dataset));
    let settings = Settings::of(arguments, kind, reading.words);
    let mut recipe = settings.recipe(arguments, &reading, group);
    // The same input may have another path on the machine of another rank.
    let of_all_ranks = recipe.to_string();
    add_input(&mut recipe, arguments, is_dataset)?;
    if group.of_rank_0(|| out.as_ref().map_or(Ok(false), |out| out.has_model(&recipe)))? {
        return match &out {
            Some(out) => {
                out.finish_again()?;
                let summary = Summary::of_complete(out, kind, settings.epochs());
                if arguments.json { print_json(&summary) } else { Ok(()) }
            }
            None => Ok(()),
        };
    }
    let input = Input::of(arguments, tell);
    let held_out = held_out(arguments);
    let of_evaluated =
        Reading { words_max: usize::MAX >> 1, count_min: 1, has_keys: true, ..reading.clone() };
    let wanted = [(Part::Training, &reading)].into_iter().chain(held_out.map(|part| (part, &of_evaluated)));
    let wanted = wanted.map(|(part, reading)| Wanted { part, reading: reading.clone() }).collect();
    let ReadInput { mut splits, ledger } =
        input.read_splits(&arguments.input, division(arguments)?, wanted)?;
    let held_out = held_out.and_then(|part| Some((part, splits.pop()?)));
    let texts = splits.remove(0);
    check(&texts, arguments)?;
    if let Some((part, texts)) = &held_out
        && texts.n_texts() == 0
    {
        let found = format!("no text is in the {} split", name_of(*part));
        let remedy = "raise its share, or omit it";
        return Err(Error::UselessTexts { input: arguments.input.join(" "), found, remedy });
    }
    // Before the training, so that an error costs no model.
    let test = group.on_first(|| match arguments.test.is_empty() {
        true => Ok(None),
        false => Ok(Some((Part::Test, input.read(&arguments.test, of_evaluated)?.0))),
    })?;
    group.compare(&texts, &of_all_ranks)?;
    let read_s = began.elapsed().as_secs_f64();
    let begin = |out: &TextsOut| {
        out.clear()?;
        // The settings of a checkpoint are there. Its training may yet be refused.
        if !out.has_checkpoint()? {
            out::describe(out, arguments, &texts, held_out.as_ref(), recipe, &settings, group.world_size())?;
        }
        out::progress(out, &texts, &settings, group.world_size())
    };
    let mut progress = group.on_first(|| out.as_ref().map(begin).transpose())?.flatten();
    let began_training = Instant::now();
    let job = Job { texts: &texts, group, arguments };
    let (model, traffic) = match &settings {
        Settings::Linear(settings) => job.train_linear(reading.words, settings, &mut progress)?,
        Settings::FastText(settings) => job.train_fasttext(settings, &mut out, &mut progress)?,
    };
    let (Some(out), Some(progress)) = (out, progress) else { return Ok(()) };
    let (loss, n_weighted, log) = progress.finish();
    let training_s = began_training.elapsed().as_secs_f64();
    let classifier = Classifier::new(model);
    let mut top = top(&classifier, &texts)?;
    let (counts, n_words, n_labels) =
        (texts.counts(), texts.dictionary.n_words() as u64, texts.dictionary.labels().len() as u64);
    drop(texts);
    let evaluation = match test.flatten().or(held_out) {
        Some((part, texts)) => {
            let evaluation = evaluate(&classifier, &texts, input.threads)?;
            let place = match &arguments.test[..] {
                [] => format!("{}, {} split", arguments.input.join(" "), name_of(part)),
                test => test.join(" "),
            };
            evaluation.warnings(&place, texts.n_texts()).iter().for_each(|warning| tell(warning));
            Some((part, evaluation))
        }
        None => None,
    };
    top.weighted = n_weighted;
    top.tested = evaluation.as_ref().map(|(part, evaluation)| Tested {
        part: *part,
        digest: evaluation.digest,
        texts: evaluation.evaluated.metrics.rows(),
        distinct_texts: evaluation.evaluated.distinct_texts,
    });
    top.evaluation = evaluation.as_ref().and_then(|(part, evaluation)| of_many(*part, &evaluation.evaluated));
    out::keep_top(&out, &top)?;
    finish_log(log, &settings, evaluation.as_ref())?;
    out::finish(&out, &classifier)?;
    let told = evaluation.iter().flat_map(|(part, evaluation)| lines(*part, &evaluation.evaluated));
    told.for_each(|line| tell(&line));
    let exchange = group.exchanged(traffic);
    exchange.iter().for_each(|exchange| tell(&exchange.to_string()));
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
            evaluated: evaluation.as_ref().map(|(part, _)| *part),
            evaluation: evaluation.map(|(_, evaluation)| evaluation.evaluated),
            exchange,
            was_complete: false,
            ..Summary::of_complete(&out, kind, settings.epochs())
        })?;
    }
    Ok(())
}

impl Summary {
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
            exchange: None,
        }
    }
}

/// A training of this process.
#[derive(Clone, Copy)]
struct Job<'a> {
    texts: &'a Texts,
    group: Group<'a>,
    arguments: &'a Ngrams,
}

/// Rank 0 has `out` and `progress`.
impl<'a> Job<'a> {
    fn train_linear(
        self,
        words: ::ngrams::Words,
        settings: &linear::Settings,
        progress: &mut Option<Progress>,
    ) -> Result<(Model, Option<Traffic>)> {
        let ranks = self.group.ranks().map(|ranks| (ranks, self.arguments.round_texts));
        let note = |done| progress.iter_mut().for_each(|progress| progress.note_linear(done));
        // Ranks that are stopped at different moments would wait for each other: there, signals end the process.
        let interrupts = ranks.is_none().then(Interrupts::listen).transpose().map_err(Error::Signals)?;
        let is_stopped = || interrupts.as_ref().is_some_and(Interrupts::is_stop_asked);
        let (model, traffic) = linear::train_on_ranks(self.texts, words, settings, ranks, note, &is_stopped)
            .map_err(|error| match error {
                ::ngrams::Error::Stopped => Error::InterruptedLinear,
                error => error.into(),
            })?;
        progress.iter_mut().for_each(|progress| progress.end_epoch(settings.epochs, None));
        Ok((Model::Linear(Box::new(model)), traffic))
    }

    fn train_fasttext(
        self,
        settings: &fasttext::Settings,
        out: &mut Option<TextsOut>,
        progress: &mut Option<Progress>,
    ) -> Result<(Model, Option<Traffic>)> {
        let group = self.group;
        let interrupts = Interrupts::listen().map_err(Error::Signals)?;
        let mut training = self.begin(settings, out, progress)?;
        let interval = self.arguments.checkpoint_every.unwrap_or(CHECKPOINT_EVERY_S).min(1e9);
        let interval = Duration::from_secs_f64(interval);
        let mut saved_at = Instant::now();
        while let Some(done) = training.step()? {
            progress.iter_mut().for_each(|progress| progress.note(&done));
            // Only rank 0 reads the clock; the ranks then agree on the result.
            let is_due = out.is_some() && !interval.is_zero() && saved_at.elapsed() >= interval;
            let asked = group.agree(interrupts.asked().or(is_due.then_some(Asked::Checkpoint)))?;
            if asked.is_some() && done.n_done < done.n_total {
                training.complete()?;
                group.on_first(|| out.as_mut().map_or(Ok(()), |out| out.save(|file| training.save(file))))?;
                saved_at = Instant::now();
            }
            if asked == Some(Asked::Stop) && done.n_done < done.n_total {
                let saved = |out: &TextsOut| out.checkpoints_saved().map(|()| out.shown_checkpoints());
                let resume = group.of_rank_0(|| out.as_ref().map(saved).transpose())?;
                return Err(Error::Interrupted { resume: resume.unwrap_or_default() });
            }
        }
        training.complete()?;
        let traffic = training.traffic();
        Ok((Model::FastText(Box::new(training.finish())), traffic))
    }

    /// A new training, or one that is resumed from the newest checkpoint.
    fn begin(
        self,
        settings: &fasttext::Settings,
        out: &mut Option<TextsOut>,
        progress: &mut Option<Progress>,
    ) -> Result<fasttext::Training<'a>> {
        let Self { texts, group, .. } = self;
        let state = group.on_first(|| out.as_mut().map_or(Ok(None), out::state))?.flatten();
        if !group.of_rank_0(|| Ok(state.is_some()))? {
            return Ok(fasttext::Training::on_ranks(texts, settings.clone(), group.ranks())?);
        }
        progress.iter_mut().for_each(Progress::resume);
        if let (Some((_, file)), None) = (&state, group.ranks()) {
            return Ok(fasttext::Training::resume(texts, settings.clone(), &mut BufReader::new(file))?);
        }
        // The ranks of other machines do not have the folder.
        let read = |(path, mut file): (PathBuf, File)| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(|source| Error::io(&path, source))?;
            Ok(bytes)
        };
        let bytes = group.on_first(|| state.map_or(Ok(Vec::new()), read))?.unwrap_or_default();
        let bytes = group.broadcast(bytes)?;
        let training =
            fasttext::Training::resume_on_ranks(texts, settings.clone(), group.ranks(), &mut &bytes[..]);
        Ok(training?)
    }
}

/// The split of --input that is evaluated at the end.
fn held_out(arguments: &Ngrams) -> Option<Part> {
    if arguments.test_fraction > 0.0 {
        return Some(Part::Test);
    }
    (arguments.validation_fraction > 0.0 && arguments.test.is_empty()).then_some(Part::Validation)
}

fn name_of(part: Part) -> &'static str {
    match part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}

/// Refuses texts from which nothing can be learned, and warns of labels that occur once.
pub fn check(texts: &Texts, arguments: &Ngrams) -> Result<()> {
    let (counts, labels) = (texts.counts(), texts.dictionary.labels());
    let input = arguments.input.join(" ");
    let refused = |found: String, remedy| Err(Error::UselessTexts { input: input.clone(), found, remedy });
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

/// The metrics of a split in some lines.
fn lines(part: Part, evaluated: &Evaluated) -> Vec<String> {
    let name = name_of(part);
    let Evaluated { metrics, intervals, precision_at_1, recall_at_1, classes, .. } = evaluated;
    let interval = intervals.map_or_else(String::new, |of| {
        let Interval(low, high) = of.accuracy;
        format!(" [95 %: {low:.4} to {high:.4}]")
    });
    let rows = whole(metrics.rows());
    let (texts, of_distinct) = match evaluated.distinct_texts {
        distinct if distinct == metrics.rows() => (format!("{rows} {name} texts"), None),
        distinct => {
            let distinct = whole(distinct);
            let accuracy = evaluated.distinct_accuracy;
            (
                format!("{rows} {name} texts, {distinct} of them distinct"),
                Some(format!("accuracy {accuracy:.4} with each distinct text once")),
            )
        }
    };
    match metrics {
        Measured::Few(metrics) => {
            let LargerClass { label, accuracy: baseline, .. } = metrics.larger_class();
            let f1 = if metrics.confusion.n_classes() == 2 { "F1      " } else { "macro F1" };
            let mut lines = vec![
                format!(
                    "accuracy {:.4}{interval} on {texts} (majority-class baseline: {baseline:.4})",
                    metrics.accuracy
                ),
                format!("{f1} {:.4}", metrics.f1),
            ];
            lines.extend(of_distinct);
            let largest = classes.get(usize::from(label)).map_or("", |class| class.name.as_str());
            let remedies = Remedies {
                row: "text",
                learned: "",
                not_learned: "train on more texts, longer, or search settings with `trainer autotune ngrams`",
            };
            lines.extend(not_above_baseline(metrics, &format!("label {largest}"), &remedies));
            lines
        }
        Measured::Many { f1, accuracy, .. } => {
            let baseline = evaluated.largest.1;
            let first = match intervals {
                Some(_) => format!(
                    "accuracy {accuracy:.4}{interval} on {texts} (majority-class baseline: {baseline:.4})"
                ),
                // Texts have several labels.
                None => {
                    format!("precision at 1 {precision_at_1:.4}, recall at 1 {recall_at_1:.4} on {texts}")
                }
            };
            [first, format!("macro F1 {f1:.4}")].into_iter().chain(of_distinct).collect()
        }
    }
}

/// The evaluation for the report, if the log cannot have it.
fn of_many(part: Part, evaluated: &Evaluated) -> Option<OfManyLabels> {
    let Evaluated { metrics, precision_at_1, recall_at_1, intervals, largest, .. } = evaluated;
    let Measured::Many { f1, rows, loss, precision, recall, .. } = metrics else { return None };
    let of_one_label = intervals.map(|intervals| OfOneLabel {
        loss: *loss,
        precision: *precision,
        recall: *recall,
        largest: largest.0.clone(),
        baseline: largest.1,
        intervals,
    });
    Some(OfManyLabels {
        part,
        texts: *rows,
        precision_at_1: *precision_at_1,
        recall_at_1: *recall_at_1,
        macro_f1: *f1,
        of_one_label,
    })
}

fn finish_log(mut log: Log, settings: &Settings, evaluation: Option<&(Part, Evaluation)>) -> Result<()> {
    if let Some((Part::Test, evaluation)) = evaluation
        && let Measured::Few(metrics) = &evaluation.evaluated.metrics
    {
        log.write(&Line::Test { step: u64::from(settings.epochs()), metrics: *metrics });
    }
    log.finish()
}

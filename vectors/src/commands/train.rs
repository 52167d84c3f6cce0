//! `vectors train`: trains word vectors on lines, streams or a dataset, by one process or several.

mod comparisons;
mod files;
mod kept;
mod lines;
mod model;
mod out;
mod progress;
mod ranks;
mod served;
mod spelled;
mod stream;

use std::thread::available_parallelism;
use std::time::Instant;

use corpus::encoding::{Encoding, UTF_8};
use corpus::format::Format;
use embeddings::skipgram::{Characters, SkipGramSettings, Training, Vocabulary};
use launch::Launch;
use launch::interrupt::Interrupts;
use program::exit::{Exit, Fails};
use report::whole;
use serde::Serialize;
use serde_json::{Map, Value, json};
use training::arguments::CharNgrams;
use training::places::is_dataset;
use training::print::print_json;
use training::tell::tell;
use training::texts_out::TextsOut;
use training::{Error, Result};

use self::comparisons::{Compared, Comparisons};
use self::progress::Speed;
use crate::arguments::{ModelName, Train};

/// The summary that `--json` prints if there is nothing to do.
#[derive(Debug, Serialize)]
struct CompleteSummary {
    /// The path or URL of the training folder.
    training: std::path::PathBuf,
    /// The path or URL of the model folder.
    model: std::path::PathBuf,
    /// Whether `--resume` found the training complete, so that nothing was computed.
    was_complete: bool,
}

/// The summary that `--json` prints.
#[derive(Debug, Serialize)]
struct Summary {
    #[serde(flatten)]
    place: CompleteSummary,
    /// Number of words with a vector.
    words: u64,
    /// Number of tokens of the input.
    tokens: u64,
    /// Number of tokens that were trained on, in all epochs.
    trained_tokens: u64,
    /// Number of lines. Of a stream: of those that were trained on, of those that were skipped, and of those that killed
    /// processes had read.
    lines: u64,
    skipped_lines: u64,
    lost_lines: u64,
    /// Number of words that lost their vector because the vocabulary was full.
    evicted_words: u64,
    /// Mean loss of the last epoch, or of the last seconds of a stream.
    loss: Option<f64>,
    /// The last comparisons with the files of `--similarity` and with `--reference`.
    #[serde(flatten)]
    compared: Compared,
    /// Seconds of the whole command, and tokens per second of the training by this process, as in the report.
    seconds: f64,
    tokens_per_s: f64,
}

/// Vectors that were trained.
enum Vectors {
    Table(Box<Training>),
    Spelled(Box<embeddings::spelling::Training>),
}

impl Vectors {
    /// Number of tokens trained on, by all processes.
    fn n_tokens(&self) -> u64 {
        match self {
            Self::Table(training) => training.n_tokens(),
            Self::Spelled(training) => training.n_tokens(),
        }
    }
}

/// What a training brought.
struct Trained {
    vectors: Vectors,
    vocabulary: Vocabulary,
    n_lines: u64,
    n_skipped: u64,
    n_lost: u64,
    /// Tokens that this process trained on.
    n_tokens: u64,
    loss: Option<f64>,
    /// The speed of this process.
    speed: Speed,
    /// Whether `--resume` continues with more lines, from the checkpoint.
    is_open: bool,
}

/// Trains word vectors.
pub(super) fn train(arguments: &Train) -> Result<()> {
    if let Some(launch) = Launch::of_ranks()? {
        return ranks::train_ranks(arguments, &launch);
    }
    if !arguments.served.servers.is_empty() {
        return served::train(arguments);
    }
    let began = Instant::now();
    check(arguments)?;
    check_alone(arguments)?;
    let mut comparisons = Comparisons::read(arguments)?;
    let mut out = out::take(arguments)?;
    let recipe = recipe(arguments, Processes::One)?;
    if out::is_complete(&out, &recipe)? {
        out.finish_again()?;
        return if arguments.json { print_json(&place(&out, true)) } else { Ok(()) };
    }
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let trained = match arguments.model {
        ModelName::CharLstm => spelled::train(arguments, &mut out, &interrupts, &mut comparisons),
        ModelName::SkipGram if is_stream(arguments) => {
            stream::train(arguments, &mut out, &interrupts, &mut comparisons)
        }
        ModelName::SkipGram => files::train(arguments, &mut out, &interrupts, &mut comparisons),
    };
    let trained = trained.and_then(|trained| match n_words(arguments.min_count, &trained.vocabulary) {
        0 => Err(files::no_words(arguments)),
        n_words => Ok((trained, n_words)),
    });
    if trained.as_ref().is_err_and(|error| error.exit() == Exit::BadInput) {
        out::forget_untrained(&out)?;
    }
    let (mut trained, n_words) = trained?;
    let write = if trained.is_open { out::write } else { out::finish };
    write(&out, &mut trained.vectors, &trained.vocabulary, &recipe)?;
    if !trained.vocabulary.is_exact() {
        tell(&format!(
            "the vocabulary was full: counts are approximate, and {} words lost their place to others; raise --words-max",
            whole(trained.vocabulary.n_evicted())
        ));
    }
    let Speed { seconds, tokens_per_s } = trained.speed;
    if trained.n_skipped > 0 {
        let n_lines = trained.n_lines + trained.n_skipped + trained.n_lost;
        let (skipped, lines) = (whole(trained.n_skipped), whole(n_lines));
        tell(&format!(
            "{skipped} of {lines} lines were skipped, because they came faster than the training, are too long, or follow \
             the last word of --words"
        ));
    }
    if trained.n_lost > 0 {
        tell(&format!("{} lines were lost, because processes were killed", whole(trained.n_lost)));
    }
    let of_all = match trained.vectors.n_tokens() {
        n_tokens if n_tokens == trained.n_tokens => String::new(),
        n_tokens => format!("{} tokens, of which this process trained on ", whole(n_tokens)),
    };
    tell(&format!(
        "{} words; {of_all}{} tokens in {seconds:.1} s, {} tokens/s; the model is in {}",
        whole(n_words),
        whole(trained.n_tokens),
        whole(tokens_per_s as u64),
        out.shown_model().display()
    ));
    if arguments.json {
        print_json(&Summary {
            place: place(&out, false),
            words: n_words,
            tokens: trained.vocabulary.n_tokens(),
            trained_tokens: trained.vectors.n_tokens(),
            lines: trained.n_lines,
            skipped_lines: trained.n_skipped,
            lost_lines: trained.n_lost,
            evicted_words: trained.vocabulary.n_evicted(),
            loss: trained.loss,
            compared: comparisons.into_last(),
            seconds: began.elapsed().as_secs_f64(),
            tokens_per_s,
        })?;
    }
    Ok(())
}

fn place(out: &TextsOut, was_complete: bool) -> CompleteSummary {
    CompleteSummary { training: out.shown().to_owned(), model: out.shown_model(), was_complete }
}

/// Whether the input has no known end.
fn is_stream(arguments: &Train) -> bool {
    arguments.follow || arguments.input.iter().any(|place| place == "-")
}

/// Refuses flags that contradict each other.
fn check(arguments: &Train) -> Result<()> {
    let refused = |setting, found: String, expected: &str| Err(Error::setting(setting, found, expected));
    lines::Lines::of(arguments)?;
    if arguments.model == ModelName::CharLstm {
        if is_stream(arguments) {
            let (setting, found) =
                if arguments.follow { ("--follow", "set") } else { ("--input", "standard input") };
            let expected =
                "files, folders or a dataset with --model char-lstm, which counts the characters first";
            return refused(setting, found.to_owned(), expected);
        }
        if !arguments.char_lstm.hidden.is_multiple_of(embeddings::spelling::SpellingSettings::HIDDEN_MULTIPLE)
        {
            let expected =
                format!("a multiple of {}", embeddings::spelling::SpellingSettings::HIDDEN_MULTIPLE);
            return refused("--hidden", arguments.char_lstm.hidden.to_string(), &expected);
        }
    }
    if !arguments.served.servers.is_empty() {
        served::check(arguments)?;
    }
    let has_dataset = arguments.input.iter().any(|place| is_dataset(place));
    if has_dataset && arguments.input.len() > 1 {
        return refused("--input", "a dataset among other inputs".to_owned(), "one dataset, or lines");
    }
    if has_dataset && arguments.follow {
        return refused("--follow", "set for a dataset".to_owned(), "files, folders or standard input");
    }
    if !arguments.held_out.is_empty() && (is_stream(arguments) || arguments.model == ModelName::CharLstm) {
        let found = if is_stream(arguments) { "set for a stream" } else { "set for char-lstm" };
        return refused("--held-out", found.to_owned(), "skip-gram on files, folders or a dataset");
    }
    match arguments.epochs {
        Some(epochs) if epochs > 1 && is_stream(arguments) => {
            return refused(
                "--epochs",
                epochs.to_string(),
                "1 for standard input and --follow, which are read once",
            );
        }
        _ => {}
    }
    if !is_stream(arguments) {
        if arguments.words.is_some() {
            return refused("--words", "set for files".to_owned(), "standard input or --follow");
        }
        if arguments.if_slow != crate::arguments::IfSlow::Wait {
            return refused("--if-slow", "skip for files".to_owned(), "standard input or --follow");
        }
    }
    Ok(())
}

/// Refuses flags of a training by several processes.
fn check_alone(arguments: &Train) -> Result<()> {
    let set = [("--step-pairs", arguments.step_pairs), ("--average-every", arguments.average_every)];
    match set.into_iter().find(|(_, value)| value.is_some()) {
        None => Ok(()),
        Some((setting, _)) => Err(Error::setting(setting, "set for one process", "several ranks or --async")),
    }
}

fn settings(arguments: &Train) -> SkipGramSettings {
    SkipGramSettings {
        dim: arguments.dim,
        window: arguments.window,
        negatives: arguments.negatives,
        rate: arguments.rate.map_or(SkipGramSettings::default().rate, |rate| rate as f32),
        min_count: arguments.min_count,
        sample: arguments.subsample,
        seed: arguments.seed,
        characters: arguments.char_ngrams.map(|CharNgrams { min, max }| Characters {
            min: min.into(),
            max: max.into(),
            buckets: arguments.buckets,
        }),
        ..SkipGramSettings::default()
    }
}

/// Whether one process trains, or several that share the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Processes {
    One,
    Several,
}

/// The settings by which a resumed training is compared.
fn recipe(arguments: &Train, processes: Processes) -> Result<Value> {
    let family = match arguments.model {
        ModelName::SkipGram => json!({ "word-vectors": written(&settings(arguments))? }),
        ModelName::CharLstm => {
            json!({ "char-lstm": written(&spelled::settings(arguments, processes))? })
        }
    };
    let mut recipe = json!({
        "family": family,
        "epochs": epochs(arguments),
        "words": arguments.words,
        "words-max": arguments.words_max,
        "follow": arguments.follow,
        "input": arguments.input,
        "format": "text",
        "text-field": null,
        "with-title": null,
        "encoding": arguments.encoding.filter(|&encoding| encoding != UTF_8).map(Encoding::name),
    });
    for (name, value) in lines::format(arguments)?.iter().flat_map(Format::of_texts) {
        recipe[name] = value.into();
    }
    Ok(recipe)
}

/// Settings by way of their text, which has `f32` numbers as a user writes them.
fn written(settings: &impl Serialize) -> Result<Map<String, Value>> {
    let text = serde_json::to_string(settings);
    text.and_then(|text| serde_json::from_str(&text)).map_err(|error| Error::internal(&error))
}

fn epochs(arguments: &Train) -> u32 {
    arguments.epochs.unwrap_or(if is_stream(arguments) { 1 } else { 5 })
}

fn threads(arguments: &Train) -> usize {
    let of_cores = || available_parallelism().map_or(1, usize::from);
    arguments.threads.map_or_else(of_cores, usize::from)
}

/// Number of words that occur often enough for a vector.
fn n_words(min_count: u64, vocabulary: &Vocabulary) -> u64 {
    vocabulary.iter().filter(|&(_, count)| count >= min_count).count() as u64
}

//! `vectors train`: trains word vectors on lines, streams or a dataset, by one process or several.

mod checks;
mod comparisons;
mod files;
mod input;
mod kept;
mod lines;
mod model;
mod out;
mod progress;
mod ranks;
mod served;
mod served_lines;
mod settings;
mod shares;
mod spelled;
mod steps;
mod stream;

use std::time::Instant;

use embeddings::skipgram::Vocabulary;
use launch::Launch;
use launch::interrupt::Interrupts;
use program::exit::{Exit, Fails};
use report::whole;
use serde::Serialize;
use training::print::print_json;
use training::tell::tell;
use training::{Error, Result};

use self::checks::{check, check_alone};
use self::comparisons::{Compared, Comparisons};
use self::lines::with_format;
use self::out::CompleteSummary;
use self::progress::Speed;
use self::settings::{Processes, recipe};
use crate::arguments::{ModelName, Train};

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

/// Trains word vectors.
pub(super) fn train(arguments: &Train) -> Result<()> {
    let arguments = &with_format(arguments)?;
    if let Some(launch) = Launch::of_ranks()? {
        return ranks::train_ranks(arguments, &launch);
    }
    if !arguments.served.servers.is_empty() {
        let train = if arguments.is_stream() { served_lines::train } else { served::train };
        return train(arguments);
    }
    let began = Instant::now();
    check(arguments)?;
    check_alone(arguments)?;
    let mut comparisons = Comparisons::read(arguments)?;
    let mut out = out::take(arguments)?;
    let recipe = recipe(arguments, Processes::One)?;
    if out::is_complete(&out, &recipe)? {
        return out::finish_again(&out, arguments);
    }
    let interrupts = Interrupts::listen().map_err(Error::Signals)?;
    let trained = match arguments.model {
        _ if arguments.is_stream() => stream::train(arguments, &mut out, &interrupts, &mut comparisons),
        ModelName::CharLstm => spelled::train(arguments, &mut out, &interrupts, &mut comparisons),
        ModelName::SkipGram => files::train(arguments, &mut out, &interrupts, &mut comparisons),
    };
    let trained = trained.and_then(|trained| match n_words(arguments.min_count, &trained.vocabulary) {
        0 => Err(input::no_words(arguments)),
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
            place: CompleteSummary::new(&out, false),
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

/// Number of words that occur often enough for a vector.
fn n_words(min_count: u64, vocabulary: &Vocabulary) -> u64 {
    vocabulary.iter().filter(|&(_, count)| count >= min_count).count() as u64
}

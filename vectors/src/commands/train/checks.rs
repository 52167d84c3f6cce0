//! Refuses flags that contradict each other.

use embeddings::spelling::SpellingSettings;
use training::places::is_dataset;
use training::{Error, Result};

use super::lines::Lines;
use crate::arguments::{IfSlow, ModelName, Train};

/// Refuses flags that contradict each other.
pub(super) fn check(arguments: &Train) -> Result<()> {
    let refused = |setting, found: String, expected: &str| Err(Error::setting(setting, found, expected));
    Lines::of(arguments)?;
    let hidden = arguments.char_lstm.hidden;
    if arguments.model == ModelName::CharLstm && !hidden.is_multiple_of(SpellingSettings::HIDDEN_MULTIPLE) {
        let expected = format!("a multiple of {}", SpellingSettings::HIDDEN_MULTIPLE);
        return refused("--hidden", hidden.to_string(), &expected);
    }
    if !arguments.served.servers.is_empty() {
        check_several("with --async", arguments)?;
    }
    let has_dataset = arguments.input.iter().any(|place| is_dataset(place));
    if has_dataset && arguments.input.len() > 1 {
        return refused("--input", "a dataset among other inputs".to_owned(), "one dataset, or lines");
    }
    if has_dataset && arguments.follow {
        return refused("--follow", "set for a dataset".to_owned(), "files, folders or standard input");
    }
    if !arguments.held_out.is_empty() && (arguments.is_stream() || arguments.model == ModelName::CharLstm) {
        let found = if arguments.is_stream() { "set for a stream" } else { "set for char-lstm" };
        return refused("--held-out", found.to_owned(), "skip-gram on files, folders or a dataset");
    }
    if let Some(epochs) = arguments.epochs.filter(|&epochs| epochs > 1 && arguments.is_stream()) {
        let expected = "1 for standard input and --follow, which are read once";
        return refused("--epochs", epochs.to_string(), expected);
    }
    if !arguments.is_stream() {
        if arguments.words.is_some() {
            return refused("--words", "set for files".to_owned(), "standard input or --follow");
        }
        if arguments.if_slow != IfSlow::Wait {
            return refused("--if-slow", "skip for files".to_owned(), "standard input or --follow");
        }
    }
    Ok(())
}

/// Refuses flags of a training by several processes.
pub(super) fn check_alone(arguments: &Train) -> Result<()> {
    let set = [("--step-pairs", arguments.step_pairs), ("--sync-every", arguments.sync_every)];
    match set.into_iter().find(|(_, value)| value.is_some()) {
        None => Ok(()),
        Some((setting, _)) => Err(Error::setting(setting, "set for one process", "several ranks or --async")),
    }
}

/// Refuses what several processes cannot train.
pub(super) fn check_several(processes: &str, arguments: &Train) -> Result<()> {
    let refused = |setting, found: &str, expected: &str| {
        let (found, expected) = (format!("{found} {processes}"), expected.to_owned());
        Err(Error::setting(setting, found, expected))
    };
    if !arguments.is_stream() {
        return Ok(());
    }
    if arguments.served.servers.is_empty() {
        return refused(
            "--input",
            "a stream",
            "files, folders or a dataset; streams need --async or one process",
        );
    }
    let of_stream = "and a stream";
    if arguments.model == ModelName::CharLstm {
        return refused("--model", &format!("char-lstm {of_stream}"), "skip-gram, or one process");
    }
    if arguments.char_ngrams.is_some() {
        return refused("--char-ngrams", &format!("set {of_stream}"), "no n-grams, or one process");
    }
    if arguments.words.is_some() {
        return refused("--words", &format!("set {of_stream}"), "streams that end, or one process");
    }
    Ok(())
}

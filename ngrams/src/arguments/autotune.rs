//! Arguments of the search.

use clap::{Arg, Args};
use training::arguments::{SearchArguments, brief, of_search};

use super::Train;

/// A search for settings of `ngrams train`.
#[derive(Debug, Args)]
pub struct Autotune {
    /// Validation lines, or a validation dataset
    ///
    /// They have the format of --input and are not trained on. Each trial is evaluated on them. Without this flag, pass
    /// --validation-fraction: trials are then evaluated on the validation split of --input.
    #[arg(long, required_unless_present = "validation_fraction", value_name = "FILE", num_args = 1.., help_heading = "Search")]
    pub validation: Vec<String>,
    /// The training.
    #[command(flatten)]
    pub train: Train,
    /// The search.
    #[command(flatten)]
    pub search: SearchArguments,
}

/// The help of an argument in the search.
pub(super) fn in_search(argument: Arg) -> Arg {
    let argument = brief(of_search(argument), SHORT);
    match argument.get_id().as_str() {
        "validation_fraction" => argument.hide_short_help(false).long_help(
            "Validation split of --input [default: 0]\n\nShare of texts that are held out, also by the printed command. \
             Without --validation, trials are evaluated on it.",
        ),
        "init_from" | "pretrained_vectors" | "test_every" => argument.hide(true),
        _ => argument,
    }
}

/// Arguments in the short help.
const SHORT: &[&str] = &[
    "input",
    "validation",
    "minutes",
    "metric",
    "log",
    "out",
    "format",
    "test",
    "model",
    "ngrams",
    "words",
    "buckets",
    "dim",
    "epochs",
    "rate",
    "c",
    "threads",
    "deterministic",
    "json",
    "quiet",
];

//! Arguments of the search.

use clap::{Arg, Args};
use training::arguments::{SearchArguments, brief, of_search};

use super::Train;

/// A search for settings of `ngrams train`.
#[derive(Debug, Args)]
pub struct Autotune {
    /// Validation lines, or a validation dataset
    ///
    /// They have the format of --input and are not trained on. Each trial is evaluated on them.
    #[arg(long, required = true, value_name = "FILE", num_args = 1.., help_heading = "Search")]
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
    brief(of_search(argument), SHORT)
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

//! Arguments of `trainer autotune`.

use clap::{Arg, Args};
use training::arguments::{SearchArguments, brief, of_search};

use super::Fit;

/// A search for settings of `trainer fit`.
#[derive(Debug, Args)]
pub struct Autotune {
    /// The training.
    #[command(flatten)]
    pub fit: Fit,
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
    "dataset",
    "validation",
    "minutes",
    "metric",
    "log",
    "out",
    "test",
    "embedding",
    "hidden",
    "layers",
    "pool",
    "epochs",
    "batch",
    "rate",
    "dropout_words",
    "dropout_head",
    "device",
    "json",
    "quiet",
];

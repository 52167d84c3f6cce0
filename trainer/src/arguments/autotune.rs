//! Arguments of `trainer autotune`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Arg, Args, Subcommand, ValueEnum};
use program::place::local_path;

use super::examples::{AUTOTUNE_FIT_EXAMPLES, AUTOTUNE_NGRAMS_EXAMPLES, MORE};
use super::numbers::{minutes, whole};
use super::{Fit, Ngrams, Passed};

/// Flags of a search.
#[derive(Debug, Args)]
pub struct Autotune {
    /// The training whose settings are searched.
    #[command(subcommand)]
    pub training: Tuned,
}

/// The trainings whose settings can be searched.
#[derive(Debug, Subcommand)]
pub enum Tuned {
    /// Search settings of `trainer ngrams`
    ///
    /// Flags of `trainer ngrams` that are passed are used in all trials. The others are searched: the model, the length
    /// of n-grams, words, sizes, learning rate, regularization and epochs. The best settings are printed as a command.
    #[command(
        allow_negative_numbers = true,
        mut_args = |argument: Arg| brief(of_search(argument), NGRAMS_SHORT),
        override_usage = "trainer autotune ngrams [OPTIONS] --input <FILE>...\n       --validation <FILE>... --minutes <N>",
        after_help = MORE,
        after_long_help = AUTOTUNE_NGRAMS_EXAMPLES
    )]
    Ngrams(Box<TunedNgrams>),
    /// Search settings of `trainer fit`
    ///
    /// Flags of `trainer fit` that are passed are used in all trials. The others are searched: learning rate, epochs,
    /// batch size, sizes, dropout and pooling. The best settings are printed as a command.
    #[command(
        allow_negative_numbers = true,
        mut_args = |argument: Arg| brief(of_search(argument), FIT_SHORT),
        after_help = MORE,
        after_long_help = AUTOTUNE_FIT_EXAMPLES
    )]
    Fit(Box<TunedFit>),
}

impl Tuned {
    /// Flags of the search.
    pub fn search(&self) -> &Search {
        match self {
            Self::Ngrams(tuned) => &tuned.search,
            Self::Fit(tuned) => &tuned.search,
        }
    }

    /// Whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Ngrams(tuned) => tuned.ngrams.quiet,
            Self::Fit(tuned) => tuned.fit.training.quiet,
        }
    }
}

/// A search for settings of `trainer ngrams`.
#[derive(Debug, Args)]
pub struct TunedNgrams {
    /// Validation lines, or a validation dataset
    ///
    /// They have the format of --input and are not trained on. Each trial is evaluated on them.
    #[arg(long, required = true, value_name = "FILE", num_args = 1.., help_heading = "Search")]
    pub validation: Vec<String>,
    /// The training.
    #[command(flatten)]
    pub ngrams: Ngrams,
    /// The search.
    #[command(flatten)]
    pub search: Search,
    /// The words that were passed.
    #[arg(skip)]
    pub passed: Passed,
}

/// A search for settings of `trainer fit`.
#[derive(Debug, Args)]
pub struct TunedFit {
    /// The training.
    #[command(flatten)]
    pub fit: Fit,
    /// The search.
    #[command(flatten)]
    pub search: Search,
    /// The words that were passed.
    #[arg(skip)]
    pub passed: Passed,
}

/// Flags of every search.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct Search {
    /// Time of the whole search, in minutes
    ///
    /// Also a part of a minute, such as 0.5. A trial that does not end within the time is stopped.
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub minutes: f64,
    /// Metric of the validation texts: accuracy, f1 or loss
    ///
    /// accuracy: the share of texts whose most probable label is one of their labels. f1: as `trainer evaluate` prints it.
    /// loss: the mean negative logarithm of the probability of the labels; lower is better.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = MetricName::Accuracy, hide_possible_values = true)]
    pub metric: MetricName,
    /// Maximum number of trials
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000_000), hide_short_help = true)]
    pub trials: Option<u32>,
    /// File to which each trial is written as a JSON line
    ///
    /// An existing file is replaced.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub log: Option<PathBuf>,
}

/// Flags that belong to the search and not to the trainings.
pub const OF_SEARCH: [&str; 6] = ["minutes", "metric", "trials", "log", "json", "quiet"];

/// `--metric`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricName {
    /// Share of texts that are predicted correctly.
    Accuracy,
    /// F1.
    F1,
    /// Mean loss.
    Loss,
}

impl MetricName {
    /// The name in arguments and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::F1 => "f1",
            Self::Loss => "loss",
        }
    }
}

/// Arguments of `autotune ngrams` in the short help.
const NGRAMS_SHORT: &[&str] = &[
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
/// Arguments of `autotune fit` in the short help.
const FIT_SHORT: &[&str] = &[
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

/// Hides an argument in the short help unless its name is in `shown`.
fn brief(argument: Arg, shown: &[&str]) -> Arg {
    let is_shown = shown.contains(&argument.get_id().as_str());
    if is_shown { argument } else { argument.hide_short_help(true) }
}

/// The help of flags that mean something else in a search.
fn of_search(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "out" => argument
            .help("Training folder of the printed command")
            .long_help("Training folder of the printed command\n\nThe search writes no model."),
        "test" => argument.help("Test texts of the printed command").long_help(
            "Test texts of the printed command\n\nThe search does not read them. The metric of the best of many trials is \
             too good, and that of the test texts is not.",
        ),
        "seed" => argument.help("Random seed of the trainings and of the search").long_help(None::<&str>),
        "json" => {
            let help = "Print all trials and the best command as JSON";
            argument.help(help).long_help(None::<&str>).help_heading("Search")
        }
        "quiet" => argument.help_heading("Search"),
        "resume" => argument.hide(true),
        _ => argument,
    }
}

//! Arguments of the program: commands with their flags.

mod autotune;
mod train;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Arg, Args, Parser, Subcommand};
use program::location::Location;
use program::size::parse_memory;
use training::arguments::numbers::{at_least, share};
use training::arguments::{Explain, LabelledTexts, MORE, Report, Storage};

pub use self::autotune::Autotune;
pub use self::train::{ModelName, NgramLossName, Train, WeightsName};

/// Train a classifier of words and n-grams, in seconds, and classify lines with it.
#[derive(Debug, Parser)]
#[command(name = "ngrams", version, arg_required_else_help = true, after_help = MORE, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a classifier of words and n-grams, in seconds
    ///
    /// It reads lines or a dataset and needs no GPU. Try it before `trainer fit`.
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = TRAIN_EXAMPLES)]
    Train(Box<Train>),
    /// Print the metrics of a model, one JSON object per file
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = EVALUATE_EXAMPLES)]
    Evaluate(Box<Evaluate>),
    /// Classify lines of files or standard input, one JSON object per line
    ///
    /// Compressed files are decompressed. A line that cannot be classified has `error` in its object.
    #[command(
        allow_negative_numbers = true,
        mut_args = of_ngrams,
        after_help = MORE,
        after_long_help = PREDICT_EXAMPLES
    )]
    Predict(Predict),
    /// Show how much each word and n-gram changes the predicted label's score
    ///
    /// The score of a label is a sum over the n-grams of a text, so the weights are exact.
    #[command(mut_args = of_ngrams, after_help = MORE, after_long_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Write a model for other programs: Python, ONNX, NumPy, fastText
    ///
    /// The folder contains predict.py, which scores texts, and the weights as arrays of NumPy.
    #[command(after_help = MORE, after_long_help = EXPORT_EXAMPLES)]
    Export(Export),
    /// Search settings of a training within a time
    ///
    /// Flags of `ngrams train` that are passed are used in all trials. The others are searched: the model, the length
    /// of n-grams, words, sizes, learning rate, regularization and epochs. The best settings are printed as a command.
    #[command(
        allow_negative_numbers = true,
        mut_args = autotune::in_search,
        override_usage = "ngrams autotune [OPTIONS] --input <FILE>... --minutes <N>\n       \
                          <--validation <FILE>...|--validation-fraction <SHARE>>",
        after_help = MORE,
        after_long_help = AUTOTUNE_EXAMPLES
    )]
    Autotune(Box<Autotune>),
    /// Write one HTML page that describes and compares trainings
    #[command(after_help = MORE, after_long_help = REPORT_EXAMPLES)]
    Report(Report),
}

impl Command {
    /// Whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Train(train) => train.quiet,
            Self::Evaluate(evaluate) => evaluate.quiet,
            Self::Autotune(autotune) => autotune.train.quiet,
            Self::Predict(Predict { of_all: training::arguments::Predict { quiet, .. }, .. })
            | Self::Explain(Explain { quiet, .. })
            | Self::Export(Export { quiet, .. })
            | Self::Report(Report { quiet, .. }) => *quiet,
        }
    }
}

/// Flags of an evaluation.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// Model folder, or the training folder that contains it
    ///
    /// Also a file of the fastText program, .bin or .ftz.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Files of texts with labels, or datasets
    ///
    /// Without a flag for it, the format is that of the extension, otherwise of the training; so are fields, labels and encoding.
    #[arg(required = true, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub files: Vec<Location>,
    /// Evaluate the test split only [default: all texts]
    ///
    /// Pass the --test-fraction of the training to evaluate the same test split.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub test_fraction: Option<f64>,
    /// Print tables in place of JSON
    #[arg(long)]
    pub text: bool,
    /// Format and labels of texts, and the wrong predictions.
    #[command(flatten)]
    pub texts: LabelledTexts,
    /// Memory for texts
    ///
    /// Texts that need more are kept in an unnamed temporary file, in TMPDIR. A size such as 512MiB or 4GiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_memory, hide_short_help = true, help_heading = "Running")]
    pub memory: usize,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    ///
    /// The metrics are printed; warnings are not.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Flags of predictions.
#[derive(Clone, Debug, Args)]
pub struct Predict {
    /// Those of all models.
    #[command(flatten)]
    pub of_all: training::arguments::Predict,
    /// The K most probable labels
    #[arg(long, value_name = "K", value_parser = at_least::<usize>(1), conflicts_with_all = ["soft", "out"])]
    pub top: Option<usize>,
    /// Only labels of at least this probability
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["soft", "out"])]
    pub threshold: Option<f64>,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
}

/// The help of an argument that other models have too.
fn of_ngrams(argument: Arg) -> Arg {
    let text = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    match argument.get_id().as_str() {
        "model" => argument.long_help(text + "\n\nAlso a file of the fastText program, .bin or .ftz."),
        "soft" => argument.long_help(text.replace(" with the vocabulary of the model", "")),
        // That of explanations, which has a default.
        "top" if !argument.get_default_values().is_empty() => {
            argument.help(text.replace("words", "n-grams")).default_value("10")
        }
        // The last one before --help.
        "quiet" => argument.long_help(text.replace(" and progress", "")).display_order(998),
        _ => argument,
    }
}

/// Flags of an export.
#[derive(Debug, Args)]
pub struct Export {
    /// Model folder, or the training folder that contains it
    ///
    /// Also a file of the fastText program, .bin or .ftz.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Folder or file to write [default: MODEL as .export]
    ///
    /// The extension selects a folder with predict.py (.export, .model or none), a file of ONNX (.onnx) or arrays of NumPy
    /// (.npz); of --model fasttext also the files of the fastText program: a model (.bin), a quantised model (.ftz) or word
    /// vectors (.vec). The default is the name of the training folder with .export, in the current folder.
    #[arg(long, short, value_name = "PATH", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// Rows of a quantised model [default: all]
    ///
    /// The rows of words and n-grams with the largest norms are kept.
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1))]
    pub rows: Option<usize>,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  ngrams train --input reviews.json.gz
      Train a classifier; the training folder is reviews.ngrams

  ngrams predict reviews.ngrams new.json.gz
      Classify new reviews with it";

const TRAIN_EXAMPLES: &str = "\
Examples:
  ngrams train --input train.txt --format fasttext -o sentiment
      Train on lines of a label and a text, in seconds

  ngrams train --input reviews.json.gz --model fasttext --dim 20 --epochs 10
      Train embeddings of words and word pairs on reviews with ratings";

const EVALUATE_EXAMPLES: &str = "\
Examples:
  ngrams evaluate reviews.ngrams test.json.gz
      Evaluate a model on other reviews

  ngrams evaluate reviews.ngrams reviews.json.gz --test-fraction 0.1
      Evaluate it on the test split of its own input";

const PREDICT_EXAMPLES: &str = "\
Examples:
  ngrams predict reviews.ngrams new.json.gz > answers.jsonl
      Classify reviews in compressed files

  echo 'a good book' | ngrams predict reviews.ngrams --format text
      Classify one text per line from standard input";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ngrams explain reviews.ngrams 'a good book, but the cover was torn'
      Show the n-grams that increase or decrease the label's probability

  ngrams explain reviews.ngrams --input new.json.gz --json > explained.jsonl
      Explain the predictions for a file, one JSON object per line";

const EXPORT_EXAMPLES: &str = "\
Examples:
  ngrams export reviews.ngrams
      Write the model with predict.py into the folder reviews.export

  ngrams export reviews.ngrams --out reviews.onnx
      Write it as a file of ONNX";

const AUTOTUNE_EXAMPLES: &str = "\
Examples:
  ngrams autotune --input train.json --validation dev.json --minutes 5
      Search all settings for five minutes, and print the best as a command

  ngrams autotune --input train.txt --format fasttext --model fasttext \\
      --dim 10 --validation dev.txt --minutes 1 --metric f1
      Search the other settings of a fasttext model of dimension 10";

const REPORT_EXAMPLES: &str = "\
Examples:
  ngrams report reviews.ngrams
      Write report.html about one training

  ngrams report small large lstm.model --out compared.html
      Compare three trainings, also those of other programs";

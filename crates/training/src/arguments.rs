//! Flags of several commands, in groups.

mod answers;
mod choice;
mod class_weight;
pub mod idle;
pub mod numbers;
mod parse;
mod passed;
mod rated;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread::available_parallelism;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Arg, Args, ValueEnum};
use corpus::csv::{Delimiter, Quote};
use corpus::encoding::{Encoding, parse_encoding};
use corpus::format::{FieldPaths, FormatName, Preset};
use program::location::Location;
use program::place::local_path;
use program::size::parse_size;
use store::S3Options;
use thiserror::Error;

pub use self::answers::{Explain, LabelledTexts, Predict};
pub use self::choice::{CalibrateName, ChoiceFlags, ThresholdText};
pub use self::class_weight::ClassWeight;
use self::numbers::{minutes, whole};
pub use self::parse::parse;
pub use self::passed::Passed;
pub use self::rated::Rated;

/// The last line of a short help.
pub const MORE: &str = "--help shows all options and examples.";

/// Format of texts.
#[derive(Clone, Debug, Args)]
pub struct LineArguments {
    /// csv, tsv, json, fasttext, text, … [default: by extension]
    ///
    /// json, csv, tsv, polarity-csv or fasttext, as in sentimill; ratings are not read. text: one text per line. The default is
    /// that of the extension .csv, .tsv, .json, .jsonl or .ndjson, also compressed; of another name, and of standard input, that
    /// of the training of an n-gram model, or json. Parquet and Arrow files are found by their content. On standard input, csv
    /// and tsv are no defaults: each line is answered at once, and the records of a table in windows of many.
    #[arg(long, value_name = "NAME", value_parser = format_of_texts, help_heading = "Input")]
    pub format: Option<LineFormat>,
    /// Field names of a known source
    ///
    /// amazon2014, amazon2018, amazon2023 or yelp.
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub preset: Option<Preset>,
    /// Fields or columns of the text [default: reviewText]
    ///
    /// As in sentimill: summary,reviewText joins two fields, data.text leads into an object. The default is that of the training
    /// of an n-gram model, or reviewText.
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    pub text_field: Option<FieldPaths>,
    /// polarity-csv: also read the title column
    ///
    /// The title is prepended to the text.
    #[arg(long, help_heading = "Input")]
    pub with_title: bool,
    /// csv and tsv: delimiter of columns [default: found in each file]
    ///
    /// A comma, tab, ';' or '|'.
    #[arg(long, value_name = "CHARACTER", hide_short_help = true, help_heading = "Input")]
    pub delimiter: Option<Delimiter>,
    /// csv and tsv: meaning of quotes [default: found in each file]
    ///
    /// double, backslash or none, as in sentimill.
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = "Input")]
    pub quote: Option<Quote>,
    /// Encoding of the lines [default: UTF-8]
    ///
    /// As in sentimill, for input that is not UTF-8 and has no byte-order mark: windows-1252, GBK, UTF-16LE, …
    #[arg(long, value_name = "NAME", value_parser = parse_encoding, hide_short_help = true, help_heading = "Input")]
    pub encoding: Option<&'static Encoding>,
    /// Maximum line length [default: 4MiB]
    ///
    /// For a longer line, `error` is `line_too_long`.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "4MiB",
        hide_default_value = true,
        value_parser = parse_size,
        help_heading = "Input"
    )]
    pub line_bytes_max: u64,
}

/// Parses the name of a format of texts.
fn format_of_texts(name: &str) -> Result<LineFormat, &'static str> {
    match name {
        "text" => Ok(LineFormat::Text),
        _ => name
            .parse()
            .map(LineFormat::Review)
            .map_err(|_| "expected json, csv, tsv, polarity-csv, fasttext or text"),
    }
}

/// Options for S3.
#[derive(Clone, Debug, Args)]
pub struct Storage {
    /// Options for S3.
    #[arg(long, value_name = "LIST", help_heading = "Storage", help = store::S3_HELP, long_help = store::S3_LONG_HELP, hide_short_help = true)]
    pub s3: Option<S3Options>,
}

impl Storage {
    /// The options, or their defaults.
    pub fn options(&self) -> S3Options {
        self.s3.clone().unwrap_or_default()
    }
}

/// `--format`.
#[derive(Clone, Copy, Debug)]
pub enum LineFormat {
    /// A review, in a format of the mapper.
    Review(FormatName),
    /// A text without a rating.
    Text,
}

impl FromStr for LineFormat {
    type Err = UnknownLineFormat;

    fn from_str(name: &str) -> Result<Self, UnknownLineFormat> {
        match name {
            "text" => Ok(Self::Text),
            // Word vectors are trained on lines.
            "csv" | "tsv" => Err(UnknownLineFormat),
            _ => name.parse().map(Self::Review).map_err(|_| UnknownLineFormat),
        }
    }
}

/// An unknown name of a format.
#[derive(Clone, Debug, Error)]
#[error(
    "expected json, polarity-csv, fasttext or text; write a table as JSON lines with python3 -c 'import csv, json, sys; \
     [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]' < TABLE > NEW.json, and pass NEW.json"
)]
pub struct UnknownLineFormat;

/// Flags of a report.
#[derive(Debug, Args)]
pub struct Report {
    /// Training folders of trainer, ngrams and vectors
    #[arg(required = true, value_name = "TRAINING", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub runs: Vec<Location>,
    /// HTML file to write
    ///
    /// An existing report is replaced. Any other file is refused, and so is an existing object in S3.
    #[arg(long, short, value_name = "FILE", default_value = "report.html", value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub out: Location,
    /// Show where the most wrong reviews come from
    ///
    /// A table of `sentimill --origins`, or several. For each of the most wrong rows, the report shows file and line of its
    /// first reviews, and their original text if the file can be read there, plain or compressed.
    #[arg(long, value_name = "FILE", num_args = 1, value_parser = PathBufValueParser::new().try_map(local_path))]
    pub origins: Vec<PathBuf>,
    /// Word vectors: words whose neighbours are shown
    ///
    /// They are also on the map. The default are the most frequent words of five letters and more.
    #[arg(long, value_name = "WORD", num_args = 1..)]
    pub words: Vec<String>,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

/// Flags of every search.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArguments {
    /// Time of the whole search, in minutes
    ///
    /// Also a part of a minute, such as 0.5. A trial that does not end within the time is stopped.
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub minutes: f64,
    /// Metric of the validation texts: accuracy, f1 or loss
    ///
    /// accuracy: the share of texts whose most probable label is one of their labels. f1: as `evaluate` prints it.
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

/// Hides an argument in the short help unless its name is in `shown`.
pub fn brief(argument: Arg, shown: &[&str]) -> Arg {
    let is_shown = shown.contains(&argument.get_id().as_str());
    if is_shown { argument } else { argument.hide_short_help(true) }
}

/// The help of flags that mean something else in a search.
pub fn of_search(argument: Arg) -> Arg {
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

/// `--char-ngrams`: the lengths of character n-grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharNgrams {
    /// The smallest length.
    pub min: u8,
    /// The largest length.
    pub max: u8,
}

impl FromStr for CharNgrams {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = text.split_once('-').and_then(|(min, max)| Some((min.parse().ok()?, max.parse().ok()?)));
        match range {
            Some((min, max)) if 1 <= min && min <= max && max <= CHARS_MAX => Ok(Self { min, max }),
            _ => Err(format!("expected two lengths from 1 to {CHARS_MAX}, as in 3-6")),
        }
    }
}

/// Maximum length of a character n-gram.
const CHARS_MAX: u8 = 32;

/// Number of threads of commands without a flag for it: OMP_NUM_THREADS, or one per core.
pub fn threads() -> NonZeroUsize {
    let set = std::env::var("OMP_NUM_THREADS").ok().and_then(|threads| threads.trim().parse().ok());
    set.unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

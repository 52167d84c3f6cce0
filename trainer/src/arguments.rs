//! What a user may ask of the program `trainer`: a command with its own flags, and groups of flags that several have.

mod groups;

use std::ffi::OsString;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use corpus::format::{FormatName, Preset};
use corpus::lines::LINE_BYTES_MAX;
use program::place::local_path;
use thiserror::Error;

pub use self::groups::{Computing, LstmFlags, Optimisation, Running, TrainingFlags};

use batches::RowWeight;
use runs::recipe::limits::{BATCH, CANDIDATES, SIZE};
use runs::recipe::{Pool, Precision};

/// Trains a sentiment model on a dataset, evaluates it, and predicts with it.
#[derive(Debug, Parser)]
#[command(name = "trainer", version, disable_help_flag = true)]
pub struct Arguments {
    /// Print help
    // One line an option, as far as they fit; clap's `--help` has five.
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a classifier
    Fit(Box<Fit>),
    /// Learn each next word of all rows, whatever their ratings; fit --init-from begins with what came of it
    Pretrain(Box<Pretrain>),
    /// Print a model's metrics on datasets' rows, one JSON object a dataset
    Evaluate(Evaluate),
    /// Read lines of files or standard input and print what a model thinks of each, one JSON object a line
    Predict(Predict),
    /// Write a saved model again elsewhere, with what other programs use it by
    Export(Export),
    /// Write one HTML page about trainings, side by side
    Report(Report),
    /// Run a command as several ranks on this machine: trainer launch --nproc 2 -- fit reviews.h5 --out run
    Launch(Launch),
}

/// What decides a classifier's training.
#[derive(Debug, Args)]
pub struct Fit {
    /// The dataset, of merge
    pub dataset: PathBuf,
    /// The folder for the model, checkpoints and metrics
    #[arg(long, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: PathBuf,
    /// Train on all rows of DATASET and test on all of this one, which has its vocabulary
    #[arg(long, value_name = "FILE", conflicts_with = "test_fraction")]
    pub test: Option<PathBuf>,
    /// The share of rows that is for testing
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub test_fraction: f64,
    /// Share of rows for validation, by whose loss the best epoch is kept; 0 keeps the last [default: 0.05; original: 0]
    #[arg(long, value_name = "SHARE")]
    pub validation_fraction: Option<f64>,
    /// Sizes of the LSTM.
    #[command(flatten)]
    pub lstm: LstmFlags,
    /// Width of the linear layer before the output [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(SIZE), help_heading = "Model")]
    pub linear: Option<i64>,
    /// Pooling of hidden states into one vector [default: mean-max; original: last]
    #[arg(long, value_enum, help_heading = "Model")]
    pub pool: Option<PoolName>,
    /// Each layer also reads a row from its end
    #[arg(long, help_heading = "Model")]
    pub bidirectional: bool,
    /// What is learned: the label, the rating as a number, or one of five ratings
    #[arg(long, value_enum, default_value_t = LossName::Label, help_heading = "Loss")]
    pub loss: LossName,
    /// Weight of a positive row's loss: a number, or `balanced` [default: 1; original: 0.2]
    #[arg(long, value_name = "WEIGHT", help_heading = "Loss")]
    pub pos_weight: Option<PosWeight>,
    /// Share of words that training reads as unknown [default: by the number of training rows; original: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub dropout_words: Option<f64>,
    /// Dropout before the output [default: 0.3; original: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub dropout_head: Option<f64>,
    /// End after so many epochs without a better validation loss; the best weights are kept
    #[arg(long, value_name = "EPOCHS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Optimisation")]
    pub patience: Option<u32>,
    /// How gradients change weights.
    #[command(flatten)]
    pub optimisation: Optimisation,
    /// How it runs.
    #[command(flatten)]
    pub training: TrainingFlags,
}

/// What decides a pretraining.
#[derive(Debug, Args)]
pub struct Pretrain {
    /// The dataset, of merge
    pub dataset: PathBuf,
    /// The folder for the model, checkpoints and metrics
    #[arg(long, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: PathBuf,
    /// Sizes of the LSTM.
    #[command(flatten)]
    pub lstm: LstmFlags,
    /// Words drawn in each step, from which the next ones are told
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(CANDIDATES), help_heading = "Loss")]
    pub candidates: u32,
    /// Share of words that training reads as unknown
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Optimisation")]
    pub dropout_words: f64,
    /// Dropout before the output
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Optimisation")]
    pub dropout_head: f64,
    /// How gradients change weights.
    #[command(flatten)]
    pub optimisation: Optimisation,
    /// How it runs.
    #[command(flatten)]
    pub training: TrainingFlags,
}

/// What is evaluated.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// Folder of a saved model, or of the training that left it
    pub model: PathBuf,
    /// Datasets with the model's vocabulary
    #[arg(required = true, value_name = "DATASET")]
    pub datasets: Vec<PathBuf>,
    /// Only the share of rows that is for testing, as fit divides them; all of them otherwise
    #[arg(long, value_name = "SHARE")]
    pub test_fraction: Option<f64>,
    /// Rows that are computed at once
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(BATCH))]
    pub batch: u32,
    /// What runs and reads.
    #[command(flatten)]
    pub running: Running,
}

/// What is predicted, and by which model.
#[derive(Clone, Debug, Args)]
pub struct Predict {
    /// Folder of a saved model, or of the training that left it
    pub model: PathBuf,
    /// Files of lines, inflated where they are compressed; - is standard input, which is read where there are none
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of the lines: json, polarity-csv, fasttext as the mapper has them, or text, a text and nothing else
    #[arg(long, value_name = "NAME", default_value = "json")]
    pub format: LineFormat,
    /// json: the field of the text in amazon2014, amazon2018, amazon2023 or yelp
    #[arg(long, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// json: field of the text [default: reviewText]
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// polarity-csv: put the column before the text in front of it
    #[arg(long)]
    pub with_title: bool,
    /// Longest line that is read
    #[arg(long, value_name = "BYTES", default_value_t = LINE_BYTES_MAX)]
    pub line_bytes_max: usize,
    /// Texts that are computed at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub batch: u32,
    /// What computes.
    #[command(flatten)]
    pub computing: Computing,
}

/// What is exported.
#[derive(Debug, Args)]
pub struct Export {
    /// Folder of a saved model, or of the training that left it
    pub model: PathBuf,
    /// The folder to write, which must not exist
    #[arg(long, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: PathBuf,
}

/// What is reported.
#[derive(Debug, Args)]
pub struct Report {
    /// The --out folders of fit and pretrain
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The page to write; one that is there is replaced
    #[arg(long, value_name = "FILE", default_value = "report.html", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: PathBuf,
}

/// What is launched.
#[derive(Debug, Args)]
pub struct Launch {
    /// Ranks
    #[arg(long, value_name = "N")]
    pub nproc: NonZeroUsize,
    /// Also write each rank's output to FOLDER/rank-0.log and so on
    #[arg(long, value_name = "FOLDER")]
    pub log_dir: Option<PathBuf>,
    /// The port at which ranks meet [default: a free one]
    #[arg(long, value_name = "PORT")]
    pub master_port: Option<NonZeroU16>,
    /// The command of each rank, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `--format`.
#[derive(Clone, Copy, Debug)]
pub enum LineFormat {
    /// A review, in a format of the mapper.
    Review(FormatName),
    /// A text and nothing else.
    Text,
}

impl FromStr for LineFormat {
    type Err = UnknownLineFormat;

    fn from_str(name: &str) -> Result<Self, UnknownLineFormat> {
        match name {
            "text" => Ok(Self::Text),
            _ => name.parse().map(Self::Review).map_err(|_| UnknownLineFormat),
        }
    }
}

/// A name of no format.
#[derive(Clone, Debug, Error)]
#[error("expected json, polarity-csv, fasttext or text")]
pub struct UnknownLineFormat;

/// `--recipe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecipeName {
    /// Chosen on three sets of reviews; batch size and epochs by the number of rows
    Modern,
    /// The earlier system's
    Original,
}

/// `--pool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PoolName {
    /// The state at the last token
    Last,
    /// The mean and the maximum of all states
    MeanMax,
}

impl From<PoolName> for Pool {
    fn from(name: PoolName) -> Self {
        match name {
            PoolName::Last => Self::Last,
            PoolName::MeanMax => Self::MeanMax,
        }
    }
}

/// `--loss`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LossName {
    /// Binary cross-entropy on the label
    Label,
    /// Squared error on the rating
    Rating,
    /// Cross-entropy on the five ratings
    FiveRatings,
}

/// `--pos-weight`.
#[derive(Clone, Copy, Debug)]
pub enum PosWeight {
    /// Negative rows / positive rows of the training part.
    Balanced,
    /// As given.
    Number(f64),
}

impl std::str::FromStr for PosWeight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "balanced" => Ok(Self::Balanced),
            Ok(number) if number.is_finite() && number > 0.0 => Ok(Self::Number(number)),
            _ => Err("expected a number above 0, or balanced".to_owned()),
        }
    }
}

/// `--row-weight`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RowWeightName {
    /// 1
    One,
    /// 1 + the logarithm of its reviews
    Log,
    /// The number of its reviews
    Count,
}

impl From<RowWeightName> for RowWeight {
    fn from(name: RowWeightName) -> Self {
        match name {
            RowWeightName::One => Self::One,
            RowWeightName::Log => Self::Log,
            RowWeightName::Count => Self::Count,
        }
    }
}

/// `--optimizer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OptimizerName {
    /// With momentum
    Sgd,
    /// Weight decay as part of the gradient
    Adam,
    /// Weight decay beside it
    Adamw,
}

/// `--decay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecayName {
    /// Stays
    Constant,
    /// Falls by a factor every so many epochs
    Step,
    /// Falls in a straight line to 0 at the end
    Linear,
    /// Falls along half a cosine to 0 at the end
    Cosine,
}

/// `--precision`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PrecisionName {
    /// 32 bits
    F32,
    /// 64 bits
    F64,
    /// bfloat16 where it is enough, on a GPU
    Bf16,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Self {
        match name {
            PrecisionName::F32 => Self::F32,
            PrecisionName::F64 => Self::F64,
            PrecisionName::Bf16 => Self::Bf16,
        }
    }
}

/// `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// A GPU where there is one
    Auto,
    /// The processor
    Cpu,
    /// The GPU of this rank
    Cuda,
}

/// `--compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ComputeName {
    /// Own kernels where there are some.
    Auto,
    /// PyTorch.
    Pytorch,
}

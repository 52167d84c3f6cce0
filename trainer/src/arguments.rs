//! Arguments of the program `trainer`: commands with their flags, and groups of flags that commands share.

mod autotune;
mod examples;
mod fit;
mod groups;
mod names;

use std::ffi::OsString;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use program::location::Location;
use program::place::local_path;
use runs::recipe::limits::{BATCH, CANDIDATES};
use training::arguments::numbers::{port, processes, share, whole};
use training::arguments::{LabelledTexts, MORE, Report, Storage};

pub use self::autotune::Autotune;
use self::examples::{
    AUTOTUNE_EXAMPLES, EVALUATE_EXAMPLES, EXAMPLES, EXPLAIN_EXAMPLES, EXPORT_EXAMPLES, FIT_EXAMPLES,
    LAUNCH_EXAMPLES, PREDICT_EXAMPLES, PRETRAIN_EXAMPLES, REPORT_EXAMPLES,
};
pub use self::fit::Fit;
pub use self::groups::{
    ClassifierCompute, Computing, LstmFlags, Optimisation, PretrainingCompute, Running, TrainingFlags,
};
pub use self::names::{
    BalanceName, ComputeName, DecayName, DeviceName, LossName, OptimizerName, PosWeight, RecipeName,
};

/// Train a sentiment classifier on a dataset, and classify reviews with it.
#[derive(Debug, Parser)]
#[command(name = "trainer", version, arg_required_else_help = true, after_help = MORE, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a classifier on a dataset
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = FIT_EXAMPLES)]
    Fit(Box<Fit>),
    /// Pretrain embeddings and LSTM layers to predict the next word
    ///
    /// Ratings are not used. `trainer fit --init-from` starts from the result.
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = PRETRAIN_EXAMPLES)]
    Pretrain(Box<Pretrain>),
    /// Search settings of `trainer fit` within a time
    ///
    /// Flags of `trainer fit` that are passed are used in all trials. The others are searched: learning rate, epochs,
    /// batch size, sizes, dropout and pooling. The best settings are printed as a command.
    #[command(
        allow_negative_numbers = true,
        mut_args = autotune::in_search,
        after_help = MORE,
        after_long_help = AUTOTUNE_EXAMPLES
    )]
    Autotune(Box<Autotune>),
    /// Print the metrics of a model, one JSON object per file
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = EVALUATE_EXAMPLES)]
    Evaluate(Box<Evaluate>),
    /// Classify lines of files or standard input, one JSON object per line
    ///
    /// Compressed files are decompressed. A line that cannot be classified has `error` in its object.
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = PREDICT_EXAMPLES)]
    Predict(Predict),
    /// Show how much each word changes the predicted label's probability
    ///
    /// The method is occlusion: the weight of a word is the change of the log-odds of the predicted label if every
    /// occurrence of the word is replaced by the unknown word. A word with a positive weight increases the
    /// probability of the label. With fit --loss rating, the weight is the change of the rating.
    #[command(after_help = MORE, after_long_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Write a model folder with files for other programs
    ///
    /// The folder contains weights under the parameter names of PyTorch, the vocabulary, and predict.py.
    #[command(after_help = MORE, after_long_help = EXPORT_EXAMPLES)]
    Export(Export),
    /// Write one HTML page that describes and compares trainings
    #[command(after_help = MORE, after_long_help = REPORT_EXAMPLES)]
    Report(Report),
    /// Run a command on several processes of this machine
    ///
    /// Each process is one rank of a distributed training or evaluation. If one fails, all are stopped. If a rank of fit or
    /// pretrain on CPUs is killed or does not respond for 5 s, the others go on without it.
    #[command(after_help = MORE, after_long_help = LAUNCH_EXAMPLES)]
    Launch(Launch),
}

impl Command {
    /// Whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Fit(fit) => fit.training.quiet,
            Self::Pretrain(pretrain) => pretrain.training.quiet,
            Self::Autotune(autotune) => autotune.fit.training.quiet,
            Self::Evaluate(evaluate) => evaluate.quiet,
            Self::Predict(Predict { of_all: training::arguments::Predict { quiet, .. }, .. })
            | Self::Explain(Explain { of_all: training::arguments::Explain { quiet, .. }, .. })
            | Self::Export(Export { quiet, .. })
            | Self::Report(Report { quiet, .. }) => *quiet,
            Self::Launch(_) => false,
        }
    }
}

/// Flags of a pretraining.
#[derive(Debug, Args)]
pub struct Pretrain {
    /// Dataset written by sentimill or merge
    ///
    /// A file, or s3://bucket/name, which is fetched once into the cache: $SENTIMILL_CACHE, $XDG_CACHE_HOME/sentimill
    /// or ~/.cache/sentimill.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub dataset: Location,
    /// Training folder [default: DATASET as .pretrained]
    ///
    /// It receives the model, checkpoints and metrics. The default is the file name of DATASET with .pretrained, in
    /// the current folder: reviews.pretrained for data/reviews.h5. With s3://bucket/folder, finished checkpoints and the
    /// model are put there, and nothing is replaced.
    #[arg(long, short, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// Sizes and inputs of the LSTM.
    #[command(flatten)]
    pub lstm: LstmFlags,
    /// Number of candidate words per step
    ///
    /// The sampled softmax compares each next word with this number of words, which are drawn in each step.
    #[arg(
        long,
        value_name = "N",
        default_value = "2048",
        value_parser = whole::<u32>(CANDIDATES),
        help_heading = "Model"
    )]
    pub candidates: u32,
    /// Optimizer and learning rate.
    #[command(flatten)]
    pub optimisation: Optimisation,
    /// Token dropout
    ///
    /// Share of tokens that training reads as unknown words.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, help_heading = "Optimisation")]
    pub dropout_words: f64,
    /// Dropout before the output layer
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, help_heading = "Optimisation")]
    pub dropout_head: f64,
    /// Checkpoints, logs and the training folder.
    #[command(flatten)]
    pub training: TrainingFlags,
    /// Backend.
    #[command(flatten)]
    pub backend: PretrainingCompute,
}

/// Flags of an evaluation.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// Model folder, or the training folder that contains it
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Files of texts with labels, or datasets with the vocabulary of the model
    ///
    /// The texts are read as sentimill reads them: CSV, TSV, JSON, Parquet and other files, plain or compressed. Without a flag for
    /// it, the format is that of the extension, or json, and the labels are those of the model. Pass the other flags with which
    /// sentimill read the reviews of its dataset, such as --text-field.
    #[arg(required = true, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub files: Vec<Location>,
    /// Evaluate the test split only [default: all rows]
    ///
    /// Pass the --test-fraction of fit to evaluate the same test split, of its dataset or of the files that it was made of.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub test_fraction: Option<f64>,
    /// Print tables in place of JSON
    #[arg(long)]
    pub text: bool,
    /// Number of rows per batch
    #[arg(
        long,
        alias = "batch-size",
        value_name = "N",
        default_value = "512",
        value_parser = whole::<u32>(BATCH),
        help_heading = "Running"
    )]
    pub batch: u32,
    /// Format and labels of texts, and the wrong predictions.
    #[command(flatten)]
    pub texts: LabelledTexts,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    ///
    /// The metrics are printed; warnings and progress are not.
    #[arg(long, short)]
    pub quiet: bool,
    /// Threads, memory and device.
    #[command(flatten)]
    pub running: Running,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
}

/// Flags of predictions.
#[derive(Clone, Debug, Args)]
pub struct Predict {
    /// Those of all models.
    #[command(flatten)]
    pub of_all: training::arguments::Predict,
    /// Number of texts per batch
    #[arg(
        long,
        alias = "batch-size",
        value_name = "N",
        default_value = "256",
        value_parser = whole::<u32>(1..=1 << 16),
        help_heading = "Running"
    )]
    pub batch: u32,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Device.
    #[command(flatten)]
    pub computing: Computing,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
}

/// Flags of explanations.
#[derive(Clone, Debug, Args)]
pub struct Explain {
    /// Those of all models.
    #[command(flatten)]
    pub of_all: training::arguments::Explain,
    /// Device.
    #[command(flatten)]
    pub computing: Computing,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
}

/// Flags of an export.
#[derive(Debug, Args)]
pub struct Export {
    /// Model folder, or the training folder that contains it
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Folder or file to write [default: MODEL as .export]
    ///
    /// The extension selects a folder (.export, .model or none) or a file of ONNX (.onnx). The default is the name of the
    /// training folder with .export, in the current folder: reviews.export for data/reviews.model.
    #[arg(long, short, value_name = "PATH", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// Replace an existing exported folder
    ///
    /// Only a model folder written by trainer is replaced, and only if its files are unchanged. Anything else is
    /// refused.
    #[arg(long)]
    pub force: bool,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

/// Flags of a launch.
#[derive(Debug, Args)]
pub struct Launch {
    /// Number of ranks (processes)
    ///
    /// Also accepted as --nproc-per-node.
    #[arg(long, aliases = ["nproc-per-node", "nproc_per_node"], value_name = "N", value_parser = processes)]
    pub nproc: NonZeroUsize,
    /// Start more than 4 ranks per core
    #[arg(long)]
    pub oversubscribe: bool,
    /// Also write each rank's output to FOLDER/rank-N.log
    #[arg(long, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub log_dir: Option<PathBuf>,
    /// Port of the rendezvous [default: a free port]
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub master_port: Option<NonZeroU16>,
    /// Machine of the rendezvous, for ranks on several machines
    ///
    /// An address or name of the first machine that the others can reach. The
    /// same command on another machine, or once more on the first, starts ranks
    /// that join at the next step or round. Requires --master-port, and fit or
    /// pretrain on CPUs.
    #[arg(long, value_name = "HOST", requires = "master_port")]
    pub master_addr: Option<String>,
    /// Number of ranks to start in place of lost ones
    ///
    /// They join at the next step or round. Requires fit or pretrain on CPUs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub restarts: usize,
    /// Command of trainer and its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

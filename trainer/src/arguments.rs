//! Arguments of the program `trainer`: commands with their flags, and groups of flags that commands share.

mod given;
mod groups;
mod names;
mod ngrams;
mod numbers;

use std::ffi::OsString;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use arguments::FormatArguments;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use program::location::Location;
use program::place::local_path;
use runs::recipe::limits::{BATCH, CANDIDATES, SIZE};

pub use self::given::Given;
pub use self::groups::{
    ClassifierCompute, Computing, Lines, LstmFlags, Optimisation, PretrainingCompute, Running, Storage,
    TrainingFlags,
};
pub use self::names::{
    CalibrateName, ClassWeight, ComputeName, DecayName, DeviceName, LineFormat, LossName, OptimizerName,
    PoolName, PosWeight, PrecisionName, RecipeName, RowWeightName, ThresholdText,
};
pub use self::ngrams::{
    CharNgrams, ModelName, NgramLossName, NgramOptimizerName, Ngrams, Rated, WeightsName, WordsName,
};
use self::numbers::{at_least, share, whole};

const MORE: &str = "--help shows all options and examples.";

const EXAMPLES: &str = "\
Examples:
  trainer fit reviews.h5
      Train a classifier; the training folder is reviews.model

  trainer predict reviews.model new.json.gz
      Classify new reviews with it";

const FIT_EXAMPLES: &str = "\
Examples:
  trainer fit reviews.h5
      Train on a dataset; the training folder is reviews.model

  trainer fit train.h5 --test test.h5 --lr 0.001 -o sentiment
      Train on train.h5 and test on test.h5, with a lower learning rate

  trainer fit train.h5 --unlabelled more.h5 --soft-labels more.npy
      Also train on reviews without ratings, on the probabilities of another model";

const PRETRAIN_EXAMPLES: &str = "\
Examples:
  trainer pretrain reviews.h5
      Pretrain on all reviews, for `fit --init-from reviews.pretrained`

  trainer pretrain reviews.h5 --epochs 2 --hidden 128 -o large
      Pretrain for two epochs on larger layers";

const NGRAMS_EXAMPLES: &str = "\
Examples:
  trainer ngrams --input train.txt --format fasttext -o sentiment
      Train on lines of a label and a text, in seconds

  trainer ngrams --input reviews.json.gz --model fasttext --dim 20 --epochs 10
      Train embeddings of words and word pairs on reviews with ratings";

const EVALUATE_EXAMPLES: &str = "\
Examples:
  trainer evaluate reviews.model test.h5 other.h5
      Evaluate a model on two datasets that have its vocabulary

  trainer evaluate reviews.model reviews.h5 --test-fraction 0.1
      Evaluate it on the test split of its own dataset";

const PREDICT_EXAMPLES: &str = "\
Examples:
  trainer predict reviews.model new.json.gz > answers.jsonl
      Classify reviews in compressed files

  echo 'a good book' | trainer predict reviews.model --format text
      Classify one text per line from standard input

  trainer predict reviews.model more.h5 --soft more.npy
      Write the probabilities of a dataset's rows, for `fit --soft-labels`";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  trainer explain reviews.model 'a good book, but the cover was torn'
      Show the words that spoke for the predicted label, and against it

  trainer explain reviews.model --input new.json.gz --json > explained.jsonl
      Explain the predictions for a file, one JSON object per line";

const EXPORT_EXAMPLES: &str = "\
Examples:
  trainer export reviews.model
      Write the model with predict.py and tokenizer.json

  trainer export reviews.model --out /models/sentiment
      Write it to another folder";

const REPORT_EXAMPLES: &str = "\
Examples:
  trainer report reviews.model
      Write report.html about one training

  trainer report small large deep --out compared.html
      Compare three trainings";

const LAUNCH_EXAMPLES: &str = "\
Examples:
  trainer launch --nproc 4 -- fit reviews.h5
      Train on four processes

  trainer launch --nproc 2 --log-dir logs -- evaluate reviews.model test.h5
      Evaluate on two processes, with one log file per process";

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
    /// Train a classifier of words and n-grams, in seconds
    ///
    /// It reads lines or a dataset, and needs no GPU. Try it before `fit`: its accuracy on sentiment is close to that of an LSTM.
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = NGRAMS_EXAMPLES)]
    Ngrams(Box<Ngrams>),
    /// Print the metrics of a model, one JSON object per dataset
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = EVALUATE_EXAMPLES)]
    Evaluate(Evaluate),
    /// Classify lines of files or standard input, one JSON object per line
    ///
    /// Compressed files are decompressed. A line that cannot be classified has `error` in its object.
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = PREDICT_EXAMPLES)]
    Predict(Predict),
    /// Show the words that spoke for and against each prediction
    ///
    /// The method is occlusion: the weight of a word is the change of the log-odds of the predicted label if every
    /// occurrence of the word is replaced by the unknown word. A positive weight speaks for the label. With fit --loss
    /// rating, it is the change of the rating.
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
    /// Each process is one rank of a distributed training or evaluation. If one fails, all are stopped.
    #[command(after_help = MORE, after_long_help = LAUNCH_EXAMPLES)]
    Launch(Launch),
}

impl Command {
    /// Whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Fit(fit) => fit.training.quiet,
            Self::Pretrain(pretrain) => pretrain.training.quiet,
            Self::Ngrams(ngrams) => ngrams.quiet,
            Self::Evaluate(Evaluate { quiet, .. })
            | Self::Predict(Predict { quiet, .. })
            | Self::Explain(Explain { quiet, .. })
            | Self::Export(Export { quiet, .. })
            | Self::Report(Report { quiet, .. }) => *quiet,
            Self::Launch(_) => false,
        }
    }
}

/// Flags of a classifier's training.
#[derive(Debug, Args)]
pub struct Fit {
    /// Dataset written by sentimill or merge
    ///
    /// A file, or s3://bucket/name, which is fetched once into the cache: $SENTIMILL_CACHE, $XDG_CACHE_HOME/sentimill
    /// or ~/.cache/sentimill.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub dataset: Location,
    /// Training folder [default: DATASET as .model]
    ///
    /// It receives the model, checkpoints and metrics. The default is the file name of DATASET with .model, in the
    /// current folder: reviews.model for data/reviews.h5. With s3://bucket/folder, finished checkpoints and the model are
    /// put there, and nothing is replaced.
    #[arg(long, short, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// Dataset that is the validation split
    ///
    /// `sentimill --vocabulary DATASET --without DATASET` makes one. It has the vocabulary of DATASET. It is evaluated after each epoch, and no row of
    /// DATASET is held back for validation.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "validation_fraction",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        help_heading = "Data"
    )]
    pub validation: Option<Location>,
    /// Test dataset with the vocabulary of DATASET
    ///
    /// `sentimill --vocabulary DATASET --without DATASET` makes one. No row of DATASET is held back for the test.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "test_fraction",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        help_heading = "Data"
    )]
    pub test: Option<Location>,
    /// Soft labels of DATASET or of --unlabelled, also more than once
    ///
    /// A file of `trainer predict MODEL DATASET --soft FILE`: the probability of each class for each row. The training
    /// rows learn these probabilities in place of their labels. Metrics of the validation and test split are computed
    /// on the labels. Requires --loss label.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1,
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        hide_short_help = true,
        help_heading = "Data"
    )]
    pub soft_labels: Vec<Location>,
    /// Dataset of reviews without ratings, for training only
    ///
    /// Its rows learn their soft labels, which --soft-labels must contain. Its labels are not used, and no row of it is in the
    /// validation or test split. It has the vocabulary of DATASET.
    #[arg(
        long,
        value_name = "FILE",
        requires = "soft_labels",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        hide_short_help = true,
        help_heading = "Data"
    )]
    pub unlabelled: Option<Location>,
    /// Test split [default: 0.1]
    ///
    /// Share of rows that are used for the test only.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.1",
        value_parser = share,
        hide_default_value = true,
        help_heading = "Data"
    )]
    pub test_fraction: f64,
    /// Validation split [default: 0.05]
    ///
    /// Share of rows that are evaluated after each epoch. The weights of the epoch with the lowest validation loss
    /// are saved; with 0, the weights of the last epoch are saved. The default with --recipe original is 0.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Data")]
    pub validation_fraction: Option<f64>,
    /// Test after every epoch [default: at the end only]
    ///
    /// Test metrics are then logged for each epoch. Do not choose epochs or other settings by them: the test metrics
    /// of the chosen model would be too good. Use the validation split for choices.
    #[arg(long, hide_short_help = true, help_heading = "Data")]
    pub test_every: bool,
    /// Cross-validation with K trainings
    ///
    /// Each fold holds back another range of the rows and is tested on it. The result is the mean and the standard
    /// deviation of each metric, to compare settings; there is no model of all rows. The rows of --test-fraction stay
    /// unused, so that they can test the model which `trainer fit` then makes. --out [default: DATASET as .folds]
    /// receives one training folder per fold.
    #[arg(
        long,
        value_name = "K",
        conflicts_with = "test",
        value_parser = whole::<u16>(2..=100),
        help_heading = "Data"
    )]
    pub folds: Option<u16>,
    /// Sizes and inputs of the LSTM.
    #[command(flatten)]
    pub lstm: LstmFlags,
    /// Width of the linear layer before the output [default: 32]
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<i64>(SIZE),
        hide_short_help = true,
        help_heading = "Model"
    )]
    pub linear: Option<i64>,
    /// Pooling of hidden states [default: mean-max]
    ///
    /// last: the hidden state at the last token. mean-max: the mean and the maximum of all hidden states,
    /// concatenated. The default with --recipe original is last.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Model")]
    pub pool: Option<PoolName>,
    /// Bidirectional LSTM layers
    ///
    /// The built-in kernels do not support it; the training is computed by PyTorch, which is slower.
    #[arg(long, hide_short_help = true, help_heading = "Model")]
    pub bidirectional: bool,
    /// Training objective [default: label]
    ///
    /// label: cross-entropy on the label, binary for two classes and softmax for more. rating: squared error on the
    /// rating. five-ratings: cross-entropy on the five ratings. Metrics are computed on the label in all cases. A
    /// dataset made with --labels requires label.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = LossName::Label,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Model"
    )]
    pub loss: LossName,
    /// Loss weight of positive rows [default: 1]
    ///
    /// A number above 0, or `balanced`: the number of negative rows divided by the number of positive rows. The
    /// default with --recipe original is 0.2. Requires --loss label and two classes.
    #[arg(long, value_name = "WEIGHT", help_heading = "Model")]
    pub pos_weight: Option<PosWeight>,
    /// Loss weights of three or more classes [default: 1 each]
    ///
    /// `balanced`, or one number above 0 per class, separated by commas, in the order of --labels. balanced: the
    /// number of rows divided by the number of classes and by the number of rows of the class. It increases the
    /// macro F1 if few rows have a class. Requires --loss label.
    #[arg(long, value_name = "WEIGHTS", hide_short_help = true, help_heading = "Model")]
    pub class_weight: Option<ClassWeight>,
    /// Threshold of label 1 [default: 0.5]
    ///
    /// A probability above 0 and below 1: a row with a higher probability has label 1. f1 or accuracy: the threshold with
    /// the highest F1 or accuracy on the validation split. The threshold is kept in the model. The choice of the best
    /// epoch does not depend on it.
    #[arg(long, value_name = "VALUE", hide_short_help = true, help_heading = "Model")]
    pub threshold: Option<ThresholdText>,
    /// Calibration of probabilities: none, temperature or platt [default: none]
    ///
    /// temperature: the log-odds are divided by one number, which changes no label. platt: the log-odds are multiplied by
    /// one number, and another one is added. The numbers with the highest likelihood on the validation split are kept in
    /// the model. With few validation rows, temperature is safer.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = CalibrateName::None,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Model"
    )]
    pub calibrate: CalibrateName,
    /// Optimizer and learning rate.
    #[command(flatten)]
    pub optimisation: Optimisation,
    /// Token dropout [default: by rows]
    ///
    /// Share of tokens that training reads as unknown words. The default is 0.3 for up to 100,000 training rows and
    /// 0.1 for more. With --recipe original it is 0.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Optimisation")]
    pub dropout_words: Option<f64>,
    /// Dropout before the output layer [default: 0.3]
    ///
    /// The default with --recipe original is 0.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Optimisation")]
    pub dropout_head: Option<f64>,
    /// Early stopping after N epochs without progress
    ///
    /// Progress is a lower loss of the validation split, which must not be empty. The best weights are saved. Also
    /// accepted as --early-stopping.
    #[arg(
        long,
        alias = "early-stopping",
        value_name = "N",
        value_parser = whole::<u32>(1..=u32::MAX as i64),
        help_heading = "Optimisation"
    )]
    pub patience: Option<u32>,
    /// Checkpoints, logs and the training folder.
    #[command(flatten)]
    pub training: TrainingFlags,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
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
    ///
    /// Also a file of the fastText program, .bin or .ftz.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Datasets with the vocabulary of the model; for n-grams, also lines
    #[arg(required = true, value_name = "DATASET", value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub datasets: Vec<Location>,
    /// Evaluate the test split only [default: all rows]
    ///
    /// Pass the --test-fraction of fit to evaluate the same test split.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub test_fraction: Option<f64>,
    /// Print tables in place of JSON
    #[arg(long)]
    pub text: bool,
    /// The format of lines, for an n-gram model.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Labels of ratings, for an n-gram model.
    #[command(flatten)]
    pub rated: Rated,
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
    /// The flags that were passed.
    #[arg(skip)]
    pub given: Given,
}

/// Flags of predictions.
#[derive(Clone, Debug, Args)]
pub struct Predict {
    /// Model folder, or the training folder that contains it
    ///
    /// Also a file of the fastText program, .bin or .ftz.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Files of lines [default: standard input, also -]
    ///
    /// s3://bucket/name: the object with this name, or all objects below it.
    #[arg(value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub files: Vec<Location>,
    /// Write the probabilities of a dataset's rows to a new file
    ///
    /// FILE is then one dataset with the vocabulary of the model. The file is a NumPy array of 32-bit floats with one row per
    /// row of the dataset and one column per class, followed by a line with the id digest of the dataset. `trainer fit
    /// --soft-labels` learns from it.
    #[arg(
        long,
        value_name = "F.npy",
        conflicts_with_all = ["format", "preset", "text_field", "with_title", "line_bytes_max", "top", "threshold"],
        value_parser = PathBufValueParser::new().try_map(local_path)
    )]
    pub soft: Option<PathBuf>,
    /// Format of lines.
    #[command(flatten)]
    pub lines: Lines,
    /// N-gram model: the K most probable labels
    #[arg(long, value_name = "K", value_parser = at_least::<usize>(1))]
    pub top: Option<usize>,
    /// N-gram model: only labels of at least this probability
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub threshold: Option<f64>,
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
    /// Print errors only
    ///
    /// The predictions are printed; warnings and progress are not.
    #[arg(long, short)]
    pub quiet: bool,
    /// Device.
    #[command(flatten)]
    pub computing: Computing,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
    /// The flags that were passed.
    #[arg(skip)]
    pub given: Given,
}

/// Flags of explanations.
#[derive(Clone, Debug, Args)]
pub struct Explain {
    /// Model folder, or the training folder that contains it
    ///
    /// Also a file of the fastText program, .bin or .ftz.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Text to explain [default: lines of standard input]
    #[arg(value_name = "TEXT", conflicts_with_all = ["input", "format", "preset", "text_field", "with_title"])]
    pub text: Option<String>,
    /// File of lines, also more than once
    ///
    /// s3://bucket/name: the object with this name, or all objects below it. -: standard input.
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new().try_map(Location::of_folder),
        help_heading = "Input"
    )]
    pub input: Vec<Location>,
    /// Format of lines.
    #[command(flatten)]
    pub lines: Lines,
    /// Maximum number of words for the label, and against it
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least::<usize>(1))]
    pub top: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Print errors only
    ///
    /// The explanations are printed; warnings and progress are not.
    #[arg(long, short)]
    pub quiet: bool,
    /// Device.
    #[command(flatten)]
    pub computing: Computing,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
    /// The flags that were passed.
    #[arg(skip)]
    pub given: Given,
}

/// Flags of an export.
#[derive(Debug, Args)]
pub struct Export {
    /// Model folder, or the training folder that contains it
    ///
    /// Also a file of the fastText program, .bin or .ftz.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub model: Location,
    /// Folder to write [default: MODEL as .export]
    ///
    /// The default is the name of the training folder with .export, in the current folder: reviews.export for
    /// data/reviews.model. For an n-gram model of embeddings it is a file of the fastText program: a model, .bin, a quantised
    /// model, .ftz, or word vectors, .vec; the default is MODEL as .bin.
    #[arg(long, short, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// N-gram model: rows of a quantised model [default: all]
    ///
    /// The rows of words and n-grams with the largest norms are kept.
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1))]
    pub rows: Option<usize>,
    /// Replace an existing exported model
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
    /// The flags that were passed.
    #[arg(skip)]
    pub given: Given,
}

/// Flags of a report.
#[derive(Debug, Args)]
pub struct Report {
    /// Training folders of fit and pretrain
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
    /// Also write each rank's output to FOLDER/rank-N.log
    #[arg(long, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub log_dir: Option<PathBuf>,
    /// Port of the rendezvous [default: a free port]
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub master_port: Option<NonZeroU16>,
    /// Command of trainer and its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn processes(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

fn port(text: &str) -> Result<NonZeroU16, String> {
    text.parse().map_err(|_| "expected a port from 1 to 65535".to_owned())
}

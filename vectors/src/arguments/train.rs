//! Flags of `vectors train`.

use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::thread::available_parallelism;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use corpus::encoding::{Encoding, parse_encoding};
use corpus::format::{FieldPaths, Preset};
use embeddings::spelling::Outputs;
use parameters::Wire;
use program::location::Location;
use program::place::local_path;
use program::size::parse_memory;
use training::arguments::numbers::{
    at_least, not_negative, port, positive, positive_f32, processes, share, whole,
};
use training::arguments::{CharNgrams, LineFormat, Storage};

use super::serve::{Place, Security, place};

/// Flags of a training of word vectors.
#[derive(Clone, Debug, Args)]
pub struct Train {
    /// Files of lines, folders, patterns, s3:// URLs, a dataset, or -
    ///
    /// The places that sentimill reads, plain or compressed, in their order. - is standard input, which may have no end. A
    /// dataset, a file of sentimill or merge, is read by itself.
    #[arg(long, required = true, value_name = "FILE", num_args = 1..)]
    pub input: Vec<String>,
    /// Training folder [default: FILE as .vectors]
    ///
    /// It receives the model, checkpoints and metrics. The default is the name of the first FILE with .vectors, in the current
    /// folder. With s3://bucket/folder, finished checkpoints and the model are put there, and nothing is replaced.
    #[arg(long, short, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// text, json, polarity-csv or fasttext [default: by extension]
    ///
    /// text: each line is a sentence. The others are as in sentimill; ratings are not read. Texts are cleaned as by the mapper.
    /// The default is json for the extensions .json, .jsonl and .ndjson, also compressed, and text for other files.
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub format: Option<LineFormat>,
    /// Field names of a known JSON source
    ///
    /// amazon2014, amazon2018, amazon2023 or yelp.
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = "Input")]
    pub preset: Option<Preset>,
    /// JSON fields of the text [default: reviewText]
    ///
    /// As in sentimill: summary,reviewText joins two fields, data.text leads into an object.
    #[arg(long, value_name = "LIST", hide_short_help = true, help_heading = "Input")]
    pub text_field: Option<FieldPaths>,
    /// polarity-csv: also read the title column
    #[arg(long, hide_short_help = true, help_heading = "Input")]
    pub with_title: bool,
    /// Encoding of the input [default: UTF-8]
    ///
    /// As in sentimill, for input that is not UTF-8 and has no byte-order mark: windows-1252, GBK, UTF-16LE, …
    #[arg(long, value_name = "NAME", value_parser = parse_encoding, hide_short_help = true, help_heading = "Input")]
    pub encoding: Option<&'static Encoding>,
    /// Wait for more lines and files at the end of the input
    ///
    /// Lines that are appended to files, and files that appear in folders, are read as they come, until the program is
    /// stopped. A file that cannot be read to its end is named, and read on when it changes.
    #[arg(long, help_heading = "Input")]
    pub follow: bool,
    /// wait or skip, if lines arrive faster than they are read
    ///
    /// wait: the writer of standard input blocks. skip: lines that do not fit into the queue are skipped and counted.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "wait",
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub if_slow: IfSlow,
    /// Dimension of the vectors
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole::<usize>(1..=DIM_MAX), help_heading = "Model")]
    pub dim: usize,
    /// Source of a word's vector: skip-gram or char-lstm
    ///
    /// skip-gram: a table with one vector per word. char-lstm: an LSTM reads the characters of the word, so that every word has a
    /// vector.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "skip-gram",
        hide_possible_values = true,
        help_heading = "Model"
    )]
    pub model: ModelName,
    /// Maximum distance of two words of a pair
    ///
    /// The distance of each position is drawn from 1 to this.
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<u32>(1..=1000), help_heading = "Model")]
    pub window: u32,
    /// Number of negative samples per position
    ///
    /// All words of a window share them.
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<usize>(1..=1000), help_heading = "Model")]
    pub negatives: usize,
    /// Minimum occurrences of a word
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least::<u64>(1), help_heading = "Model")]
    pub min_count: u64,
    /// Maximum number of words in the vocabulary
    ///
    /// When it is full, further words are counted approximately, and a frequent one takes the place of a rare one.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = whole::<usize>(1..=WORDS_MAX), hide_short_help = true, help_heading = "Model")]
    pub words_max: usize,
    /// Lengths of character n-grams, such as 3-6 [default: none]
    ///
    /// The vector of a word is the mean of its own row and the rows of its character n-grams, as in fastText. Words outside of the
    /// vocabulary have vectors too.
    #[arg(long, value_name = "MIN-MAX", help_heading = "Model")]
    pub char_ngrams: Option<CharNgrams>,
    /// Rows for hashed character n-grams
    ///
    /// N-grams share these rows.
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = whole::<u32>(1..=BUCKETS_MAX), requires = "char_ngrams", hide_short_help = true, help_heading = "Model")]
    pub buckets: u32,
    /// Number of epochs [default: 5; a stream: 1]
    #[arg(long, alias = "num-epochs", value_name = "N", value_parser = whole::<u32>(1..=100_000), help_heading = "Optimisation")]
    pub epochs: Option<u32>,
    /// Learning rate [default: 0.025; char-lstm: 0.002, by several processes 0.05]
    ///
    /// It decreases linearly to 0. If the end of the input is unknown, and with char-lstm by several processes, it is constant.
    /// Also accepted as --lr and --learning-rate.
    #[arg(long, aliases = ["lr", "learning-rate"], value_name = "RATE", value_parser = positive_f32, help_heading = "Optimisation")]
    pub rate: Option<f64>,
    /// A stream ends after this number of words
    ///
    /// It ends with the block of lines that contains that word. The learning rate decreases to 0 until then.
    /// For standard input and --follow.
    #[arg(long, value_name = "N", value_parser = at_least::<u64>(1), help_heading = "Optimisation")]
    pub words: Option<u64>,
    /// Subsampling threshold of frequent words
    ///
    /// A word whose share of all tokens is above the threshold is left out of some sentences; 0: no word is.
    #[arg(long, value_name = "SHARE", default_value = "0.001", value_parser = share, hide_short_help = true, help_heading = "Optimisation")]
    pub subsample: f64,
    /// Random seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least::<u64>(0), hide_short_help = true, help_heading = "Optimisation")]
    pub seed: u64,
    /// Number of threads [default: one per core]
    ///
    /// skip-gram: one thread gives the same vectors each time; several share them without locks. char-lstm: the same
    /// number of threads gives the same vectors each time.
    #[arg(long, short = 'j', value_name = "N", value_parser = whole::<u16>(1..=1024), help_heading = "Running")]
    pub threads: Option<u16>,
    /// Memory for the sentences of files
    ///
    /// Sentences that need more are kept in an unnamed temporary file, in TMPDIR. A size such as 512MiB or 4GiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_memory, hide_short_help = true, help_heading = "Running")]
    pub memory: usize,
    /// Seconds between two checkpoints
    ///
    /// --resume continues from the newest one. A checkpoint of a stream also replaces the model. 0: only when the program is
    /// stopped.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = not_negative, hide_short_help = true, help_heading = "Running")]
    pub checkpoint_every: f64,
    /// Files of word similarity, such as WordSim-353
    ///
    /// Lines of two words and a score. Spearman's rank correlation of scores and cosines is logged after each epoch and with each
    /// checkpoint. The training does not depend on it.
    #[arg(long, value_name = "FILE", num_args = 1.., value_parser = PathBufValueParser::new().try_map(local_path), hide_short_help = true, help_heading = "Running")]
    pub similarity: Vec<PathBuf>,
    /// Vectors to compare with, in any format of `vectors`
    ///
    /// Their PIP loss (see `vectors pip --help`), with vectors of length 1, is logged as --similarity is.
    #[arg(
        long,
        value_name = "MODEL",
        value_parser = PathBufValueParser::new().try_map(local_path),
        hide_short_help = true,
        help_heading = "Running"
    )]
    pub reference: Option<PathBuf>,
    /// Sentences that are not trained on, in --format
    ///
    /// Their loss is logged as --similarity is. Requires files, folders or a dataset as --input, and skip-gram.
    #[arg(long, value_name = "FILE", num_args = 1.., hide_short_help = true, help_heading = "Running")]
    pub held_out: Vec<String>,
    /// Resume the training in --out
    ///
    /// It continues from its newest checkpoint, or starts again if there is none. Pass the flags and the input of the
    /// interrupted training again.
    #[arg(long, help_heading = "Running")]
    pub resume: bool,
    /// Replace an existing training in --out
    ///
    /// Only a training folder written by vectors is replaced, and only if its files are unchanged.
    #[arg(long, conflicts_with = "resume", help_heading = "Running")]
    pub force: bool,
    /// Print the final summary as JSON on standard output
    #[arg(long, help_heading = "Running")]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, help_heading = "Running")]
    pub quiet: bool,
    /// char-lstm.
    #[command(flatten)]
    pub char_lstm: CharLstm,
    /// Training by several processes.
    #[command(flatten)]
    pub served: Async,
    /// Train on N ranks (processes) of this machine
    ///
    /// Each trains on a part of the input; rank 0 holds the rows and writes the result. torchrun starts ranks on several machines.
    #[arg(
        long,
        value_name = "N",
        value_parser = processes,
        conflicts_with = "servers",
        help_heading = "Several ranks"
    )]
    pub nproc: Option<NonZeroUsize>,
    /// Also write each rank's output to FOLDER/rank-N.log
    #[arg(long, value_name = "FOLDER", requires = "nproc", value_parser = PathBufValueParser::new().try_map(local_path), hide_short_help = true, help_heading = "Several ranks")]
    pub log_dir: Option<PathBuf>,
    /// Port of rank 0 [default: a free port]
    #[arg(long, value_name = "PORT", requires = "nproc", value_parser = port, hide_short_help = true, help_heading = "Several ranks")]
    pub master_port: Option<NonZeroU16>,
    /// Start more than 4 ranks per core
    #[arg(long, requires = "nproc", hide_short_help = true, help_heading = "Several ranks")]
    pub oversubscribe: bool,
    /// Number of pairs of words per step, approximately
    ///
    /// Of several ranks and of workers with --async, by skip-gram. A step trains on rows of one moment: its rows are read,
    /// trained, and their changes are sent. 2048 by default. Frequent words change by the sum of what all processes do in a step and, on servers, in
    /// --staleness more: large steps of many processes diverge.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=100_000_000), hide_short_help = true, help_heading = "Several ranks")]
    pub step_pairs: Option<u64>,
    /// Steps of a round [default: 1]
    ///
    /// Of several ranks: with 1, the changes of all ranks are added after each step. With N, each rank trains N steps by itself; a
    /// row is then changed by the mean over the ranks that changed it.
    #[arg(long, alias = "average-every", value_name = "N", value_parser = whole::<u64>(1..=100_000_000), conflicts_with = "servers", hide_short_help = true, help_heading = "Several ranks")]
    pub sync_every: Option<u64>,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
}

impl Train {
    /// Whether the input has no known end.
    pub fn is_stream(&self) -> bool {
        self.follow || self.input.iter().any(|place| place == "-")
    }

    /// Number of epochs.
    pub fn epochs(&self) -> u32 {
        self.epochs.unwrap_or(if self.is_stream() { 1 } else { 5 })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        let of_cores = || available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(of_cores, usize::from)
    }

    /// Number of pairs of words per step.
    pub fn step_pairs(&self) -> u64 {
        self.step_pairs.unwrap_or(STEP_PAIRS)
    }
}

/// Flags of `--model char-lstm`.
#[derive(Clone, Debug, Args)]
pub struct CharLstm {
    /// Hidden size of the LSTM, a multiple of 16
    #[arg(long, value_name = "N", default_value = "128", value_parser = whole::<usize>(1..=DIM_MAX), hide_short_help = true, help_heading = "char-lstm")]
    pub hidden: usize,
    /// Dimension of a character's embedding
    #[arg(long, value_name = "N", default_value = "32", value_parser = whole::<usize>(1..=DIM_MAX), hide_short_help = true, help_heading = "char-lstm")]
    pub char_dim: usize,
    /// Source of the output vectors: table, generator or shared
    ///
    /// table: one vector per word. generator: a second LSTM. shared: the LSTM of the input vectors.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "table",
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "char-lstm"
    )]
    pub outputs: Outputs,
    /// Number of positions per step, of each process
    ///
    /// By several processes, longer sentences are split.
    #[arg(long, value_name = "N", default_value = "1024", value_parser = whole::<usize>(1..=1 << 20), hide_short_help = true, help_heading = "char-lstm")]
    pub batch: usize,
}

/// `--model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// A table of vectors.
    SkipGram,
    /// An LSTM over characters.
    CharLstm,
}

impl ModelName {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Flags of a training whose vectors are on parameter servers.
#[derive(Clone, Debug, Args)]
pub struct Async {
    /// Train vectors that are held by `vectors serve`
    ///
    /// The servers in the order of their --shard. Each worker reads the whole input, and trains on its share of the sentences;
    /// from standard input and with --follow, on all lines of its own input.
    /// Worker 0 writes the training folder. A worker that was stopped or killed continues with the next step if its command is
    /// repeated with --resume; workers of files other than worker 0 need no --resume.
    #[arg(
        long = "async",
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        help_heading = "Parameter servers",
        conflicts_with_all = ["threads"]
    )]
    pub servers: Vec<String>,
    /// This process of all workers, from 0: I/N
    #[arg(long, value_name = "I/N", default_value = "0/1", value_parser = place, requires = "servers", help_heading = "Parameter servers")]
    pub worker: Place,
    /// Encoding of updates: f32, bf16 or top-K
    ///
    /// bf16: 16 bits per value. top-K: the K largest values of a row. The rest is added to the next update of the row; what is
    /// left at the end is lost.
    #[arg(long, value_name = "NAME", default_value = "f32", value_parser = |text: &str| text.parse::<Wire>(), requires = "servers", hide_short_help = true, help_heading = "Parameter servers")]
    pub wire: Wire,
    /// Seconds after which a silent server or a slower worker is an error
    ///
    /// More than --remove-after of the servers: until then they wait for a worker that does not come back.
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = positive, requires = "servers", hide_short_help = true, help_heading = "Parameter servers")]
    pub patience: f64,
    /// Token and certificates.
    #[command(flatten)]
    pub security: Security,
}

/// Default of `--step-pairs`. With 8,192, four workers with a staleness of 1 diverge on 14 novels.
const STEP_PAIRS: u64 = 2048;
/// Maximum of `--dim`.
const DIM_MAX: i64 = 4096;
/// Maximum of `--words-max`.
const WORDS_MAX: i64 = 1 << 30;

/// Maximum of `--buckets`.
const BUCKETS_MAX: i64 = 1 << 30;

/// `--if-slow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IfSlow {
    /// The writer waits.
    Wait,
    /// Lines are skipped.
    Skip,
}

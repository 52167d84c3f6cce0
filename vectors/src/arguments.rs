//! Arguments of the program: commands with their flags.

mod serve;
mod train;

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use classifiers::Words;
use embeddings::neighbours::Method;
use program::location::Location;
use program::place::local_path;
use training::arguments::numbers::{at_least, at_least_one, whole};
use training::arguments::{MORE, Report};

pub use self::serve::{Place, Security, Serve, Staleness};
pub use self::train::{Async, CharLstm, IfSlow, ModelName, Train};

/// Maximum number of words on each side of a word.
const WINDOW_MAX: i64 = 1000;

/// Train word vectors, and find neighbours, analogies and similarities with them.
#[derive(Debug, Parser)]
#[command(name = "vectors", version, arg_required_else_help = true, after_help = MORE, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train word vectors on lines, a stream or a dataset
    ///
    /// The method is skip-gram with negative sampling. It needs no GPU. `trainer fit --init-from` starts from the result.
    #[command(allow_negative_numbers = true, after_help = MORE, after_long_help = TRAIN_EXAMPLES)]
    Train(Box<Train>),
    /// Hold vectors that several `vectors train --async` train
    ///
    /// It is a parameter server: workers pull rows and push updates of them. It continues after a stop or a kill.
    #[command(after_help = MORE, after_long_help = SERVE_EXAMPLES)]
    Serve(Box<Serve>),
    /// Print the nearest words
    #[command(after_help = MORE, after_long_help = NEIGHBOURS_EXAMPLES)]
    Neighbours(Neighbours),
    /// Answer analogies: A is to B as C is to which word
    ///
    /// Words are looked up as they are, then in lower case. A, B and C are no answers.
    #[command(after_help = MORE, after_long_help = ANALOGY_EXAMPLES)]
    Analogy(Analogy),
    /// Compare cosines with scores of people, one JSON object per file
    ///
    /// The result is Spearman's rank correlation. Words are looked up as they are, then in lower case.
    #[command(after_help = MORE, after_long_help = SIMILARITY_EXAMPLES)]
    Similarity(Similarity),
    /// Print the PIP loss against other vectors or a text, as JSON
    ///
    /// The pairwise-inner-product loss is the norm of the difference of all inner products of words. It does not change
    /// if vectors are rotated. It is computed over the words that both have, of the vectors as they are and of vectors
    /// of length 1, and for vectors of 0 and random vectors.
    #[command(after_help = MORE, after_long_help = PIP_EXAMPLES)]
    Pip(Pip),
    /// Write vectors in the format of another program
    #[command(after_help = MORE, after_long_help = CONVERT_EXAMPLES)]
    Convert(Convert),
    /// Write one HTML page that describes and compares trainings
    #[command(after_help = MORE, after_long_help = REPORT_EXAMPLES)]
    Report(Report),
}

impl Command {
    /// Whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Train(train) => train.quiet,
            Self::Serve(serve) => serve.quiet,
            Self::Convert(Convert { quiet, .. }) | Self::Report(Report { quiet, .. }) => *quiet,
            Self::Neighbours(_) | Self::Analogy(_) | Self::Similarity(_) | Self::Pip(_) => false,
        }
    }
}

/// The vectors that a command reads.
#[derive(Clone, Debug, Args)]
pub struct VectorsModel {
    /// Model folder, training folder, or file of word vectors
    ///
    /// Files: text of GloVe and of word2vec, binary format of word2vec, .vec, .bin and .ftz of fastText, .npy with the words
    /// in a .txt beside it. All but .npy may be compressed by gzip, bzip2 or zstd. The content selects the format.
    #[arg(value_parser = PathBufValueParser::new().try_map(local_path))]
    pub model: PathBuf,
}

/// Flags of neighbours.
#[derive(Debug, Args)]
pub struct Neighbours {
    /// The vectors.
    #[command(flatten)]
    pub vectors: VectorsModel,
    /// Words
    ///
    /// With character n-grams, also words outside of the vocabulary.
    #[arg(required = true, value_name = "WORD")]
    pub words: Vec<String>,
    /// Number of neighbours
    #[arg(long, value_name = "K", default_value = "10", value_parser = at_least::<usize>(1))]
    pub top: usize,
    /// Print one JSON object per word
    #[arg(long)]
    pub json: bool,
}

/// Flags of analogies.
#[derive(Debug, Args)]
pub struct Analogy {
    /// The vectors.
    #[command(flatten)]
    pub vectors: VectorsModel,
    /// Three words: A, B and C
    #[arg(
        value_name = "WORD",
        num_args = 3,
        required_unless_present = "questions",
        conflicts_with = "questions"
    )]
    pub words: Vec<String>,
    /// File of analogies, for the accuracy of all
    ///
    /// Lines of four words, and lines of : and the name of a section, as in questions-words.txt of word2vec. A question
    /// counts if all four words are in the vocabulary.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub questions: Option<PathBuf>,
    /// Score of an answer: add or mul
    ///
    /// add: 3CosAdd, the sum of cosines cos(d, b) - cos(d, a) + cos(d, c). mul: 3CosMul, cos(d, b) cos(d, c) / cos(d, a),
    /// of cosines moved to 0 to 1.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = Method::Add,
        hide_possible_values = true
    )]
    pub method: Method,
    /// Number of answers
    #[arg(
        long,
        value_name = "K",
        default_value = "10",
        value_parser = at_least::<usize>(1),
        conflicts_with = "questions"
    )]
    pub top: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of word similarity.
#[derive(Debug, Args)]
pub struct Similarity {
    /// The vectors.
    #[command(flatten)]
    pub vectors: VectorsModel,
    /// Files of two words and a score per line
    ///
    /// WordSim-353 and SimLex-999 are read as they are: with a header, commas or tabs, and a part of speech.
    #[arg(
        required = true,
        value_name = "FILE",
        value_parser = PathBufValueParser::new().try_map(local_path)
    )]
    pub files: Vec<PathBuf>,
}

/// Flags of the PIP loss.
#[derive(Debug, Args)]
pub struct Pip {
    /// The vectors.
    #[command(flatten)]
    pub vectors: VectorsModel,
    /// Other vectors, in any of the formats
    #[arg(
        required_unless_present = "corpus",
        conflicts_with = "corpus",
        value_parser = PathBufValueParser::new().try_map(local_path)
    )]
    pub other: Option<PathBuf>,
    /// Compare with the factor of the PPMI matrix of a text
    ///
    /// Files of one text per line, plain or compressed. Words outside of the vocabulary are removed. The factor has the
    /// dimension of MODEL. s3://bucket/name: the object with this name, or all objects below it. -: standard input.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        value_parser = PathBufValueParser::new().try_map(Location::of_folder)
    )]
    pub corpus: Vec<Location>,
    /// Words on each side of a word
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = whole::<usize>(1..=WINDOW_MAX),
        help_heading = "Corpus"
    )]
    pub window: usize,
    /// Shift of the PMI: ln K is subtracted
    ///
    /// The number of negatives of the training that is compared; 1 for no shift.
    #[arg(long, value_name = "K", default_value = "5", value_parser = at_least_one, help_heading = "Corpus")]
    pub shift: f64,
    /// Split of lines: spaces, punctuation or cleaned
    ///
    /// spaces: bytes between white space. punctuation: words in lower case and single characters of punctuation. cleaned:
    /// words between single spaces, of texts that are cleaned.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = Words::Punctuation,
        hide_possible_values = true,
        help_heading = "Corpus"
    )]
    pub words: Words,
    /// Seed of random vectors
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

/// Flags of a conversion.
#[derive(Debug, Args)]
pub struct Convert {
    /// The vectors.
    #[command(flatten)]
    pub vectors: VectorsModel,
    /// File to write; its extension selects the format
    ///
    /// .vec: text of fastText, five digits. .txt: text of word2vec, all digits. .w2v: binary format of word2vec. .bin: model
    /// of fastText, with character n-grams. .npy: array of NumPy, and the words in a .txt beside it. Without an extension: a
    /// model folder. Nothing is replaced.
    #[arg(long, short, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(local_path))]
    pub out: PathBuf,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  vectors train --input novels.txt.gz
      Train vectors; the training folder is novels.vectors

  vectors neighbours novels.vectors film
      Print the words nearest to a word";

const TRAIN_EXAMPLES: &str = "\
Examples:
  vectors train --input novels.txt.gz
      Train vectors of all words that occur five times

  tail -n +1 -F reviews.txt | vectors train --input - --out reviews.vectors
      Train on lines as they arrive; Ctrl-C saves a checkpoint and the model";

const SERVE_EXAMPLES: &str = "\
Examples:
  vectors serve --folder served --listen 127.0.0.1:7070 --workers 2
      Hold the rows for two workers, which are started as
      vectors train --input FILE --async 127.0.0.1:7070 --worker 0/2 (and 1/2)

  vectors serve --statistics 127.0.0.1:7070
      Print what the server has done";

const NEIGHBOURS_EXAMPLES: &str = "\
Examples:
  vectors neighbours words.model film actor
      Print the ten words nearest to each word

  vectors neighbours cc.en.vec film --top 3 --json
      Print the three nearest words of a file of fastText, as JSON";

const ANALOGY_EXAMPLES: &str = "\
Examples:
  vectors analogy words.model man king woman
      Print words that are to woman as king is to man

  vectors analogy words.model --questions questions-words.txt
      Print the accuracy of each section of a file";

const SIMILARITY_EXAMPLES: &str = "\
Examples:
  vectors similarity words.model EN-WS-353-ALL.txt EN-SIMLEX-999.txt
      Compare the cosines of word pairs with the scores of two files

  vectors similarity words.vec pairs.txt
      Compare the vectors of a file";

const PIP_EXAMPLES: &str = "\
Examples:
  vectors pip words.model other.vec
      Compare two sets of word vectors

  vectors pip words.model --corpus train.txt --window 5 --shift 5
      Compare word vectors with the factor of a text's PPMI matrix";

const CONVERT_EXAMPLES: &str = "\
Examples:
  vectors convert words.model --out words.w2v
      Write the binary format of word2vec, which gensim reads

  vectors convert cc.en.300.bin --out english
      Write a model of fastText as a model folder";

const REPORT_EXAMPLES: &str = "\
Examples:
  vectors report novels.vectors
      Write report.html about one training

  vectors report novels.vectors --words film actor --out words.html
      Show the neighbours of these words";

//! Arguments of `trainer vectors`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use program::location::Location;
use program::place::local_path;

use super::WordsName;
use super::examples::{
    ANALOGY_EXAMPLES, CONVERT_EXAMPLES, MORE, NEIGHBOURS_EXAMPLES, PIP_EXAMPLES, SIMILARITY_EXAMPLES,
};
use super::numbers::{at_least, at_least_one, whole};

/// Maximum number of words on each side of a word.
const WINDOW_MAX: i64 = 1000;

/// Flags of word vectors.
#[derive(Debug, Args)]
pub struct Vectors {
    /// What is done with the vectors.
    #[command(subcommand)]
    pub action: VectorsAction,
}

impl Vectors {
    /// Whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        matches!(self.action, VectorsAction::Convert(Convert { quiet: true, .. }))
    }
}

/// What is done with word vectors.
#[derive(Debug, Subcommand)]
pub enum VectorsAction {
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
        default_value_t = MethodName::Add,
        hide_possible_values = true
    )]
    pub method: MethodName,
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

/// `--method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// 3CosAdd.
    Add,
    /// 3CosMul.
    Mul,
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
        default_value_t = WordsName::Punctuation,
        hide_possible_values = true,
        help_heading = "Corpus"
    )]
    pub words: WordsName,
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

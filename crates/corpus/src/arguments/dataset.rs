//! Flags of the programs that make a dataset: its vocabulary, its files and how the result is reported.

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use program::location::Location;

/// The words and texts of a dataset that depend on other datasets.
#[derive(Args, Clone, Debug)]
pub struct VocabularyArguments {
    /// Maximum number of words [default: 10000]
    ///
    /// The vocabulary contains the most frequent words. All other words are unknown tokens.
    #[arg(long, value_name = "N", conflicts_with = "vocabulary", help_heading = "Vocabulary",
        value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    pub vocabulary_size: Option<u64>,
    /// Vocabulary of another dataset
    ///
    /// A path or s3://bucket/name, for a test set that needs the token ids of its training set. The settings of rows
    /// must be those of that dataset.
    #[arg(long, value_name = "FILE", help_heading = "Vocabulary",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub vocabulary: Option<Location>,
    /// Omit the texts of another dataset
    ///
    /// A path or s3://bucket/name, for a test set that shares no text with its training set.
    #[arg(long, value_name = "FILE", help_heading = "Vocabulary",
        value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub without: Option<Location>,
}

/// The vocabulary and the files of a dataset.
#[derive(Args, Clone, Debug)]
pub struct DatasetArguments {
    /// The vocabulary.
    #[command(flatten)]
    pub vocabulary: VocabularyArguments,
    /// The files.
    #[command(flatten)]
    pub files: FilesArguments,
}

/// The files of a dataset.
#[derive(Args, Clone, Copy, Debug)]
pub struct FilesArguments {
    /// Also write a copy with N ids per row
    ///
    /// The copy, NAME.padded.h5, is for other programs: each row has the label and exactly N ids, cut or filled with
    /// 0.
    #[arg(long, value_name = "N", help_heading = "Output",
        value_parser = clap::value_parser!(u64).range(1..=65_536), hide_short_help = true)]
    pub padded: Option<u64>,
    /// Also write the ids as Parquet
    ///
    /// The file, NAME.ids.parquet, is for other programs: ids, label, votes, hash and split of each row.
    /// NAME.croissant.json describes it.
    #[arg(long, help_heading = "Output")]
    pub parquet: bool,
    /// Replace an existing dataset
    ///
    /// Its manifest and the files beside it are replaced, too. A file is replaced only if its SHA-256 is equal to
    /// the one in its manifest, so that no other file is lost. Nothing in S3 is replaced.
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

/// How a result is reported.
#[derive(Args, Clone, Copy, Debug)]
pub struct ReportArguments {
    /// Print the result as JSON
    ///
    /// One JSON document on standard output, with the same facts as the text output.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no progress, only warnings and errors
    ///
    /// The flag does not change standard output.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

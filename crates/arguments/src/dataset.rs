//! Flags of the programs that make a dataset: its vocabulary, its files and how the result is reported.

use std::path::PathBuf;

use clap::Args;

/// The vocabulary and the files of a dataset.
#[derive(Args, Clone, Debug)]
pub struct DatasetArguments {
    /// Maximum number of words [default: 10000]
    ///
    /// Maximum number of words in the vocabulary, which are the most frequent ones. All other words are read as unknown.
    /// [default: 10000]
    #[arg(long, value_name = "N", conflicts_with = "vocabulary", help_heading = "Vocabulary",
        value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    pub vocabulary_size: Option<u64>,
    /// Vocabulary of another dataset
    ///
    /// Use the vocabulary of another dataset, as for a test set with the words of its training set. The settings of rows must
    /// be those of that dataset.
    #[arg(long, value_name = "FILE", help_heading = "Vocabulary")]
    pub vocabulary: Option<PathBuf>,
    /// Omit the texts of another dataset
    ///
    /// Omit the texts that another dataset contains, so that a test set and a training set share none.
    #[arg(long, value_name = "FILE", help_heading = "Vocabulary")]
    pub without: Option<PathBuf>,
    /// Also write a copy with N ids per row
    ///
    /// Also write a copy for other programs, beside the dataset as NAME.padded.h5: each row has the label and exactly N ids,
    /// cut or filled with 0.
    #[arg(long, value_name = "N", help_heading = "Output",
        value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub padded: Option<u64>,
}

/// How a result is reported.
#[derive(Args, Clone, Copy, Debug)]
pub struct ReportArguments {
    /// Print no progress, only warnings and errors
    ///
    /// Print neither progress nor informational lines on standard error. Warnings and errors remain.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

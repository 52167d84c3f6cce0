//! Converts lines, records, rows of tables and rows of datasets to texts of numbered words with labels, from which
//! classifiers of n-grams are trained.
//!
//! Several threads read and number words. The texts are in the order of the input, and they depend neither on the
//! number of threads nor on timing. `reviews` reads every format in which each entry has a text and a rating.
//! `fasttext` reads lines as fastText does, with any labels. `rows` reads a split of a dataset.

mod chunks;
mod error;
mod fasttext;
mod reviews;
mod rows;

use std::num::NonZeroUsize;

use corpus::format::Format;
use corpus::labels::Labels;
use corpus::ledger::{MapperCounts, Share};
use ngrams::{Reading, Texts};
use store::S3Options;

pub use error::{Error, Result};
pub use rows::{DatasetTexts, Split};

/// Lines, records and rows of tables.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Files, folders, patterns, URLs, or `-`.
    pub inputs: Vec<String>,
    /// Options for S3.
    pub s3: S3Options,
    /// The format. Lines of [`Format::FastText`] are read as fastText does: with any labels, several per line or none.
    pub format: Format,
    /// The label of each rating. It does not affect lines of [`Format::FastText`].
    pub labels: Labels,
    /// Maximum share of bad lines among the lines that are not blank.
    pub bad_lines_max: Share,
    /// Number of threads.
    pub threads: NonZeroUsize,
}

/// Texts, and what was found while they were read.
#[derive(Debug)]
pub struct ReadTexts {
    /// The texts.
    pub texts: Texts,
    /// The counts of lines.
    pub ledger: Ledger,
}

/// The counts of lines. Each line is counted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ledger {
    /// Reviews.
    Reviews {
        /// The counts of lines.
        lines: MapperCounts,
        /// Reviews whose rating has no class, which are dropped.
        not_labelled: u64,
    },
    /// Lines of fastText's format.
    FastText {
        /// Lines with a label.
        labelled: u64,
        /// Lines without a label, which are skipped.
        unlabelled: u64,
    },
}

/// Reads all texts of an input. `reading` states how a text is split into words. `tell` prints messages: the first bad
/// lines, and warnings.
pub fn read(lines: &Lines, reading: Reading, mut tell: impl FnMut(&str)) -> Result<ReadTexts> {
    let sources = reading::find(&lines.inputs, &lines.s3)?;
    match lines.format {
        Format::FastText { .. } => fasttext::read(&sources, lines, reading),
        _ => reviews::read(sources, lines, reading, &mut tell),
    }
}

impl std::fmt::Display for Ledger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reviews { lines, not_labelled: 0 } => lines.fmt(out),
            Self::Reviews { lines, not_labelled } => {
                write!(out, "{lines}, {not_labelled} of them not_labelled")
            }
            Self::FastText { labelled, unlabelled } => {
                let lines = labelled + unlabelled;
                write!(out, "{lines} lines = {unlabelled} without a label + {labelled} texts")
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Converts lines, records, rows of tables and rows of datasets to texts of numbered words with labels, from which
//! classifiers of n-grams are trained.
//!
//! Several threads read and number words. The texts are in the order of the input, and they depend neither on the
//! number of threads nor on timing. `reviews` reads every format in which each entry has a text and a rating.
//! `fasttext` reads lines as fastText does, with any labels. `dataset_texts` reads a split of a dataset.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod chunks;
mod dataset_texts;
mod division;
mod error;
mod fasttext;
mod labels;
mod reviews;

use std::num::NonZeroUsize;

use batches::Division;
use classifiers::{Reading, Texts};
use corpus::encoding::Encoding;
use corpus::format::Format;
use corpus::labels::Labels;
use corpus::ledger::{Limits, MapperCounts};
use corpus::settings::Settings;
use store::S3Options;

use crate::lines::FastTextLine;
pub use dataset_texts::{DatasetTexts, Split};
pub(crate) use division::Hashed;
use division::SplitBuilders;
pub use division::Wanted;
pub use error::{Result, TextsError};
pub use labels::{in_order_of, labels_of, without_labels};
pub(crate) use reviews::BATCHES_BYTES;

/// Lines, records and rows of tables.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Files, folders, patterns, URLs, or `-`.
    pub inputs: Vec<String>,
    /// Options for S3.
    pub s3: S3Options,
    /// The format.
    pub format: Format,
    /// The label of each rating. It does not affect [`FastTextLine::Words`].
    pub labels: Labels,
    /// What a line of [`Format::FastText`] is.
    pub fasttext: FastTextLine,
    /// The encoding of lines.
    pub encoding: &'static Encoding,
    /// Limits of bad lines and of lines that are not in their encoding.
    pub limits: Limits,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// The settings of the rows whose splits are read; `None`: rows have all words.
    pub rows: Option<Settings>,
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
        /// Lines with several labels, or with a label that is not at the head of the line. `sentimill` reads other labels.
        other_labels: u64,
    },
}

/// Reads all texts of an input. `reading` states how a text is split into words. `tell` prints messages: the first bad
/// lines, and warnings.
pub fn read(lines: &Lines, reading: Reading, tell: impl FnMut(&str)) -> Result<ReadTexts> {
    let (mut texts, ledger) = read_into(lines, &SplitBuilders::of_all(reading), tell)?;
    Ok(ReadTexts { texts: texts.remove(0), ledger })
}

/// Reads the texts of some splits, in one pass. Returns the texts of each.
pub fn read_splits(
    lines: &Lines,
    division: Division,
    wanted: Vec<Wanted>,
    tell: impl FnMut(&str),
) -> Result<(Vec<Texts>, Ledger)> {
    read_into(lines, &SplitBuilders::of(division, wanted, lines.rows.clone()), tell)
}

fn read_into(
    lines: &Lines,
    builders: &SplitBuilders,
    mut tell: impl FnMut(&str),
) -> Result<(Vec<Texts>, Ledger)> {
    let sources = reading::find(&lines.inputs, &lines.s3)?;
    match lines.format {
        Format::FastText { .. } if lines.fasttext == FastTextLine::Words => {
            fasttext::read(&sources, lines, builders)
        }
        _ => reviews::read(sources, lines, builders, &mut tell),
    }
}

impl Ledger {
    /// Names and counts, in their order; the first is that of lines.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match *self {
            Self::Reviews { lines, not_labelled } => {
                lines.counters().into_iter().chain([("not_labelled", not_labelled)]).collect()
            }
            Self::FastText { labelled, unlabelled, other_labels } => vec![
                ("lines", labelled + unlabelled),
                ("without_label", unlabelled),
                ("texts", labelled),
                ("other_labels", other_labels),
            ],
        }
    }

    /// Number of lines that are not texts.
    pub fn n_skipped(&self) -> u64 {
        match *self {
            Self::Reviews { lines, not_labelled } => lines.lines - lines.reviews + not_labelled,
            Self::FastText { unlabelled, .. } => unlabelled,
        }
    }
}

impl std::fmt::Display for Ledger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reviews { lines, not_labelled: 0 } => lines.fmt(out),
            Self::Reviews { lines, not_labelled } => {
                write!(out, "{lines}, {not_labelled} of them not_labelled")
            }
            Self::FastText { labelled, unlabelled, .. } => {
                let lines = labelled + unlabelled;
                write!(out, "{lines} lines = {unlabelled} without a label + {labelled} texts")
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Errors of reading texts, and the exit code for each.

use std::io;

use corpus::judgement::Refusal;
use program::exit::{Exit, Fails};
use program::system::Failure;
use thiserror::Error;

/// Result of this module.
pub type Result<T> = std::result::Result<T, TextsError>;

/// Why texts were not read.
#[derive(Debug, Error)]
pub enum TextsError {
    /// An input could not be found or read.
    #[error(transparent)]
    Reading(#[from] reading::Error),
    /// Too many lines are bad, or none is a review.
    #[error(transparent)]
    Lines(#[from] Refusal),
    /// Texts could not be stored, or have too many labels.
    #[error(transparent)]
    Texts(#[from] classifiers::Error),
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// No line has a label.
    #[error(
        "found no label in {} of fasttext, expected a label such as __label__1 per line; {remedy}",
        if *n_lines == 1 { "1 line".to_owned() } else { format!("{n_lines} lines") }
    )]
    NoLabel {
        /// Number of lines.
        n_lines: u64,
        /// The remedy.
        remedy: String,
    },
    /// No rating has a class.
    #[error("no rating of {n_reviews} reviews has a class; name a class for each rating with --labels")]
    NoClass {
        /// Number of reviews.
        n_reviews: u64,
    },
    /// A line is too long to be held.
    #[error("{input}: found a line of more than {most} bytes at byte {from}, expected lines; check --format")]
    LongLine {
        /// Name of the input.
        input: String,
        /// Offset of the line in the decompressed input.
        from: u64,
        /// Maximum length in bytes.
        most: usize,
    },
    /// There are more inputs than texts can be ordered by.
    #[error("found {found} inputs, expected at most {most}; join files with cat")]
    TooManyInputs {
        /// Number of inputs.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// A thread could not be started.
    #[error("{}; or choose fewer --threads", Failure::reading("start a thread", .0))]
    Thread(#[source] io::Error),
}

impl Fails for TextsError {
    fn exit(&self) -> Exit {
        match self {
            Self::Reading(error) => error.exit(),
            Self::Dataset(error) => error.exit(),
            Self::Texts(classifiers::Error::TooManyLabels { .. } | classifiers::Error::LongLine { .. })
            | Self::Lines(_)
            | Self::NoLabel { .. }
            | Self::NoClass { .. }
            | Self::LongLine { .. } => Exit::BadInput,
            Self::Texts(classifiers::Error::Read { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Exit::MissingInput
            }
            Self::TooManyInputs { .. } => Exit::Usage,
            Self::Texts(_) | Self::Thread(_) => Exit::Io,
        }
    }
}

//! Errors of the trainer's commands, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use thiserror::Error;

/// Errors of the trainer's commands.
#[derive(Debug, Error)]
pub enum Error {
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Batches could not be read.
    #[error(transparent)]
    Batches(#[from] batches::Error),
    /// A setting has an invalid value.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The valid values.
        expected: String,
    },
    /// An option belongs to another line format.
    #[error("{0}; --help tells more")]
    Misplaced(#[from] corpus::format::Misplaced),
    /// Metrics could not be computed.
    #[error(transparent)]
    Scoring(#[from] scoring::Error),
    /// The loss is not finite.
    #[error(
        "step {step}: the loss is no finite number; the training diverged: lower the learning rate, clip gradients, or \
         resume from a checkpoint with other settings"
    )]
    Diverged {
        /// Number of completed steps.
        step: u64,
    },
    /// A weights file does not match the model.
    #[error("{}: {found}, expected {expected}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What the file contains.
        found: String,
        /// What the model requires.
        expected: String,
    },
    /// The model predicts next words, not labels.
    #[error(
        "{}: a model that tells next words, expected one that tells what a row says; train one by fit --init-from {}",
        path.display(),
        path.display()
    )]
    NoClassifier {
        /// Folder of the model.
        path: PathBuf,
    },
    /// The training folder could not be written or read.
    #[error(transparent)]
    Runs(#[from] runs::Error),
    /// A checkpoint or a saved model could not be written or read.
    #[error(transparent)]
    Saved(#[from] runs::saved::Error),
    /// Lines could not be read or predicted.
    #[error(transparent)]
    Predict(#[from] crate::predict::Error),
    /// The parent folder of a result does not exist.
    #[error(transparent)]
    NoFolder(#[from] program::place::NoFolder),
    /// A file of word vectors is invalid.
    #[error("{}: line {line}: {found}", path.display())]
    Vectors {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        found: String,
    },
    /// The training in the folder is complete, but has other settings.
    #[error(
        "{}: found a complete training with {what} {found}, expected {expected}; begin another with its weights by \
         --init-from {}, and another --out", path.display(), model.display()
    )]
    Finished {
        /// The folder.
        path: PathBuf,
        /// The setting.
        what: String,
        /// Its value in the existing training.
        found: String,
        /// Its value now.
        expected: String,
        /// The existing model.
        model: PathBuf,
    },
    /// The training was stopped by a signal after a checkpoint.
    #[error("interrupted; a checkpoint is in {}: go on by --resume", resume.display())]
    Interrupted {
        /// The folder of checkpoints.
        resume: PathBuf,
    },
    /// Rank 0 failed.
    #[error("rank 0 could not go on: {message}")]
    Elsewhere {
        /// Its error message.
        message: String,
    },
    /// Reading or writing failed.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Signal handlers could not be installed.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// The ranks' key could not be read.
    #[error(transparent)]
    Key(#[from] launch::key::Error),
    /// Communication between ranks failed.
    #[error(transparent)]
    Ranks(#[from] c10d::Error),
    /// PyTorch failed.
    #[error("PyTorch: {}", first_line(.0))]
    Torch(#[from] tch::TchError),
    /// An internal invariant is violated; this is a defect.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The violated invariant.
        promise: String,
    },
}

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Misplaced(_) | Self::NoFolder(_) => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::Batches(error) => error.exit(),
            Self::Setting { .. } | Self::Diverged { .. } => Exit::Settings,
            Self::Scoring(error) => error.exit(),
            Self::Runs(error) => error.exit(),
            Self::Saved(error) => error.exit(),
            Self::Predict(error) => error.exit(),
            Self::Weights { .. } => Exit::MissingInput,
            Self::NoClassifier { .. } | Self::Finished { .. } => Exit::Settings,
            Self::Vectors { .. } => Exit::BadInput,
            Self::Elsewhere { .. } | Self::Interrupted { .. } => Exit::TryAgain,
            Self::Io { .. } | Self::Signals(_) => Exit::Io,
            Self::Key(launch::key::Error::Unreadable { .. }) => Exit::MissingInput,
            Self::Key(_) => Exit::Settings,
            Self::Ranks(error) if error.is_worth_retrying() => Exit::TryAgain,
            Self::Ranks(_) => Exit::Settings,
            Self::Torch(_) | Self::Internal { .. } => Exit::Internal,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn internal(error: &impl std::fmt::Display) -> Self {
        Self::Internal { promise: error.to_string() }
    }
}

/// libtorch appends a C++ stack trace, which does not help users.
fn first_line(error: &tch::TchError) -> String {
    let text = error.to_string();
    text.split("\nException raised from").next().unwrap_or(&text).trim().to_owned()
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

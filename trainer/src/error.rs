//! Why a command of the trainer ends early, and the exit code that the program gives for it.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use thiserror::Error;

/// Why a command ends early.
#[derive(Debug, Error)]
pub enum Error {
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// There is no batch.
    #[error(transparent)]
    Batches(#[from] batches::Error),
    /// A setting makes no sense.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// An option is of another format of lines.
    #[error("{0}; --help tells more")]
    Misplaced(#[from] corpus::format::Misplaced),
    /// There are no metrics.
    #[error(transparent)]
    Scoring(#[from] scoring::Error),
    /// The training has no finite loss any more.
    #[error(
        "step {step}: the loss is no finite number; the training diverged: lower the learning rate, clip gradients, or \
         resume from a checkpoint with other settings"
    )]
    Diverged {
        /// Steps before.
        step: u64,
    },
    /// Weights in a file are not those of the model.
    #[error("{}: {found}, expected {expected}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What the model has.
        expected: String,
    },
    /// A saved model answers nothing about a row.
    #[error(
        "{}: a model that tells next words, expected one that tells what a row says; train one by fit --init-from {}",
        path.display(),
        path.display()
    )]
    NoClassifier {
        /// Its folder.
        path: PathBuf,
    },
    /// The folder of a training could not be written or read.
    #[error(transparent)]
    Runs(#[from] runs::Error),
    /// A checkpoint or a saved model could not be written or read.
    #[error(transparent)]
    Saved(#[from] runs::saved::Error),
    /// Lines could not be read or answered.
    #[error(transparent)]
    Predict(#[from] crate::predict::Error),
    /// The folder in which a result should be made is not there.
    #[error(transparent)]
    NoFolder(#[from] program::place::NoFolder),
    /// A file of word vectors.
    #[error("{}: line {line}: {found}", path.display())]
    Vectors {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        found: String,
    },
    /// The training in the folder is complete, and is to go on with other settings.
    #[error(
        "{}: found a complete training with {what} {found}, expected {expected}; begin another with its weights by \
         --init-from {}, and another --out", path.display(), model.display()
    )]
    Finished {
        /// The folder.
        path: PathBuf,
        /// The setting.
        what: String,
        /// Of the training that is there.
        found: String,
        /// Now.
        expected: String,
        /// Its model.
        model: PathBuf,
    },
    /// Somebody ended the training, which has been saved.
    #[error("interrupted; a checkpoint is in {}: go on by --resume", resume.display())]
    Interrupted {
        /// The folder of checkpoints.
        resume: PathBuf,
    },
    /// Rank 0 could not go on.
    #[error("rank 0 could not go on: {message}")]
    Elsewhere {
        /// What it says.
        message: String,
    },
    /// Reading or writing failed.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The operating system would not pass on signals.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// The key by which ranks know each other.
    #[error(transparent)]
    Key(#[from] launch::key::Error),
    /// The other ranks.
    #[error(transparent)]
    Ranks(#[from] c10d::Error),
    /// PyTorch.
    #[error("PyTorch: {}", first_line(.0))]
    Torch(#[from] tch::TchError),
    /// A promise between parts of this project was not kept.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The promise.
        promise: String,
    },
}

impl Error {
    /// The exit code of a program that ends with this.
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

/// What libtorch says goes on with a C++ stack trace, which tells a user nothing.
fn first_line(error: &tch::TchError) -> String {
    let text = error.to_string();
    text.split("\nException raised from").next().unwrap_or(&text).trim().to_owned()
}

/// The result of a part of a command.
pub type Result<T> = std::result::Result<T, Error>;

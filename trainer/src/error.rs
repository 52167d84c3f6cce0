//! Errors of the commands that use tensors, and their exit codes.

use std::io;
use std::path::PathBuf;

use program::exit::{Exit, Failed, Fails};
use program::limits::{is_exhausted, is_of_gpu};
use program::system::cause_and_remedy;
use thiserror::Error;
use training::start::Ends;

/// Why a command ends early.
#[derive(Debug, Error)]
pub enum Error {
    /// An error that needs no tensors.
    #[error(transparent)]
    Training(training::Error),
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
    /// Communication between ranks failed.
    #[error(transparent)]
    Ranks(#[from] c10d::Error),
    /// PyTorch failed. Its text, which is not a source, continues with frames of C++.
    #[error("PyTorch: {}", first_line(.0))]
    Torch(tch::TchError),
    /// The gradients of one text do not fit into the memory of a GPU.
    #[error(
        "one text of {longest} tokens does not fit into memory: {detail}; use a smaller --hidden or --embedding"
    )]
    OutOfMemory {
        /// Its number of tokens.
        longest: usize,
        /// The error of PyTorch.
        detail: String,
    },
}

/// Errors of other crates, as errors of a training.
macro_rules! errors_of_a_training {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Training(error.into())
            }
        }
    )*};
}

errors_of_a_training! {
    training::Error,
    training::answers::AnswersError,
    batches::Error,
    classifiers::Error,
    classifiers::files::Error,
    corpus::format::Misplaced,
    dataset::Error,
    embeddings::Error,
    Failed,
    launch::key::KeyError,
    store::mirror::MirrorError,
    program::place::NoFolder,
    runs::Error,
    scoring::Error,
    store::Error,
}

impl Error {
    pub(crate) fn internal(error: &impl std::fmt::Display) -> Self {
        training::Error::internal(error).into()
    }

    /// Whether an allocation of PyTorch failed, on a GPU or on the CPU.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Torch(error) if is_exhausted(&error.to_string()))
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Training(error) => error.exit(),
            Self::OutOfMemory { .. } => Exit::Settings,
            Self::Weights { .. } => Exit::MissingInput,
            Self::Torch(_) if self.is_out_of_memory() => Exit::Io,
            Self::Ranks(c10d::Error::Torch { detail, .. }) if is_exhausted(detail) => Exit::Io,
            Self::Ranks(error) if error.is_worth_retrying() => Exit::TryAgain,
            Self::Ranks(c10d::Error::Torch { .. }) | Self::Torch(_) => Exit::Internal,
            Self::Ranks(_) => Exit::Settings,
        }
    }
}

impl Ends for Error {
    fn is_closed_output(&self) -> bool {
        matches!(self, Self::Training(error) if error.is_closed_output())
    }
}

impl From<tch::TchError> for Error {
    fn from(error: tch::TchError) -> Self {
        Self::Torch(error)
    }
}

/// libtorch appends a C++ stack trace, which does not help users.
fn first_line(error: &tch::TchError) -> String {
    let text = error.to_string();
    // The text of its allocator on a CPU names a line of its source.
    if is_exhausted(&text) && !is_of_gpu(&text) {
        return cause_and_remedy(&io::ErrorKind::OutOfMemory.into());
    }
    text.split("\nException raised from").next().unwrap_or(&text).trim().to_owned()
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

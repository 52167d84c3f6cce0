//! Errors of commands, and their exit codes.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed, Fails};
use program::system::cause_and_remedy;
use thiserror::Error;

/// Name of standard output, used instead of a path.
pub const STANDARD_OUTPUT: &str = "standard output";

/// Why a command ends early.
#[derive(Debug, Error)]
pub enum Error {
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Batches could not be read.
    #[error(transparent)]
    Batches(#[from] batches::Error),
    /// An option applies only to another format of lines.
    #[error("{0}; see --help")]
    Misplaced(#[from] corpus::format::Misplaced),
    /// Metrics could not be computed.
    #[error(transparent)]
    Scoring(#[from] scoring::Error),
    /// An n-gram model could not be trained.
    #[error(transparent)]
    Ngrams(#[from] classifiers::Error),
    /// Texts for an n-gram model could not be read.
    #[error(transparent)]
    Texts(#[from] crate::texts::TextsError),
    /// An input could not be found or read.
    #[error(transparent)]
    Reading(#[from] reading::Error),
    /// The files of an n-gram model could not be read or written.
    #[error(transparent)]
    NgramFiles(#[from] classifiers::files::Error),
    /// Word vectors could not be trained, read, written or compared.
    #[error(transparent)]
    Embeddings(#[from] embeddings::Error),
    /// A parameter server, or the connection to one, failed.
    #[error(transparent)]
    Parameters(#[from] parameters::Error),
    /// An error that nothing handles.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// A training folder, a checkpoint or a saved model could not be written or read.
    #[error(transparent)]
    Runs(#[from] runs::Error),
    /// A folder in S3 could not be read or written.
    #[error(transparent)]
    Mirror(#[from] store::mirror::MirrorError),
    /// An object in S3 could not be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Lines could not be read or answered.
    #[error(transparent)]
    Answers(#[from] crate::answers::AnswersError),
    /// The parent folder of a result does not exist.
    #[error(transparent)]
    NoFolder(#[from] program::place::NoFolder),
    /// The training was interrupted by a signal, and a checkpoint was saved.
    #[error("interrupted; a checkpoint is in {}; resume with --resume", resume.display())]
    Interrupted {
        /// The folder of checkpoints.
        resume: PathBuf,
    },
    /// Reading or writing failed.
    #[error("{}: {}", path.display(), cause_and_remedy(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The handling of signals could not be set up.
    #[error("cannot handle signals: {}", cause_and_remedy(.0))]
    Signals(#[source] io::Error),
    /// The key that processes share could not be read.
    #[error(transparent)]
    Key(#[from] launch::key::KeyError),
}

impl Error {
    /// Whether the reader of standard output closed it, as `head` does. This error requires no message.
    pub fn is_closed_output(&self) -> bool {
        let closed = |source: &io::Error| source.kind() == io::ErrorKind::BrokenPipe;
        match self {
            Self::Answers(crate::answers::AnswersError::Write(source)) => closed(source),
            Self::Io { path, source } => path.as_os_str() == STANDARD_OUTPUT && closed(source),
            _ => false,
        }
    }

    /// A setting has an invalid value.
    pub fn setting(setting: &str, found: impl Display, expected: impl Display) -> Self {
        Failed::new(Exit::Settings, format!("{setting} is {found}, expected {expected}")).into()
    }

    /// A path or URL is not of the kind that the command requires.
    pub fn unexpected(place: impl Display, found: impl Display, expected: impl Display) -> Self {
        Failed::new(Exit::MissingInput, format!("{place}: {found}, expected {expected}")).into()
    }

    /// No model can be trained or evaluated on texts.
    pub fn useless_texts(input: impl Display, found: impl Display, remedy: &str) -> Self {
        Failed::new(Exit::BadInput, format!("{input}: {found}; {remedy}")).into()
    }

    /// Reading or writing a path failed.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// The error of a training that is resumed with another input, of `found` tokens, or other settings.
    pub fn other_input(path: &Path, found: u64, expected: u64) -> Self {
        // Equal numbers of tokens do not tell what differs.
        let what = match found == expected {
            true => "a checkpoint of another input or other settings".to_owned(),
            false => {
                format!("a checkpoint of another input, of {expected} tokens; found one of {found} tokens")
            }
        };
        let remedy = "pass the input and the flags of the interrupted training, or start again with --force";
        Failed::new(Exit::Settings, format!("{}: {what}; {remedy}", path.display())).into()
    }

    /// The error of a worker or rank whose vectors are not finite after a step, from 1.
    pub fn vectors_diverged(step: u64) -> Self {
        let message = format!(
            "step {step}: the training diverged: a vector is not finite; lower --rate, the --staleness of the servers or, \
             of skip-gram, --step-pairs, and start again with --force"
        );
        Failed::new(Exit::Settings, message).into()
    }

    /// The error of the same file as input and as validation texts.
    pub fn no_validation(place: &str) -> Self {
        let message = format!(
            "--validation {place}: is also trained on, expected other texts; split the file into two"
        );
        Failed::new(Exit::Usage, message).into()
    }

    /// A violated invariant.
    pub fn internal(error: &impl Display) -> Self {
        Failed::defect(error).into()
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Failed(error) => error.exit,
            Self::Misplaced(_) | Self::NoFolder(_) => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::Batches(error) => error.exit(),
            Self::Ngrams(error) => of_ngrams(error),
            Self::Texts(error) => error.exit(),
            Self::Reading(error) => error.exit(),
            Self::NgramFiles(error) => error.exit(),
            Self::Embeddings(error) => error.exit(),
            Self::Parameters(error) => error.exit(),
            Self::Scoring(error) => error.exit(),
            Self::Runs(error) => error.exit(),
            Self::Mirror(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Answers(error) => error.exit(),
            Self::Interrupted { .. } => Exit::TryAgain,
            Self::Io { .. } | Self::Signals(_) => Exit::Io,
            Self::Key(launch::key::KeyError::Unreadable { .. }) => Exit::MissingInput,
            Self::Key(_) => Exit::Settings,
        }
    }
}

fn of_ngrams(error: &classifiers::Error) -> Exit {
    use classifiers::Error;
    match error {
        Error::Read { .. } | Error::Spill { .. } | Error::WriteState { .. } | Error::ReadState { .. } => {
            Exit::Io
        }
        Error::LongLine { .. } | Error::TooManyLabels { .. } | Error::NoTexts { .. } => Exit::BadInput,
        _ => Exit::Settings,
    }
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_for_which_there_is_no_room_has_the_message_of_all_programs() {
        let full = || io::Error::from_raw_os_error(28);
        for error in [
            io::Error::other(embeddings::Error::WriteState { source: full() }),
            io::Error::other(classifiers::Error::WriteState { source: full() }),
        ] {
            let message = cause_and_remedy(&error);
            assert!(message.starts_with("disk full") && message.contains("; free space there"), "{message}");
        }
    }
}

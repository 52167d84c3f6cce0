//! Errors of the trainer's commands, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use program::limits::is_exhausted;
use program::system::cause_and_remedy;
use thiserror::Error;

/// Name of standard output, used instead of a path.
pub(crate) const STANDARD_OUTPUT: &str = "standard output";

/// Why a command ends early.
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
    /// An option applies only to another format of lines.
    #[error("{0}; see --help")]
    Misplaced(#[from] corpus::format::Misplaced),
    /// Metrics could not be computed.
    #[error(transparent)]
    Scoring(#[from] scoring::Error),
    /// The loss is not finite.
    #[error(
        "step {step}: the training diverged: the loss is not a finite number; lower --rate, or limit the gradients with \
         --clip"
    )]
    Diverged {
        /// The step, from 1.
        step: u64,
    },
    /// The vectors of a worker or rank are not finite.
    #[error(
        "step {step}: the training diverged: a vector is not finite; lower --rate, the --staleness of the servers or, of \
         skip-gram, --step-pairs, and start again with --force"
    )]
    VectorsDiverged {
        /// The step, from 1.
        step: u64,
    },
    /// The vectors of a training by one process are not finite, or too large for a file.
    #[error(
        "{at}: the training diverged: a vector is not finite; lower --rate, and start again with --force"
    )]
    Diverging {
        /// The epoch, if it is known, and the number of tokens.
        at: String,
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
    /// A path is not of the kind that the command requires.
    #[error("{}: {found}, expected {expected}", path.display())]
    Unexpected {
        /// The path.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected, and the remedy.
        expected: String,
    },
    /// An n-gram model could not be trained.
    #[error(transparent)]
    Ngrams(#[from] ngrams::Error),
    /// Texts for an n-gram model could not be read.
    #[error(transparent)]
    Texts(#[from] texts::Error),
    /// The files of an n-gram model could not be read or written.
    #[error(transparent)]
    NgramFiles(#[from] ngrams::files::Error),
    /// Word vectors could not be read, written or compared.
    #[error(transparent)]
    Embeddings(#[from] embeddings::Error),
    /// Texts that no model can be trained on.
    #[error("{input}: {found}; {remedy}")]
    UselessTexts {
        /// The input.
        input: String,
        /// What was found.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Word vectors could not be trained.
    #[error(transparent)]
    SkipGram(#[from] skipgram::Error),
    /// Vectors of words by their characters could not be trained.
    #[error(transparent)]
    Spelling(#[from] spelling::Error),
    /// A parameter server, or the connection to one, failed.
    #[error(transparent)]
    Parameters(#[from] parameters::Error),
    /// Parameter servers have tables of another program.
    #[error(
        "--async {servers}: the servers have other tables: {name} is table {number}, expected table {expected}; start them with new folders"
    )]
    OtherTables {
        /// The servers.
        servers: String,
        /// A table.
        name: String,
        /// Its number.
        number: u32,
        /// The expected number.
        expected: u32,
    },
    /// A training is resumed with another input or other settings.
    #[error(
        "{}: {}; pass the input and the flags of the interrupted training, or start again with --force",
        path.display(),
        other_input(*found, *expected)
    )]
    OtherInput {
        /// The checkpoint.
        path: PathBuf,
        /// Tokens of the input.
        found: u64,
        /// Tokens of the interrupted training's input.
        expected: u64,
    },
    /// The format of lines is invalid.
    #[error("{message}")]
    Refused {
        /// The exit code.
        exit: Exit,
        /// The message.
        message: String,
    },
    /// A flag has no effect with a model of this family.
    #[error("{flag} has no effect with the model {model}, expected {expected}; omit {flag}")]
    OtherFamily {
        /// The flag.
        flag: String,
        /// The model as passed.
        model: String,
        /// The models with which the flag has an effect.
        expected: &'static str,
    },
    /// Two models were passed to a command that takes one.
    #[error(
        "found two models, {model} and {other}, expected one model and files of lines; omit one of the models"
    )]
    TwoModels {
        /// The first one.
        model: String,
        /// The second one, in the place of a file.
        other: String,
    },
    /// A saved model cannot classify rows, because it predicts next words.
    #[error(
        "{}: a next-word model, expected a classifier; train one with `trainer fit DATASET --init-from {}`",
        path.display(),
        path.display()
    )]
    NoClassifier {
        /// Folder of the model.
        path: PathBuf,
    },
    /// Word vectors cannot classify rows.
    #[error(
        "{}: word vectors, expected a classifier; train one with `trainer fit DATASET --init-from {}`, or use `trainer vectors`",
        path.display(),
        path.display()
    )]
    OfWords {
        /// Folder of the word vectors.
        path: PathBuf,
    },
    /// A training folder, a checkpoint or a saved model could not be written or read.
    #[error(transparent)]
    Runs(#[from] runs::Error),
    /// A folder in S3 could not be read or written.
    #[error(transparent)]
    Mirror(#[from] mirror::Error),
    /// An object in S3 could not be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A dataset in S3 was fetched and cannot be used.
    #[error("{url}, fetched as {found}")]
    Fetched {
        /// Its URL.
        url: String,
        /// The error that names the local copy.
        found: Box<Error>,
    },
    /// The training could not be put into S3.
    #[error(
        "{found}; {} has all files of the training: repeat the command with --resume on this machine",
        folder.display()
    )]
    NotStored {
        /// The local folder.
        folder: PathBuf,
        /// The error of the store.
        found: mirror::Error,
    },
    /// Lines could not be read or predicted.
    #[error(transparent)]
    Predict(#[from] crate::predict::Error),
    /// The parent folder of a result does not exist.
    #[error(transparent)]
    NoFolder(#[from] program::place::NoFolder),
    /// Word vectors have no word of the vocabulary.
    #[error("{}: --init-from has no vector for any word of the dataset; check that they are of the same language", path.display())]
    NoVectors {
        /// The file.
        path: PathBuf,
    },
    /// The training in the folder is complete and has other settings than those passed.
    #[error(
        "{}: found a complete training with {what} {found}, expected {expected}; choose another --out, and start from its \
         weights with --init-from {}", path.display(), model.display()
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
    /// The training was interrupted by a signal, and a checkpoint was saved.
    #[error("interrupted; a checkpoint is in {}; resume with --resume", resume.display())]
    Interrupted {
        /// The folder of checkpoints.
        resume: PathBuf,
    },
    /// A linear training was interrupted by a signal. It has no checkpoints.
    #[error("interrupted; a linear training has no checkpoints: --resume starts it again")]
    InterruptedLinear,
    /// A worker of a served training was interrupted by a signal.
    #[error(
        "interrupted after step {step}; the servers have its updates: repeat the command, that of worker 0 with --resume"
    )]
    WorkerInterrupted {
        /// Number of its completed steps.
        step: u64,
    },
    /// A worker of a served training was removed.
    #[error(
        "worker {worker} was removed because it was silent for too long; the others have continued without it: \
         let them end, or start a training in new folders"
    )]
    WorkerRemoved {
        /// The worker.
        worker: u32,
    },
    /// A search was interrupted by a signal. Its best settings were printed.
    #[error("interrupted after {}; the printed settings are the best of them", n_of(*n_trials))]
    SearchInterrupted {
        /// Number of trials that ended.
        n_trials: usize,
    },
    /// A search was interrupted before a trial ended.
    #[error("interrupted before a trial ended; run the command again")]
    NothingFound,
    /// The validation texts are those of the training.
    #[error("--validation {place}: is also trained on, expected other texts; split the file into two")]
    NoValidation {
        /// The file.
        place: String,
    },
    /// Ranks were started with different inputs or flags.
    #[error(
        "rank {other} has other texts or settings than rank {rank}; start all ranks with the same input and flags"
    )]
    OtherRank {
        /// This rank.
        rank: usize,
        /// The other rank.
        other: usize,
    },
    /// A message that no rank of this program sends.
    #[error("a rank sent an invalid message; start all ranks with the same program")]
    RankMessage,
    /// Rank 0 failed, so this rank stops.
    #[error("rank 0 failed: {message}")]
    Elsewhere {
        /// Its error message.
        message: String,
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
    /// The ranks' key could not be read.
    #[error(transparent)]
    Key(#[from] launch::key::Error),
    /// Communication between ranks failed.
    #[error(transparent)]
    Ranks(#[from] c10d::Error),
    /// PyTorch failed. Its text, which is not a source, continues with frames of C++.
    #[error("PyTorch: {}", first_line(.0))]
    Torch(tch::TchError),
    /// The limit of memory is too low for libtorch.
    #[error(
        "PyTorch: found a limit of {limit} bytes of memory, expected at least {needs}; raise it with ulimit -v"
    )]
    TorchMemory {
        /// The limit.
        limit: u64,
        /// The required memory.
        needs: u64,
    },
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
    /// The executable with libtorch could not be started.
    #[error("{}: cannot be started, expected the executable that is installed with trainer; copy it into the same folder", path.display())]
    NoTorch {
        /// The executable.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
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
            Self::Misplaced(_)
            | Self::NoFolder(_)
            | Self::OtherFamily { .. }
            | Self::TwoModels { .. }
            | Self::NoValidation { .. } => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::Batches(error) => error.exit(),
            Self::Setting { .. }
            | Self::OtherRank { .. }
            | Self::RankMessage
            | Self::Diverged { .. }
            | Self::VectorsDiverged { .. }
            | Self::Diverging { .. }
            | Self::OutOfMemory { .. } => Exit::Settings,
            Self::Ngrams(error) => of_ngrams(error),
            Self::Texts(error) => error.exit(),
            Self::NgramFiles(error) => error.exit(),
            Self::SkipGram(skipgram::Error::Memory { .. })
            | Self::OtherInput { .. }
            | Self::OtherTables { .. } => Exit::Settings,
            Self::SkipGram(_) | Self::Spelling(_) => Exit::Io,
            Self::Embeddings(error) => error.exit(),
            Self::Parameters(error) => error.exit(),
            Self::UselessTexts { .. } => Exit::BadInput,
            Self::Refused { exit, .. } => *exit,
            Self::Scoring(error) => error.exit(),
            Self::Runs(error) => error.exit(),
            Self::Mirror(error) | Self::NotStored { found: error, .. } => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Fetched { found, .. } => found.exit(),
            Self::Predict(error) => error.exit(),
            Self::NoTorch { source, .. } if is_exhausted(&source.to_string()) => Exit::Io,
            Self::Weights { .. } | Self::Unexpected { .. } | Self::NoTorch { .. } => Exit::MissingInput,
            Self::NoClassifier { .. }
            | Self::OfWords { .. }
            | Self::Finished { .. }
            | Self::WorkerRemoved { .. } => Exit::Settings,
            Self::NoVectors { .. } => Exit::BadInput,
            Self::Elsewhere { .. }
            | Self::Interrupted { .. }
            | Self::InterruptedLinear
            | Self::WorkerInterrupted { .. }
            | Self::SearchInterrupted { .. }
            | Self::NothingFound => Exit::TryAgain,
            Self::Io { .. } | Self::Signals(_) | Self::TorchMemory { .. } => Exit::Io,
            Self::Torch(error) if is_exhausted(&error.to_string()) => Exit::Io,
            Self::Key(launch::key::Error::Unreadable { .. }) => Exit::MissingInput,
            Self::Key(_) => Exit::Settings,
            Self::Ranks(error) if error.is_worth_retrying() => Exit::TryAgain,
            Self::Ranks(c10d::Error::Torch { .. }) | Self::Torch(_) | Self::Internal { .. } => Exit::Internal,
            Self::Ranks(_) => Exit::Settings,
        }
    }

    /// Whether the reader of standard output closed it, as `head` does. This error requires no message.
    pub fn is_closed_output(&self) -> bool {
        let closed = |source: &io::Error| source.kind() == io::ErrorKind::BrokenPipe;
        match self {
            Self::Predict(crate::predict::Error::Write(source)) => closed(source),
            Self::Io { path, source } => path.as_os_str() == STANDARD_OUTPUT && closed(source),
            _ => false,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn internal(error: &impl std::fmt::Display) -> Self {
        Self::Internal { promise: error.to_string() }
    }
}

impl From<tch::TchError> for Error {
    fn from(error: tch::TchError) -> Self {
        Self::Torch(error)
    }
}

fn of_ngrams(error: &ngrams::Error) -> Exit {
    use ngrams::Error;
    match error {
        Error::Read { .. } | Error::Spill { .. } | Error::WriteState { .. } | Error::ReadState { .. } => {
            Exit::Io
        }
        Error::LongLine { .. } | Error::TooManyLabels { .. } | Error::NoTexts { .. } => Exit::BadInput,
        _ => Exit::Settings,
    }
}

/// Equal numbers of tokens do not tell what differs.
fn other_input(found: u64, expected: u64) -> String {
    match found == expected {
        true => "a checkpoint of another input or other settings".to_owned(),
        false => format!("a checkpoint of another input, of {expected} tokens; found one of {found} tokens"),
    }
}

fn n_of(n_trials: usize) -> String {
    if n_trials == 1 { "1 trial".to_owned() } else { format!("{n_trials} trials") }
}

/// libtorch appends a C++ stack trace, which does not help users.
fn first_line(error: &tch::TchError) -> String {
    let text = error.to_string();
    // The text of its allocator on a CPU names a line of its source.
    if is_exhausted(&text) && !text.contains("CUDA") {
        return cause_and_remedy(&io::ErrorKind::OutOfMemory.into());
    }
    text.split("\nException raised from").next().unwrap_or(&text).trim().to_owned()
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

//! Errors of this crate, and their exit codes.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use program::system::Failure;
use thiserror::Error;

/// Why a server or a client failed.
#[derive(Debug, Error)]
pub enum Error {
    /// A file of a snapshot could not be read or written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// A file or folder could not be read or written.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "choose another path"))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file of the folder is damaged.
    #[error("{}: {found} at byte {at}, expected {expected}; restore the folder from a copy, or start in a new one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The place.
        at: u64,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Another process uses the folder.
    #[error("{}: another server uses the folder; stop it, or choose another --folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has files of something else.
    #[error("{}: found {found}, expected the files of a parameter server or an empty folder; choose another --folder", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// A name in it.
        found: String,
    },
    /// The folder belongs to a server with other settings.
    #[error("{}: its server has {what} {found}, expected {expected}; pass the flags of that server, or choose another --folder", path.display())]
    OtherSettings {
        /// The file.
        path: PathBuf,
        /// The setting.
        what: &'static str,
        /// Its value in the file.
        found: String,
        /// Its value now.
        expected: String,
    },
    /// The servers of a training have different settings.
    #[error(
        "{server}: its --staleness is {found}, expected {expected}, as that of {first}; start all servers with the same"
    )]
    OtherStaleness {
        /// The server.
        server: String,
        /// Its bound.
        found: String,
        /// The first server.
        first: String,
        /// The bound of the first server.
        expected: String,
    },
    /// The tables in the folder need more memory than the server may take.
    #[error("{}: its tables need {needs} bytes, but --memory is {max}; raise it, or choose another --folder", path.display())]
    Memory {
        /// The folder.
        path: PathBuf,
        /// Bytes of the tables.
        needs: usize,
        /// Bytes of `--memory`.
        max: usize,
    },
    /// A server would be reachable from other machines without authentication.
    #[error(
        "--listen {address}: is reachable from other machines, expected 127.0.0.1; or pass --token-file, or \
         --tls-certificate, --tls-key and --tls-ca"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be used.
    #[error(
        "--listen {address}: cannot listen; check that the address is of this machine and the port is free"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A certificate or a key cannot be used.
    #[error("{}: {found}, expected {expected}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The name of a server is invalid.
    #[error("{server}: is no address of a server, expected HOST:PORT")]
    Address {
        /// The name.
        server: String,
    },
    /// A server did not answer in time.
    #[error(
        "{server}: the parameter server has not answered for {waited_s} s: {cause}; start it or check the \
         address, and repeat the command"
    )]
    Unreachable {
        /// The server.
        server: String,
        /// Time of all attempts.
        waited_s: u64,
        /// The error of the last attempt.
        cause: String,
    },
    /// Another worker is too far behind.
    #[error(
        "{server}: waited {waited_s} s for a step of worker {slowest}; start it, and repeat the command, that of worker 0 \
         with --resume"
    )]
    Behind {
        /// The server.
        server: String,
        /// Time of the wait.
        waited_s: u64,
        /// The slowest worker.
        slowest: u32,
    },
    /// The process was asked to stop while it waited.
    #[error(
        "interrupted while it waited for a parameter server or another worker; repeat the command, that of worker 0 with \
         --resume"
    )]
    Interrupted,
    /// A server refused a request.
    #[error("{server}: the parameter server refused: {message}")]
    Refused {
        /// The server.
        server: String,
        /// Its message.
        message: String,
    },
    /// A server replied with something else than was asked for.
    #[error("{server}: replied with {found}, expected {expected}; use one release of sentimill everywhere")]
    Reply {
        /// The server.
        server: String,
        /// The reply.
        found: String,
        /// The expected reply.
        expected: String,
    },
    /// A rank sent updates that do not fit the tables.
    #[error("invalid updates of a rank: {message}; start all ranks with the same program and flags")]
    Rank {
        /// Why they are invalid.
        message: String,
    },
    /// A rank sent values that are not finite.
    #[error("a rank sent values that are not finite; lower the learning rate")]
    NotFinite,
    /// A saved replica is damaged, or of other tables.
    #[error("the saved rows are damaged or of other tables; use an older checkpoint, or start again")]
    Replica(#[source] io::Error),
    /// A thread or runtime could not be started.
    #[error("cannot start threads")]
    Threads(#[source] io::Error),
    /// An internal invariant is violated; this is a defect.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The violated invariant.
        promise: String,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::File(error) => error.exit(),
            Self::Io { .. } | Self::Listen { .. } | Self::Threads(_) => Exit::Io,
            Self::Damaged { .. } | Self::Replica(_) => Exit::MissingInput,
            Self::Locked { .. } | Self::Occupied { .. } | Self::Open { .. } | Self::Address { .. } => {
                Exit::Usage
            }
            Self::OtherSettings { .. }
            | Self::OtherStaleness { .. }
            | Self::Memory { .. }
            | Self::Certificate { .. }
            | Self::Refused { .. }
            | Self::NotFinite => Exit::Settings,
            Self::Unreachable { .. } => Exit::Unavailable,
            Self::Behind { .. } | Self::Interrupted => Exit::TryAgain,
            Self::Reply { .. } | Self::Rank { .. } | Self::Internal { .. } => Exit::Internal,
        }
    }

    pub(crate) fn internal(error: &impl std::fmt::Display) -> Self {
        Self::Internal { promise: error.to_string() }
    }
}

/// Adds the path and the failed action to errors of the operating system.
pub(crate) trait At<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), action, source })
    }
}

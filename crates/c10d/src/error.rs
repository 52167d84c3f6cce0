//! Errors of communication between ranks, and whether a restart can help.

use std::time::Duration;

use program::exit::Failed;
use tch::TchError;

/// A result of this crate.
///
/// ```
/// fn port(launch: &c10d::Launch) -> c10d::Result<u16> {
///     let store = c10d::TcpStore::from_launch(launch, std::time::Duration::from_secs(10))?;
///     Ok(store.port())
/// }
/// assert!(port(&c10d::Launch::alone())? > 0);
/// # Ok::<(), c10d::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a call.
///
/// ```
/// let unset = c10d::Error::from(c10d::Launch::from_variables(|_| None).unwrap_err());
/// assert!(!unset.is_worth_retrying());
/// assert_eq!(
///     unset.to_string(),
///     "RANK is not set: start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An environment variable is missing or invalid.
    #[error("{detail}")]
    Environment {
        /// The variable, its value and the remedy.
        detail: String,
    },
    /// Another rank has died or does not respond. The group is unusable.
    #[error("{call}: {loss}")]
    PeerLost {
        /// The failed call.
        call: String,
        /// The lost rank and the cause.
        loss: Loss,
    },
    /// The call timed out, but every watched rank is alive.
    #[error(
        "{call}: timed out after {limit_s} s, but every watched rank is alive; check that all ranks make the same calls in the same order ({detail})"
    )]
    TimedOut {
        /// The failed call.
        call: String,
        /// The group's time limit.
        limit_s: u64,
        /// PyTorch's message.
        detail: String,
    },
    /// The ranks did not find each other.
    #[error("{detail}")]
    Rendezvous {
        /// The missing ranks, or the service that did not respond.
        detail: String,
    },
    /// The store did not respond, or refused the call.
    #[error("store {store}: {call}: {detail}")]
    Store {
        /// Address of the store.
        store: String,
        /// The failed call.
        call: String,
        /// PyTorch's message.
        detail: String,
    },
    /// Invalid arguments. Nothing was sent, and the group remains usable.
    #[error("{call}: {detail}")]
    Invalid {
        /// The call.
        call: String,
        /// What is wrong.
        detail: String,
    },
    /// The communication failed, and no watched rank is the cause.
    #[error("{call}: {detail}")]
    Communication {
        /// The failed call.
        call: String,
        /// PyTorch's message.
        detail: String,
    },
    /// The loaded libtorch is not the version that this crate was compiled for.
    #[error(
        "libtorch {loaded} is loaded, but this program requires {compiled}; install PyTorch {compiled}, or rebuild with the installed version"
    )]
    Version {
        /// Version of the headers.
        compiled: String,
        /// Version of the library.
        loaded: String,
    },
    /// CUDA or the NCCL part is unavailable.
    #[error("CUDA: {detail}")]
    Cuda {
        /// The missing component and how to install it.
        detail: String,
    },
    /// An error of PyTorch that is unrelated to other ranks.
    #[error("{call}: {detail}")]
    Torch {
        /// The failed call.
        call: String,
        /// PyTorch's message.
        detail: String,
    },
}

impl From<Failed> for Error {
    fn from(error: Failed) -> Self {
        Self::Environment { detail: error.message }
    }
}

impl Error {
    /// Whether a restart of all ranks can succeed: another rank or the network failed, and this rank's arguments are
    /// valid.
    ///
    /// ```
    /// use c10d::{Backend, Launch, Options, ProcessGroup};
    /// let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Gloo, &Options::default())?;
    /// let nobody = group.broadcast(&mut tch::Tensor::from_slice(&[1i64]), 7).unwrap_err();
    /// assert!(!nobody.is_worth_retrying());
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn is_worth_retrying(&self) -> bool {
        matches!(
            self,
            Self::PeerLost { .. }
                | Self::TimedOut { .. }
                | Self::Rendezvous { .. }
                | Self::Store { .. }
                | Self::Communication { .. }
        )
    }

    /// The lost rank, if known.
    ///
    /// ```
    /// use c10d::{Cause, Error, Loss};
    /// let loss = Loss { rank: 2, name: "worker-7, process 4711".to_owned(), cause: Cause::Ended };
    /// let error = Error::PeerLost { call: "all_reduce".to_owned(), loss };
    /// assert_eq!(error.lost_rank(), Some(2));
    /// ```
    pub fn lost_rank(&self) -> Option<usize> {
        match self {
            Self::PeerLost { loss, .. } => Some(loss.rank),
            _ => None,
        }
    }

    pub(crate) fn torch(call: &str, error: &TchError) -> Self {
        // libtorch appends a C++ stack trace, which does not help users.
        let text = error.to_string();
        let detail = text.split("\nException raised from").next().unwrap_or(&text).trim().to_owned();
        Self::Torch { call: call.to_owned(), detail }
    }
}

/// A rank that the group lost.
///
/// ```
/// use c10d::{Cause, Loss};
/// let loss = Loss { rank: 2, name: "worker-7, process 4711".to_owned(), cause: Cause::Ended };
/// assert_eq!(loss.to_string(), "rank 2 (worker-7, process 4711) has died: its connection closed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rank's number.
    pub rank: usize,
    /// Its host and process, as sent when it joined; empty if it had not joined.
    pub name: String,
    /// The cause.
    pub cause: Cause,
}

/// Why a rank was lost.
///
/// ```
/// use c10d::{Cause, Loss};
/// let cause = Cause::Silent(std::time::Duration::from_secs(5));
/// assert_eq!(
///     Loss { rank: 0, name: "worker-3, process 12".to_owned(), cause }.to_string(),
///     "rank 0 (worker-3, process 12) has been silent for 5 s: it is stopped, or its machine is unreachable"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its connection closed: the process died or was killed.
    Ended,
    /// It sent nothing for this long: the process is stopped, or its machine is unreachable.
    Silent(Duration),
    /// It left the group normally while this rank still needed it.
    Left,
    /// A connection failed, every watched rank is alive, and this is the only unwatched rank.
    Unwatched,
    /// It left the group after one of its calls had failed for another reason than a lost rank.
    GaveUp,
    /// It is the leader of the watch, but the mutual verification of keys between the leader and this rank
    /// failed.
    Unwelcome,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        match self.cause {
            Cause::Ended => write!(f, " has died: its connection closed"),
            Cause::Silent(limit) => write!(
                f,
                " has been silent for {} s: it is stopped, or its machine is unreachable",
                limit.as_secs_f64()
            ),
            Cause::Left => write!(f, " has left the group"),
            Cause::GaveUp => write!(f, " has left the group after an error"),
            Cause::Unwelcome => write!(
                f,
                " leads the watch, and the connection closed before the key was verified; set the same key on all \
                 ranks, unless this rank has died"
            ),
            Cause::Unwatched => {
                write!(f, " has died: a connection failed, and it is the only unwatched rank")
            }
        }
    }
}

//! What can go wrong between ranks, and whether starting again may help.

use std::time::Duration;

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

/// Why a call failed.
///
/// ```
/// let unset = c10d::Launch::from_variables(|_| None).unwrap_err();
/// assert!(!unset.is_worth_retrying());
/// assert_eq!(
///     unset.to_string(),
///     "RANK is not set: start the program by torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A variable of the environment is missing or is no number.
    #[error("{name} is {found}: {remedy}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// What it is.
        found: String,
        /// What to do.
        remedy: String,
    },
    /// Another rank is gone or silent. No call on this group works any more.
    #[error("{call}: {loss}")]
    PeerLost {
        /// The call that this process was in.
        call: String,
        /// Which rank, and how it was lost.
        loss: Loss,
    },
    /// Time ran out, and every rank that is watched is alive.
    #[error(
        "{call}: no end within {limit_s} s, although every watched rank is alive; do all ranks make the same calls in the same order? ({detail})"
    )]
    TimedOut {
        /// The call that this process was in.
        call: String,
        /// The group's time limit.
        limit_s: u64,
        /// What PyTorch said.
        detail: String,
    },
    /// The ranks did not find each other.
    #[error("{detail}")]
    Rendezvous {
        /// Who is missing or what did not answer.
        detail: String,
    },
    /// The store did not answer, or said no.
    #[error("store {store}: {call}: {detail}")]
    Store {
        /// Its address.
        store: String,
        /// The call.
        call: String,
        /// What PyTorch said.
        detail: String,
    },
    /// The arguments do not fit; nothing was sent, and the group lives on.
    #[error("{call}: {detail}")]
    Invalid {
        /// The call.
        call: String,
        /// What is wrong.
        detail: String,
    },
    /// The communication failed for a reason that no watched rank explains.
    #[error("{call}: {detail}")]
    Communication {
        /// The call.
        call: String,
        /// What PyTorch said.
        detail: String,
    },
    /// The loaded libtorch is not the one this crate was compiled for.
    #[error(
        "libtorch {loaded} is loaded, and this program was compiled for {compiled}: install that one, or build again against this"
    )]
    Version {
        /// The version of the headers.
        compiled: String,
        /// The version of the library.
        loaded: String,
    },
    /// CUDA or its NCCL part cannot be had.
    #[error("CUDA: {detail}")]
    Cuda {
        /// What is missing, and how to have it.
        detail: String,
    },
    /// An error of tch that has nothing to do with other ranks.
    #[error("{call}: {detail}")]
    Torch {
        /// The call.
        call: String,
        /// What tch said.
        detail: String,
    },
}

impl Error {
    /// Whether the same program may succeed when all ranks start again: another rank or the network failed, and not
    /// this rank's arguments.
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

    /// The rank that was lost, where it is known.
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
        // libtorch's text goes on with a C++ stack trace, which tells a user nothing.
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
/// assert_eq!(loss.to_string(), "rank 2 (worker-7, process 4711) has died: its connection ended");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Which.
    pub rank: usize,
    /// Its host and process, as it said when it joined; empty where it had not.
    pub name: String,
    /// How.
    pub cause: Cause,
}

/// How a rank was lost.
///
/// ```
/// use c10d::{Cause, Loss};
/// let cause = Cause::Silent(std::time::Duration::from_secs(5));
/// assert_eq!(
///     Loss { rank: 0, name: "worker-3, process 12".to_owned(), cause }.to_string(),
///     "rank 0 (worker-3, process 12) has been silent for 5 s: it is stopped, or its machine cannot be reached"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its connection ended: the process died or was killed.
    Ended,
    /// It has said nothing for this long: the process is stopped, or its machine cannot be reached.
    Silent(Duration),
    /// It left the group in good order, while this rank still needed it.
    Left,
    /// It is the one rank that is not watched, every other is alive, and a connection failed.
    Unwatched,
    /// A call failed on it for another reason than a lost rank, and it dropped the group.
    GaveUp,
    /// It watches the others, and this rank and it did not show each other the same key.
    Unwelcome,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        match self.cause {
            Cause::Ended => write!(f, " has died: its connection ended"),
            Cause::Silent(limit) => write!(
                f,
                " has been silent for {} s: it is stopped, or its machine cannot be reached",
                limit.as_secs_f64()
            ),
            Cause::Left => write!(f, " has left the group"),
            Cause::GaveUp => write!(f, " has given up after an error of its own"),
            Cause::Unwelcome => write!(
                f,
                " watches the others, and ended the connection before both had shown the same key: give all ranks \
                 one key, unless it has died"
            ),
            Cause::Unwatched => {
                write!(f, " has died: a connection failed, and it is the only rank that runs no watch")
            }
        }
    }
}

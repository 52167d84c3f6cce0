//! Records of a run that belong to its job, and the errors of a submission.

use program::exit::{Exit, Fails};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Key, Recorded, Store};

use crate::client::Failure;
use crate::job::JobRecord;

/// Maximum size of a record.
pub(super) const RECORD_BYTES_MAX: u64 = 1 << 20;
/// The record that binds a run to a job.
pub(crate) const JOB: &str = "job.json";

/// Why a job was not submitted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to EMR failed.
    #[error(transparent)]
    Emr(#[from] Failure),
    /// The store of the run failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The run belongs to another job.
    #[error(
        "{object}: the run belongs to another job, whose {field} is {found}, expected {expected}; choose another run in the job file"
    )]
    OtherJob {
        /// The URL of the record.
        object: String,
        /// The field that differs.
        field: String,
        /// Its value in the record.
        found: String,
        /// Its value by the job file.
        expected: String,
    },
    /// A record cannot be parsed.
    #[error(
        "{object}: found a record that emr did not write, expected JSON of its version; choose another run"
    )]
    BadRecord {
        /// Its URL.
        object: String,
    },
    /// Ctrl-C before the job was submitted.
    #[error("interrupted before the job was submitted; no cluster was created by this command")]
    Interrupted,
    /// The response to a request that creates something was lost, and its result was not found.
    #[error(
        "{found}; it is unknown whether {what}: run the command again, which searches for it; emr list shows clusters"
    )]
    Unknown {
        /// What ended the search.
        found: String,
        /// What the request may have done.
        what: &'static str,
        /// The exit code of that end.
        exit: Exit,
    },
    /// The requests failed without a cause.
    #[error("the requests to EMR led to nothing; run the command again")]
    NoAttempts,
    /// Too many attempts.
    #[error("{run}: {limit} attempts to start the job, expected fewer; choose another run")]
    TooManyAttempts {
        /// The URL of the run.
        run: String,
        /// The limit.
        limit: u32,
    },
}

impl Error {
    /// The error of a search for what a request has created.
    pub(super) fn unknown(error: &Self, what: &'static str) -> Self {
        let found = match error {
            Self::Interrupted => "interrupted".to_owned(),
            other => other.to_string(),
        };
        Self::Unknown { found, what, exit: error.exit() }
    }

    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unknown { exit, .. } => *exit,
            Self::Emr(failure) => failure.exit(),
            Self::Store(error) => error.exit(),
            Self::OtherJob { .. } => Exit::Settings,
            Self::BadRecord { .. } => Exit::BadInput,
            Self::Interrupted | Self::NoAttempts => Exit::TryAgain,
            Self::TooManyAttempts { .. } => Exit::Usage,
        }
    }
}

/// Binds a run to a job. A run that is bound to another job is refused.
pub fn enroll(store: &Store, job: &JobRecord) -> Result<(), Error> {
    let key = Key::new(JOB)?;
    let Recorded::Other(bytes) = store.put_record(&key, &job.to_bytes(), RECORD_BYTES_MAX)? else {
        return Ok(());
    };
    let object = format!("{}/{key}", store.url());
    let found: JobRecord =
        serde_json::from_slice(&bytes).map_err(|_| Error::BadRecord { object: object.clone() })?;
    match job.difference(&found) {
        Some((field, expected, found)) => Err(Error::OtherJob { object, field, found, expected }),
        None => Ok(()),
    }
}

/// Reads a record, if it exists.
pub(crate) fn read<T: DeserializeOwned>(store: &Store, key: &Key) -> Result<Option<T>, Error> {
    let Some(bytes) = store.get_small(key, RECORD_BYTES_MAX)? else { return Ok(None) };
    let record = serde_json::from_slice(&bytes);
    record.map(Some).map_err(|_| Error::BadRecord { object: format!("{}/{key}", store.url()) })
}

pub(crate) fn to_bytes(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(record).expect("records have text keys and finite numbers");
    bytes.push(b'\n');
    bytes
}

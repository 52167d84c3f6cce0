//! Records of a run that belong to its job.

use program::exit::Exit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Key, Recorded, Store};

use crate::Error;
use crate::job::JobRecord;

/// Maximum size of a record.
pub(super) const RECORD_BYTES_MAX: u64 = 1 << 20;
/// The record that binds a run to a job.
pub(crate) const JOB: &str = "job.json";

/// Binds a run to a job. A run that is bound to another job is refused.
pub fn enroll(store: &Store, job: &JobRecord) -> Result<(), Error> {
    let key = Key::new(JOB)?;
    let Recorded::Other(bytes) = store.put_record(&key, &job.to_bytes(), RECORD_BYTES_MAX)? else {
        return Ok(());
    };
    let object = format!("{}/{key}", store.url());
    let found: JobRecord = serde_json::from_slice(&bytes).map_err(|_| bad_record(&object))?;
    match job.difference(&found) {
        Some((field, expected, found)) => Err(Error::new(
            Exit::Settings,
            format!(
                "{object}: the run belongs to another job, whose {field} is {found}, expected {expected}; choose another \
                 run in the job file"
            ),
        )),
        None => Ok(()),
    }
}

/// Reads a record, if it exists.
pub(crate) fn read<T: DeserializeOwned>(store: &Store, key: &Key) -> Result<Option<T>, Error> {
    let Some(bytes) = store.get_small(key, RECORD_BYTES_MAX)? else { return Ok(None) };
    let record = serde_json::from_slice(&bytes);
    record.map(Some).map_err(|_| bad_record(&format!("{}/{key}", store.url())))
}

fn bad_record(object: &str) -> Error {
    let message = format!(
        "{object}: found a record that emr did not write, expected JSON of its version; choose another run"
    );
    Error::new(Exit::BadInput, message)
}

pub(crate) fn to_bytes(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(record).expect("records have text keys and finite numbers");
    bytes.push(b'\n');
    bytes
}

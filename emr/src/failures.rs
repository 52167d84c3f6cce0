//! What a run that failed on Hadoop or on this machine leaves in its folder: `job/failed-N.log` with the output of the
//! program or of Hadoop's job client, `job/failed-N.tasks.log` with the logs of the failed tasks, and the record
//! `job/failed-N.json`. `emr status`, `emr logs` and `emr diagnose` read the last failure.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use program::exit::Exit;
use serde::{Deserialize, Serialize, Serializer};
use store::{Key, Listed, ObjectContent, Put, S3Options, Store};

use crate::Error;
use crate::job::Place;
use crate::logs::{Listing, list, utc};

const PREFIX: &str = "job/failed-";
/// Version of the record.
const SCHEMA_VERSION: u32 = 1;
/// Maximum number of failures of a run.
const FAILURES_MAX: u32 = 1000;

/// The content of `job/failed-N.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    schema_version: u32,
    /// The runner.
    pub runner: String,
    /// The exit code of the command.
    pub exit_code: u8,
    /// Its message, without secrets.
    pub message: String,
    /// The machine of the command.
    pub host: String,
    /// The application of YARN, if one was started.
    pub application: Option<String>,
}

impl Record {
    /// The record of a failure on this machine.
    pub fn new(runner: &str, exit_code: u8, message: &str, application: Option<String>) -> Self {
        let host = hostname::get().unwrap_or_default().to_string_lossy().into_owned();
        let (runner, message) = (runner.to_owned(), crate::secrets::without_secrets(message));
        Self { schema_version: SCHEMA_VERSION, runner, exit_code, message, host, application }
    }
}

/// The number of a failure.
#[derive(Clone, Copy, Debug)]
pub struct Number(u32);

impl Number {
    /// Keeps the log of a failure under the next number.
    pub fn keep(store: &Store, log: &Path) -> Result<Option<Self>, store::Error> {
        for number in (1..=FAILURES_MAX).map(Number) {
            if number.put(store, "log", ObjectContent::File(log))? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Keeps another file of the failure.
    pub fn put(self, store: &Store, suffix: &str, content: ObjectContent<'_>) -> Result<bool, store::Error> {
        let put = store.put_if_absent(&Key::new(&self.name(suffix))?, content)?;
        Ok(matches!(put, Put::Stored(_)))
    }

    /// Its name in the run: `job/failed-1.log`.
    pub fn name(self, suffix: &str) -> String {
        format!("{PREFIX}{}.{suffix}", self.0)
    }

    /// Puts the record.
    pub fn record(self, store: &Store, record: &Record) -> Result<(), store::Error> {
        let bytes = crate::submission::to_bytes(record);
        self.put(store, "json", ObjectContent::Bytes(&bytes)).map(drop)
    }
}

/// The last failure of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunFailure {
    /// What is known of it; `None` if its command was killed, or was of an earlier version.
    #[serde(flatten)]
    pub record: Option<Record>,
    /// When it ended, by the clock of the store.
    #[serde(rename = "ended_unix_s", serialize_with = "unix_s")]
    pub ended: SystemTime,
    /// The names of its logs in the run.
    pub logs: Vec<String>,
}

impl RunFailure {
    /// `--runner hadoop failed on ip-10-0-3-9 at 2026-11-28 15:01:35 UTC with exit code 65`
    pub fn text(&self) -> String {
        let ended = utc(self.ended);
        match &self.record {
            Some(Record { runner, host, exit_code, .. }) => {
                let how = if *exit_code == Exit::TryAgain as u8 { "stopped" } else { "failed" };
                format!("--runner {runner} {how} on {host} at {ended} UTC with exit code {exit_code}")
            }
            None => {
                format!("--runner {} failed before {ended} UTC, and its command was killed", self.runner())
            }
        }
    }

    /// Its logs.
    pub fn listing(&self, run: &Place, options: &S3Options) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        for name in &self.logs {
            listing.logs.extend(list(&run.join(name).to_string(), options)?.logs);
        }
        Ok(listing)
    }

    /// `--runner hadoop`; the runner of a failure without a record.
    pub fn runner(&self) -> &str {
        self.record.as_ref().map_or("hadoop", |record| &record.runner)
    }
}

/// The last failure of a run.
pub fn last(store: &Store) -> Result<Option<RunFailure>, Error> {
    let listed = store.list(PREFIX)?;
    let Some(last) = listed.iter().filter_map(number).max() else { return Ok(None) };
    let files: Vec<&Listed> = listed.iter().filter(|file| number(file) == Some(last)).collect();
    let ended = files.iter().map(|file| file.modified).max().unwrap_or(SystemTime::UNIX_EPOCH);
    let logs = files.iter().map(|file| file.key.as_str()).filter(|name| name.ends_with(".log"));
    Ok(Some(RunFailure {
        record: crate::submission::read(store, &Key::new(&Number(last).name("json"))?)?,
        ended,
        logs: logs.map(str::to_owned).collect(),
    }))
}

fn unix_s<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

fn number(file: &Listed) -> Option<u32> {
    let (number, suffix) = file.key.as_str().strip_prefix(PREFIX)?.split_once('.')?;
    ["log", "tasks.log", "json"].contains(&suffix).then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_last_failure_is_found_with_its_logs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("run").display().to_string()).unwrap();
        assert!(last(&store).unwrap().is_none());
        let log = folder.path().join("log");
        fs::write(&log, "one").unwrap();
        for expected in 1..=10 {
            let number = Number::keep(&store, &log).unwrap().unwrap();
            assert_eq!(number.name("log"), format!("job/failed-{expected}.log"));
        }
        // The command of the last one was killed before it put a record.
        let found = last(&store).unwrap().unwrap();
        assert_eq!((found.runner(), &found.logs[..]), ("hadoop", &["job/failed-10.log".to_owned()][..]));
        assert!(found.record.is_none());
        let record = Record::new("local", 65, "sentimill: AWS_SESSION_TOKEN=x; copy it", None);
        Number(10).put(&store, "tasks.log", ObjectContent::Bytes(b"two")).unwrap();
        Number(10).record(&store, &record).unwrap();
        let found = last(&store).unwrap().unwrap();
        assert_eq!(found.logs, ["job/failed-10.log", "job/failed-10.tasks.log"]);
        assert_eq!(found.record.unwrap().message, "sentimill: AWS_SESSION_TOKEN=***; copy it");
    }
}

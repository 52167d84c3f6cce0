//! Attempts to start a job: who may create the cluster, and what it led to.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use program::exit::Exit;
use serde::{Deserialize, Serialize};
use store::{Key, Recorded, Store};

use super::Pace;
use super::records::{RECORD_BYTES_MAX, read, to_bytes};
use crate::Error;

/// The folder of the records.
const FOLDER: &str = "job/";
/// Maximum number of attempts per run.
const ATTEMPTS_MAX: u32 = 1000;

/// `job/attempt-N.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// The process: host, process id and a random part.
    pub holder: String,
    /// Seconds after which another process may start the next attempt.
    pub takeover_s: f64,
}

/// `job/cluster-N.json`: what an attempt led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AttemptOutcome {
    /// A cluster with the job.
    Cluster(String),
    /// Nothing, for this reason.
    Refused(String),
}

/// `the cluster is j-1`, `refused: …`.
impl fmt::Display for AttemptOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(id) => write!(out, "the cluster is {id}"),
            Self::Refused(why) => write!(out, "refused: {why}"),
        }
    }
}

/// The right to carry out an attempt.
#[derive(Debug)]
pub(super) struct Mandate {
    attempt: Attempt,
    begin: Instant,
    /// `Instant` does not advance while a machine is suspended.
    begin_clock: SystemTime,
}

impl Attempt {
    /// How long another process waits for its outcome.
    pub fn patience(&self) -> Duration {
        Duration::try_from_secs_f64(self.takeover_s).unwrap_or(Duration::MAX)
    }
}

/// The latest attempt.
pub(super) fn latest(store: &Store) -> Result<Option<Attempt>, Error> {
    let numbers = store.list(&format!("{FOLDER}attempt-"))?.into_iter().filter_map(|listed| {
        let name = listed.key.as_str().strip_prefix(FOLDER)?;
        name.strip_prefix("attempt-")?.strip_suffix(".json")?.parse::<u32>().ok()
    });
    let Some(number) = numbers.max() else { return Ok(None) };
    read(store, &attempt_key(number)?)
}

/// What an attempt led to, if that is known.
pub(super) fn outcome(store: &Store, attempt: u32) -> Result<Option<AttemptOutcome>, Error> {
    read(store, &outcome_key(attempt)?)
}

/// Claims an attempt. `None` if another process has claimed it.
pub(super) fn claim(store: &Store, number: u32, pace: &Pace) -> Result<Option<Mandate>, Error> {
    if number > ATTEMPTS_MAX {
        let run = store.url();
        return Err(Error::new(
            Exit::Usage,
            format!("{run}: {ATTEMPTS_MAX} attempts to start the job, expected fewer; choose another run"),
        ));
    }
    let (begin, begin_clock) = (Instant::now(), SystemTime::now());
    let attempt = Attempt { attempt: number, holder: holder(), takeover_s: pace.takeover.as_secs_f64() };
    match store.put_record(&attempt_key(number)?, &to_bytes(&attempt), RECORD_BYTES_MAX)? {
        Recorded::AsGiven => Ok(Some(Mandate { attempt, begin, begin_clock })),
        Recorded::Other(_) => Ok(None),
    }
}

impl Mandate {
    /// Whether a request may still be sent: less than half of the time has passed, by both clocks, and no other
    /// process has started the next attempt.
    pub fn is_valid(&self, store: &Store) -> Result<bool, Error> {
        let limit = self.attempt.patience() / 2;
        let passed = self.begin_clock.elapsed().unwrap_or_default().max(self.begin.elapsed());
        let is_latest = latest(store)?.is_some_and(|latest| latest == self.attempt);
        Ok(passed < limit && is_latest)
    }

    /// Records what the attempt led to.
    pub fn end(&self, store: &Store, outcome: &AttemptOutcome) -> Result<(), Error> {
        record(store, self.attempt.attempt, outcome)
    }
}

/// Records what an attempt led to, unless it is recorded.
pub(super) fn record(store: &Store, attempt: u32, outcome: &AttemptOutcome) -> Result<(), Error> {
    store.put_record(&outcome_key(attempt)?, &to_bytes(outcome), RECORD_BYTES_MAX)?;
    Ok(())
}

fn attempt_key(number: u32) -> Result<Key, Error> {
    Ok(Key::new(&format!("{FOLDER}attempt-{number}.json"))?)
}

fn outcome_key(number: u32) -> Result<Key, Error> {
    Ok(Key::new(&format!("{FOLDER}cluster-{number}.json"))?)
}

/// Names this process: `ip-10-0-3-9.4711.5f2a9c11`.
fn holder() -> String {
    let host = hostname::get().unwrap_or_default();
    let random = tempfile::Builder::new().prefix("").rand_bytes(8).make(|path| Ok(path.to_owned()));
    let random = random.ok().and_then(|path| Some(path.path().file_name()?.to_string_lossy().into_owned()));
    format!("{}.{}.{}", host.to_string_lossy(), std::process::id(), random.unwrap_or_default())
}

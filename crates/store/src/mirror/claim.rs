//! Makes one process the writer of a prefix.
//!
//! ```text
//! claims/000001.json               the first writer: host, process, start
//! claims/000001/sign-0000000007    a heartbeat, put every five seconds; the previous one is deleted
//! claims/000001/released           the writer has ended
//! claims/000002.json               the writer that resumed
//! ```
//!
//! A claim is a put-if-absent of the next number, so one of several processes gets it. The newest claim counts. A
//! process that resumes watches the newest claim for [`DEAD_AFTER`]: if a new heartbeat appears, it is refused;
//! otherwise it puts the next claim. No clocks of two machines are compared. A writer that was only slow, or cut off
//! from the store, finds the newer claim before it completes its next bundle, and stops. It has replaced nothing, and
//! its local folder is unchanged.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Key, ObjectContent, Recorded, Store};
use serde::{Deserialize, Serialize};

use crate::mirror::error::{MirrorError, Result};

const FORMAT_VERSION: u32 = 1;
const CLAIMS: &str = "claims/";
const RELEASED: &str = "released";
const SIGN: &str = "sign-";
/// Host names are shorter.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Time between two heartbeats.
const SIGN_EVERY: Duration = Duration::from_secs(5);
/// Time without a heartbeat after which a writer counts as dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The content of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format_version: u32,
    /// Identifies the training: a random number that later claims repeat.
    training: String,
    /// Identifies the claim.
    claim: String,
    host: String,
    process: u32,
    /// Seconds since 1970, for people.
    started_unix_s: u64,
}

/// The newest claim of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    number: u32,
    record: Record,
    /// The name of the newest heartbeat.
    sign: Option<Key>,
    is_released: bool,
}

/// The right to write below a prefix. It is released when this value is dropped.
#[derive(Debug)]
pub struct Claim {
    store: Store,
    number: u32,
    record: Record,
    /// Closed when this value is dropped, which ends the thread.
    _signs: Sender<()>,
}

/// Returns the newest claim of a prefix, if there is one.
pub fn standing(store: &Store) -> Result<Option<Standing>> {
    let listed: Vec<Key> = store.list(CLAIMS)?.into_iter().map(|listed| listed.key).collect();
    let number_of = |key: &Key| key.as_str().strip_prefix(CLAIMS)?.strip_suffix(".json")?.parse::<u32>().ok();
    let Some(number) = listed.iter().filter_map(number_of).max() else { return Ok(None) };
    let key = claim_key(number)?;
    // A claim may be withdrawn between the two requests.
    let Some(json) = store.get_small(&key, RECORD_BYTES_MAX)? else { return Ok(None) };
    let record = serde_json::from_slice(&json)
        .map_err(|_| crate::Error::NotAnObject { object: format!("{}/{key}", store.url()) })?;
    let released = key_below(number, RELEASED)?;
    let signs = format!("{}{SIGN}", below(number));
    let sign = listed.iter().filter(|key| key.as_str().starts_with(&signs)).max().cloned();
    let is_released = listed.contains(&released);
    Ok(Some(Standing { number, record, sign, is_released }))
}

impl Standing {
    /// Identifies the training.
    pub fn training(&self) -> &str {
        &self.record.training
    }

    /// Identifies the claim.
    pub fn claim(&self) -> &str {
        &self.record.claim
    }

    /// Whether the writer has ended in an orderly way.
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// The writer, for messages.
    pub fn holder(&self) -> String {
        self.record.holder()
    }

    /// Watches the store until the writer counts as dead. Errors: it is alive.
    pub fn wait_until_dead(&self, store: &Store) -> Result<()> {
        let deadline = Instant::now() + DEAD_AFTER;
        while Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
            match standing(store)? {
                Some(now) if now.is_released || now == *self => {}
                Some(now) => return Err(held(store, now.holder())),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

impl Record {
    fn new(training: String) -> Result<Self> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            format_version: FORMAT_VERSION,
            training,
            claim: random()?,
            host: host.trim().to_owned(),
            process: std::process::id(),
            started_unix_s: started.as_secs(),
        })
    }

    fn holder(&self) -> String {
        format!("process {} on {}", self.process, self.host)
    }
}

impl Claim {
    /// Claims a prefix that nobody has claimed. Errors: another process was first.
    pub fn first(store: &Store) -> Result<Self> {
        Self::take(store, 1, Record::new(random()?)?)
    }

    /// Claims a prefix after another writer. Errors: another process was first.
    pub fn after(store: &Store, standing: &Standing) -> Result<Self> {
        Self::take(store, standing.number + 1, Record::new(standing.record.training.clone())?)
    }

    fn take(store: &Store, number: u32, record: Record) -> Result<Self> {
        let json = serde_json::to_vec_pretty(&record).expect("a record of plain values is JSON");
        match store.put_record(&claim_key(number)?, &json, RECORD_BYTES_MAX)? {
            Recorded::AsGiven => {}
            Recorded::Other(json) => {
                let holder = serde_json::from_slice::<Record>(&json).map(|record| record.holder());
                return Err(held(store, holder.unwrap_or_else(|_| "another process".to_owned())));
            }
        }
        let (signs, has_ended) = channel();
        let of_thread = store.clone();
        let signing = move || sign(&of_thread, number, &has_ended);
        let started = thread::Builder::new().name("signs".to_owned()).spawn(signing);
        started.map_err(MirrorError::io("thread".as_ref(), "start it"))?;
        Ok(Self { store: store.clone(), number, record, _signs: signs })
    }

    /// Identifies the training.
    pub fn training(&self) -> &str {
        &self.record.training
    }

    /// Identifies the claim.
    pub fn claim(&self) -> &str {
        &self.record.claim
    }

    /// Refuses to go on if another process has claimed the prefix.
    pub fn check(&self) -> Result<()> {
        check(&self.store, self.number)
    }

    /// Returns a function that does what [`Claim::check`] does, for another thread.
    pub fn checker(&self) -> impl Fn() -> Result<()> + Send + 'static {
        let (store, number) = (self.store.clone(), self.number);
        move || check(&store, number)
    }

    /// Removes the claim of a process that has put nothing, so that the prefix is unused again.
    pub fn withdraw(&self) -> Result<()> {
        for key in self.store.list(&below(self.number))? {
            self.store.delete(&key.key)?;
        }
        Ok(self.store.delete(&claim_key(self.number)?)?)
    }

    /// Puts the note that the writer has ended, so that the next one need not wait.
    pub fn release(&self) -> Result<()> {
        let content = ObjectContent::Bytes(b"the writer has ended\n");
        self.store.put_if_absent(&key_below(self.number, RELEASED)?, content)?;
        Ok(())
    }
}

fn check(store: &Store, number: u32) -> Result<()> {
    match standing(store)? {
        Some(newest) if newest.number > number => {
            Err(MirrorError::Taken { url: store.url(), holder: newest.holder() })
        }
        _ => Ok(()),
    }
}

/// Puts heartbeats until the claim is dropped.
fn sign(store: &Store, number: u32, has_ended: &Receiver<()>) {
    let mut previous: Option<Key> = None;
    for at in 1u64.. {
        if has_ended.recv_timeout(SIGN_EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let Ok(key) = key_below(number, &format!("{SIGN}{at:010}")) else { return };
        // If it fails, the next sign follows.
        if store.put_if_absent(&key, ObjectContent::Bytes(b"alive\n")).is_ok()
            && let Some(previous) = previous.replace(key)
        {
            let _ = store.delete(&previous);
        }
    }
}

fn claim_key(number: u32) -> Result<Key> {
    Ok(Key::new(&format!("{CLAIMS}{number:06}.json"))?)
}

fn below(number: u32) -> String {
    format!("{CLAIMS}{number:06}/")
}

fn key_below(number: u32, name: &str) -> Result<Key> {
    Ok(Key::new(&format!("{}{name}", below(number)))?)
}

fn held(store: &Store, holder: String) -> MirrorError {
    MirrorError::Held { url: store.url(), holder }
}

/// Sixteen random hexadecimal digits.
fn random() -> Result<String> {
    let number = crate::naming::random().map_err(MirrorError::io("random numbers".as_ref(), "draw one"))?;
    Ok(format!("{number:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let within = tempfile::tempdir().unwrap();
        let store = Store::open(within.path().join("prefix").to_str().unwrap()).unwrap();
        (within, store)
    }

    #[test]
    fn one_of_several_processes_gets_a_claim_and_the_others_learn_its_name() {
        let (_within, store) = store();
        let claims: Vec<_> = thread::scope(|scope| {
            let claiming: Vec<_> = (0..8).map(|_| scope.spawn(|| Claim::first(&store))).collect();
            claiming.into_iter().map(|claim| claim.join().unwrap()).collect()
        });
        assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
        for error in claims.into_iter().filter_map(Result::err) {
            let holder = format!("process {} on ", std::process::id());
            assert!(error.to_string().contains(&holder) && error.exit() as u8 == 75, "{error}");
        }
    }

    #[test]
    fn an_older_claim_ends_with_the_next_one_and_both_are_of_one_training() {
        let (_within, store) = store();
        let first = Claim::first(&store).unwrap();
        first.check().unwrap();
        let standing = standing(&store).unwrap().unwrap();
        assert_eq!((standing.claim(), standing.is_released()), (first.claim(), false));
        let second = Claim::after(&store, &standing).unwrap();
        assert_eq!(second.training(), first.training());
        second.check().unwrap();
        let error = first.check().unwrap_err().to_string();
        assert!(error.contains("has resumed this training"), "{error}");
        assert!(Claim::after(&store, &standing).is_err(), "a third process is refused");
    }

    #[test]
    fn a_writer_with_signs_of_life_is_alive_and_a_released_claim_is_seen() {
        let (_within, store) = store();
        let first = Claim::first(&store).unwrap();
        let standing_now = || standing(&store).unwrap().unwrap();
        let before = standing_now();
        let error = before.wait_until_dead(&store).unwrap_err();
        assert!(matches!(error, MirrorError::Held { .. }), "{error}");
        first.release().unwrap();
        assert!(standing_now().is_released());
    }

    #[test]
    fn a_withdrawn_claim_leaves_nothing() {
        let (_within, store) = store();
        Claim::first(&store).unwrap().withdraw().unwrap();
        assert_eq!((store.list("").unwrap(), standing(&store).unwrap()), (Vec::new(), None));
    }
}

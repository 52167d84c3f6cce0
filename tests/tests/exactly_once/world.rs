//! A store in which a director chooses which call is next, and how it ends for the caller.
//!
//! Each attempt has a desk, an access to the store whose calls block until the director ends them. The
//! director waits until all attempts are blocked or have ended, and then ends one call. The result of several
//! threads is therefore a function of the director's choices.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use program::progress::Progress;
use store::{Backend, Error, Key, Listed, LocalObject, ObjectContent, ObjectInfo, Put, Store};

/// How a call ends for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It is executed and answered.
    Done,
    /// It is not executed, and the caller gets an error.
    Refused,
    /// It is executed, and the caller gets an error.
    AnswerLost,
    /// It is executed, its answer is lost, and the caller's library retries it.
    Twice,
    /// The caller is killed before the call.
    KilledBefore,
    /// The caller is killed after the call.
    KilledAfter,
}

impl CallOutcome {
    fn kills(self) -> bool {
        matches!(self, Self::KilledBefore | Self::KilledAfter)
    }
}

/// State of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Working,
    Asking(String),
    Answered(CallOutcome),
    Ended,
}

#[derive(Debug)]
struct Seat {
    stage: Stage,
    /// A killed process makes no more calls.
    is_dead: bool,
}

#[derive(Debug, Default)]
struct State {
    seats: Vec<Seat>,
    /// Number of times each name was stored.
    stored: BTreeMap<String, u32>,
}

/// The store of one run, for attempts and their director.
#[derive(Debug)]
pub struct World {
    objects: Store,
    state: Mutex<State>,
    changed: Condvar,
}

/// An attempt's access to the store. Dropping it marks the end of the attempt.
#[derive(Debug)]
pub struct Desk {
    world: Arc<World>,
    seat: usize,
    progress: Progress,
}

impl World {
    /// A world around the objects of a run.
    pub fn new(objects: Store) -> Arc<Self> {
        Arc::new(Self { objects, state: Mutex::default(), changed: Condvar::new() })
    }

    /// The objects themselves, for inspection.
    pub fn objects(&self) -> &Store {
        &self.objects
    }

    /// The desk of a new attempt, and its number.
    pub fn desk(self: &Arc<Self>) -> (Desk, usize) {
        let mut state = self.locked();
        state.seats.push(Seat { stage: Stage::Working, is_dead: false });
        let seat = state.seats.len() - 1;
        (Desk { world: Arc::clone(self), seat, progress: Progress::default() }, seat)
    }

    /// Waits until no attempt is running. Returns the blocked ones with their calls.
    pub fn quiet(&self) -> Vec<(usize, String)> {
        let mut state = self.locked();
        loop {
            let works = |seat: &Seat| matches!(seat.stage, Stage::Working | Stage::Answered(_));
            if !state.seats.iter().any(works) {
                let asking = state.seats.iter().enumerate().filter_map(|(seat, of)| match &of.stage {
                    Stage::Asking(what) => Some((seat, what.clone())),
                    _ => None,
                });
                return asking.collect();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Answers a blocked call.
    pub fn answer(&self, seat: usize, outcome: CallOutcome) {
        let mut state = self.locked();
        let seat = &mut state.seats[seat];
        assert!(matches!(seat.stage, Stage::Asking(_)), "{seat:?} asks for nothing");
        seat.stage = Stage::Answered(outcome);
        seat.is_dead |= outcome.kills();
        self.changed.notify_all();
    }

    /// Whether the attempt with this number has dropped its desk.
    pub fn has_ended(&self, seat: usize) -> bool {
        self.locked().seats[seat].stage == Stage::Ended
    }

    /// Names that were stored more than once; there must be none.
    pub fn stored_twice(&self) -> Vec<String> {
        let state = self.locked();
        state.stored.iter().filter(|(_, times)| **times > 1).map(|(name, _)| name.clone()).collect()
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn ask(&self, what: String) -> CallOutcome {
        let mut state = self.world.locked();
        if state.seats[self.seat].is_dead {
            return CallOutcome::KilledBefore;
        }
        state.seats[self.seat].stage = Stage::Asking(what);
        self.world.changed.notify_all();
        loop {
            if let Stage::Answered(outcome) = state.seats[self.seat].stage {
                state.seats[self.seat].stage = Stage::Working;
                return outcome;
            }
            state = self.world.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn call<T>(
        &self,
        doing: &'static str,
        object: &str,
        work: impl Fn(&Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let outcome = self.ask(format!("{doing} {object}"));
        let failed = |why| {
            let object = format!("{}/{object}", self.url());
            Err(Error::Io { object, doing, source: io::Error::other(why) })
        };
        match outcome {
            CallOutcome::Done => work(&self.world.objects),
            CallOutcome::Refused => failed("the store is not there"),
            CallOutcome::KilledBefore => failed("killed"),
            CallOutcome::AnswerLost => work(&self.world.objects).and_then(|_| failed("no answer")),
            CallOutcome::KilledAfter => work(&self.world.objects).and_then(|_| failed("killed")),
            CallOutcome::Twice => work(&self.world.objects).and_then(|_| work(&self.world.objects)),
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.world.locked().seats[self.seat].stage = Stage::Ended;
        self.world.changed.notify_all();
    }
}

impl Backend for Desk {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn probe(&self) -> Result<(), Error> {
        Ok(())
    }

    fn url(&self) -> String {
        self.world.objects.url()
    }

    fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        self.call("put", key.as_str(), |objects| {
            let put = objects.put_if_absent(key, content)?;
            if matches!(put, Put::Stored(_)) {
                *self.world.locked().stored.entry(key.to_string()).or_default() += 1;
            }
            Ok(put)
        })
    }

    fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        self.call("read", key.as_str(), |objects| objects.get_small(key, limit_bytes))
    }

    fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error> {
        self.call("fetch", key.as_str(), |objects| objects.local_copy(key, folder))
    }

    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        self.call("look up", key.as_str(), |objects| objects.head(key))
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        self.call("list", prefix, |objects| objects.list(prefix))
    }

    fn delete(&self, key: &Key) -> Result<(), Error> {
        self.call("delete", key.as_str(), |objects| objects.delete(key))
    }
}

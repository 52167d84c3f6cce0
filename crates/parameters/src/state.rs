//! The clocks of workers, and which push is accepted, repeated, refused or held back.
//!
//! The state changes by entries of the log only, and depends on nothing else: repeating the log gives the same state.

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::messages::{LineCounts, PushRequest, RowUpdates};
use crate::refusal::Refusal;
use crate::spec::Spec;

/// The clock of a worker that has left.
pub const LEFT: u64 = u64::MAX;
/// Maximum bytes of a worker's step. With `--staleness 0`, they are held in memory until all workers are done.
const STEP_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of tables, and of updates or reads of a message.
pub(crate) const TABLES_MAX: usize = 64;

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Worker {
    /// Completed steps.
    pub(crate) clock: u64,
    /// Accepted parts of the current step, and their memory in bytes.
    pub(crate) n_parts: u32,
    n_bytes: u64,
    pub(crate) is_removed: bool,
    /// Completed steps of a worker that has left.
    #[serde(default)]
    n_done: u64,
    #[serde(default)]
    pub(crate) committed: Committed,
}

/// What the last push with a place has stored of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Committed {
    /// The place in its input, opaque bytes of the worker.
    #[serde(skip)]
    pub(crate) place: Vec<u8>,
    /// The lines before it.
    pub(crate) lines: Option<LineCounts>,
    /// The process that pushed it.
    process: u64,
}

/// The durable state of a server, without the values of tables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) specs: Vec<Spec>,
    pub(crate) workers: Vec<Worker>,
    /// The bound; `None`: unbounded.
    pub(crate) staleness: Option<u64>,
    pub(crate) ledger: Ledger,
    /// Number of updates that were applied.
    pub(crate) n_updates: u64,
    /// Accepted pushes whose step is not complete, with a bound of 0.
    #[serde(skip)]
    pub(crate) held: Vec<PushRequest>,
}

/// The slowest worker, and what is known of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slowest {
    pub(crate) worker: u32,
    /// Its completed steps; [`LEFT`] if all have left.
    pub(crate) clock: u64,
    /// Number of workers that have not left.
    pub(crate) n_here: u32,
    /// The most steps that one of them has completed.
    pub(crate) most: u64,
}

/// What is to be done with a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is new; its staleness.
    New(u64),
    /// It was accepted before.
    Repeated,
    /// Its rows are older than the bound.
    TooOld(u64),
}

impl State {
    pub(crate) fn new(n_workers: u32, staleness: Option<u64>) -> Self {
        Self {
            specs: Vec::new(),
            workers: vec![Worker::default(); n_workers as usize],
            staleness,
            ledger: Ledger::new(n_workers),
            n_updates: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn slowest(&self) -> Slowest {
        let clocks = (0..).zip(&self.workers).map(|(worker, found)| (found.clock, worker));
        let (clock, worker) = clocks.min().unwrap_or((LEFT, 0));
        let here = self.workers.iter().map(|worker| worker.clock).filter(|&clock| clock != LEFT);
        let most = here.clone().max().unwrap_or_default();
        Slowest { worker, clock, n_here: here.count() as u32, most }
    }

    /// A worker, which may have been removed.
    pub(crate) fn known(&self, worker: u32) -> Result<&Worker, Refusal> {
        let n_workers = self.workers.len();
        self.workers.get(worker as usize).ok_or_else(|| {
            Refusal::invalid(format!(
                "worker {worker}, expected one of the {n_workers} workers of the server"
            ))
        })
    }

    /// A worker that was not removed.
    fn worker(&self, worker: u32) -> Result<&Worker, Refusal> {
        let found = self.known(worker)?;
        if found.is_removed {
            return Err(Refusal::conflict(format!(
                "worker {worker} was removed because it was silent for too long; the others have continued without it"
            )));
        }
        Ok(found)
    }

    /// The number of a table with this description, or of the next one.
    pub(crate) fn table(&self, spec: &Spec) -> Result<(u32, bool), Refusal> {
        match self.specs.iter().position(|existing| existing.name == spec.name) {
            Some(at) => self.specs[at].check_equal(spec).map(|()| (at as u32, false)),
            None if self.specs.len() == TABLES_MAX => {
                Err(Refusal::conflict(format!("{TABLES_MAX} tables exist, expected at most that many")))
            }
            None => Ok((self.specs.len() as u32, true)),
        }
    }

    /// Judges a push whose updates are valid. Nothing changes.
    pub(crate) fn judge(&self, push: &PushRequest) -> Result<Verdict, Refusal> {
        let &PushRequest { worker: number, step, part, read_at, .. } = push;
        let worker = self.worker(number)?;
        let n_done = if worker.clock == LEFT { worker.n_done } else { worker.clock };
        if step < n_done {
            // The lines of a step of a stream depend on when they come.
            if push.process != 0 && push.process != worker.committed.process {
                return Err(Refusal::conflict(format!(
                    "step {step} of worker {number}, which another process of this worker has completed; end that one, and \
                     start this one again"
                )));
            }
            // Two processes of another worker push the same steps, and one of them may leave before the other has ended.
            return Ok(Verdict::Repeated);
        }
        if worker.clock == LEFT {
            return Err(Refusal::conflict(format!(
                "a push of worker {number}, which has left; another process has completed its steps"
            )));
        }
        let is_accepted = part < worker.n_parts;
        if step == worker.clock && is_accepted && !push.is_last {
            return Ok(Verdict::Repeated);
        }
        // A worker of a stream that was killed in a step may repeat it with fewer parts; the last one ends it.
        let is_next = part == worker.n_parts || (push.is_last && is_accepted);
        if step != worker.clock || !is_next {
            return Err(Refusal::conflict(format!(
                "part {part} of step {step} of worker {number}, expected part {} of step {}; start the worker again",
                worker.n_parts, worker.clock
            )));
        }
        let slowest = self.slowest();
        if read_at > slowest.clock {
            return Err(Refusal::invalid(format!(
                "rows read at step {read_at}, but the slowest worker is at step {}",
                slowest.clock
            )));
        }
        let staleness = step - read_at;
        if self.staleness.is_some_and(|bound| staleness > bound) {
            return Ok(Verdict::TooOld(staleness));
        }
        if worker.n_bytes + memory_of(push) > STEP_BYTES_MAX {
            return Err(Refusal::invalid(format!(
                "a step of more than {STEP_BYTES_MAX} bytes; use smaller steps"
            )));
        }
        Ok(Verdict::New(staleness))
    }

    /// Accepts a push that is new. Returns the pushes that are to be applied now, in their order.
    pub(crate) fn accept(&mut self, mut push: PushRequest, staleness: u64) -> Vec<PushRequest> {
        let (bytes, memory) = (bytes_of(&push), memory_of(&push));
        let rows = push.updates.iter().map(|update| update.rows.len() as u64 / 4).sum();
        self.ledger.add(push.worker, rows, bytes, staleness);
        let worker = &mut self.workers[push.worker as usize];
        worker.n_parts += 1;
        worker.n_bytes += memory;
        if !push.place.is_empty() {
            let place = std::mem::take(&mut push.place);
            worker.committed = Committed { place, lines: push.lines, process: push.process };
        }
        if push.is_last {
            let committed = std::mem::take(&mut worker.committed);
            *worker = Worker { clock: worker.clock + 1, committed, ..Worker::default() };
        }
        if self.staleness == Some(0) {
            self.held.push(push);
            self.complete()
        } else {
            vec![push]
        }
    }

    /// Ends a worker. Returns the pushes that are to be applied now.
    pub(crate) fn leave(&mut self, worker: u32, is_removed: bool) -> Vec<PushRequest> {
        if let Some(worker) = self.workers.get_mut(worker as usize) {
            let (n_done, committed) = (worker.clock, std::mem::take(&mut worker.committed));
            *worker = Worker { clock: LEFT, is_removed, n_done, committed, ..Worker::default() };
        }
        self.complete()
    }

    /// Takes the held pushes of steps that all workers have completed, by step, then by worker.
    fn complete(&mut self) -> Vec<PushRequest> {
        let done = self.slowest().clock;
        if !self.held.iter().any(|push| push.step < done) {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        let (mut ready, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|push| push.step < done);
        self.held = held;
        ready.sort_by_key(|push| (push.step, push.worker, push.part));
        ready
    }

    /// The held pushes as bytes.
    pub(crate) fn held_bytes(&self) -> Vec<u8> {
        framed(self.held.iter().map(PushRequest::encode_to_vec))
    }

    /// Reads the held pushes; `None` if the bytes are malformed.
    pub(crate) fn restore_held(&mut self, bytes: Vec<u8>) -> Option<()> {
        for push in unframed(bytes)? {
            self.held.push(PushRequest::decode(push).ok()?);
        }
        Some(())
    }

    /// The places of all workers as bytes.
    pub(crate) fn place_bytes(&self) -> Vec<u8> {
        framed(self.workers.iter().map(|worker| &worker.committed.place))
    }

    /// Reads the places; `None` if the bytes are malformed.
    pub(crate) fn restore_places(&mut self, bytes: Vec<u8>) -> Option<()> {
        let places = unframed(bytes).filter(|places| places.len() == self.workers.len())?;
        self.workers.iter_mut().zip(places).for_each(|(worker, place)| worker.committed.place = place.into());
        Some(())
    }
}

/// Each item after its length.
fn framed(items: impl Iterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for item in items {
        bytes.extend((item.as_ref().len() as u32).to_le_bytes());
        bytes.extend(item.as_ref());
    }
    bytes
}

/// The items; `None` if the bytes are malformed.
fn unframed(bytes: Vec<u8>) -> Option<Vec<Bytes>> {
    let (mut bytes, mut items) = (Bytes::from(bytes), Vec::new());
    while !bytes.is_empty() {
        let length = bytes.split_to_checked(4)?;
        let length = u32::from_le_bytes(length[..].try_into().ok()?) as usize;
        items.push(bytes.split_to_checked(length)?);
    }
    Some(items)
}

trait SplitChecked: Sized {
    fn split_to_checked(&mut self, n: usize) -> Option<Self>;
}

impl SplitChecked for Bytes {
    fn split_to_checked(&mut self, n: usize) -> Option<Self> {
        (n <= self.len()).then(|| self.split_to(n))
    }
}

/// Bytes of a push: row numbers and values.
pub(crate) fn bytes_of(push: &PushRequest) -> u64 {
    push.updates.iter().map(|update| (update.rows.len() + update.values.len()) as u64).sum()
}

/// Memory of a push in bytes. A push without rows needs some too.
pub(crate) fn memory_of(push: &PushRequest) -> u64 {
    (size_of::<PushRequest>() + push.updates.len() * size_of::<RowUpdates>() + push.encoded_len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(worker: u32, step: u64, part: u32, is_last: bool, read_at: u64) -> PushRequest {
        PushRequest { worker, step, part, is_last, read_at, ..PushRequest::default() }
    }

    fn accept(state: &mut State, push: PushRequest) -> Vec<(u32, u64, u32)> {
        let Ok(Verdict::New(staleness)) = state.judge(&push) else {
            panic!("{push:?}: {:?}", state.judge(&push))
        };
        let ready = state.accept(push, staleness);
        ready.iter().map(|push| (push.worker, push.step, push.part)).collect()
    }

    #[test]
    fn with_bound_0_a_step_is_applied_in_the_order_of_workers() {
        let mut state = State::new(3, Some(0));
        assert_eq!(accept(&mut state, push(2, 0, 0, true, 0)), []);
        assert_eq!(accept(&mut state, push(0, 0, 0, false, 0)), []);
        assert_eq!(accept(&mut state, push(1, 0, 0, true, 0)), []);
        let bytes = state.held_bytes();
        let held = std::mem::take(&mut state.held);
        state.restore_held(bytes).unwrap();
        assert_eq!(state.held, held);
        let applied = accept(&mut state, push(0, 0, 1, true, 0));
        assert_eq!(applied, [(0, 0, 0), (0, 0, 1), (1, 0, 0), (2, 0, 0)]);
        assert_eq!(state.slowest(), Slowest { worker: 0, clock: 1, n_here: 3, most: 1 });
        assert!(state.ledger.balances() && state.ledger.pushes_of == [2, 1, 1]);
    }

    #[test]
    fn a_part_is_accepted_once_and_in_order() {
        let mut state = State::new(1, None);
        assert_eq!(accept(&mut state, push(0, 0, 0, false, 0)), [(0, 0, 0)]);
        assert_eq!(state.judge(&push(0, 0, 0, false, 0)), Ok(Verdict::Repeated));
        assert!(state.judge(&push(0, 0, 2, true, 0)).is_err());
        assert!(state.judge(&push(0, 1, 0, true, 0)).is_err());
        assert_eq!(accept(&mut state, push(0, 0, 1, true, 0)), [(0, 0, 1)]);
        assert_eq!(state.judge(&push(0, 0, 1, true, 0)), Ok(Verdict::Repeated));
        assert!(state.judge(&push(1, 0, 0, true, 0)).is_err());
        assert_eq!(state.leave(0, false), []);
        assert_eq!(state.judge(&push(0, 0, 1, true, 0)), Ok(Verdict::Repeated));
        for step in [1, LEFT] {
            assert!(state.judge(&push(0, step, 0, true, 0)).is_err(), "{step}");
        }
    }

    #[test]
    fn a_step_that_was_interrupted_ends_with_the_last_part_of_a_shorter_one() {
        let mut state = State::new(1, None);
        for part in 0..3 {
            accept(&mut state, push(0, 0, part, false, 0));
        }
        assert_eq!(state.judge(&push(0, 0, 0, false, 0)), Ok(Verdict::Repeated));
        let last = PushRequest { place: b"behind".to_vec(), ..push(0, 0, 1, true, 0) };
        assert_eq!(accept(&mut state, last.clone()), [(0, 0, 1)]);
        assert_eq!(state.judge(&last), Ok(Verdict::Repeated));
        assert_eq!((state.workers[0].clock, &state.workers[0].committed.place[..]), (1, &b"behind"[..]));
        assert_eq!(accept(&mut state, push(0, 1, 0, true, 0)), [(0, 1, 0)]);
    }

    #[test]
    fn a_step_with_a_place_is_repeated_only_by_its_process() {
        let mut state = State::new(1, Some(1));
        let of = |process, step| PushRequest {
            place: b"behind".to_vec(),
            process,
            ..push(0, step, 0, true, step)
        };
        accept(&mut state, of(1, 0));
        assert_eq!(state.judge(&of(1, 0)), Ok(Verdict::Repeated));
        let refused = state.judge(&of(2, 0)).unwrap_err();
        assert!(
            format!("{refused:?}").contains("another process of this worker has completed"),
            "{refused:?}"
        );
        // It starts again behind that step.
        accept(&mut state, of(2, 1));
        assert!(state.judge(&of(1, 1)).is_err());
        let places = state.place_bytes();
        state.workers[0].committed.place.clear();
        state.restore_places(places.clone()).unwrap();
        assert_eq!((state.place_bytes(), &state.workers[0].committed.place[..]), (places, &b"behind"[..]));
        assert!(state.restore_places(Vec::new()).is_none() && state.restore_places(vec![9]).is_none());
        state.leave(0, false);
        assert_eq!(state.judge(&of(2, 1)), Ok(Verdict::Repeated));
        assert!(state.judge(&of(1, 1)).is_err());
    }

    #[test]
    fn a_step_of_many_empty_parts_is_refused() {
        let mut state = State::new(1, Some(0));
        accept(&mut state, push(0, 0, 0, false, 0));
        let of_part = state.workers[0].n_bytes;
        assert!(of_part > 0);
        state.workers[0].n_bytes = STEP_BYTES_MAX - of_part + 1;
        let refused = state.judge(&push(0, 0, 1, false, 0));
        let message = "a step of more than 1073741824 bytes; use smaller steps";
        assert_eq!(refused, Err(Refusal::invalid(message)));
    }

    #[test]
    fn rows_that_are_older_than_the_bound_are_refused() {
        let mut state = State::new(2, Some(1));
        accept(&mut state, push(0, 0, 0, true, 0));
        accept(&mut state, push(0, 1, 0, true, 0));
        assert_eq!(state.judge(&push(0, 2, 0, true, 0)), Ok(Verdict::TooOld(2)));
        assert!(state.judge(&push(0, 2, 0, true, 1)).is_err(), "read ahead of the slowest worker");
        accept(&mut state, push(1, 0, 0, true, 0));
        assert_eq!(state.judge(&push(0, 2, 0, true, 1)), Ok(Verdict::New(1)));
        assert_eq!(state.ledger.staleness, [(0, 2), (1, 1)].into());
    }

    #[test]
    fn a_removed_worker_holds_nobody_back_and_its_parts_are_kept() {
        let mut state = State::new(2, Some(0));
        accept(&mut state, push(1, 0, 0, false, 0));
        accept(&mut state, push(0, 0, 0, true, 0));
        let ready = state.leave(1, true);
        assert_eq!(ready.iter().map(|push| push.worker).collect::<Vec<_>>(), [0, 1]);
        assert!(state.worker(1).is_err());
        assert_eq!(state.slowest(), Slowest { worker: 0, clock: 1, n_here: 1, most: 1 });
        assert!(state.leave(0, false).is_empty());
        assert_eq!(state.slowest().clock, LEFT);
    }
}

//! What the threads of a server share.

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use program::threads::locked;
use tokio::sync::{oneshot, watch};

use super::budget::{Account, Budget};
use crate::error::Error;
use crate::keys::Keys;
use crate::ledger::Statistics;
use crate::messages::{Ending, PushRequest};
use crate::refusal::Refusal;
use crate::spec::Spec;
use crate::state::{Slowest, Worker};
use crate::table::Table;
use crate::tables::Tables;

/// Requests that wait for the thread that writes.
pub(crate) const QUEUE_MAX: usize = 256;

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// A request for the thread that writes.
#[derive(Debug)]
pub(crate) enum Request {
    Create(Spec, Answer<u32>),
    /// The worker, and the number of workers that it expects.
    Join(u32, u32, Answer<Worker>),
    /// A push, and its memory.
    Push(PushRequest, Account, Answer<bool>),
    /// The worker, and a number of it.
    Leave(u32, u64, Answer<()>),
    /// The tables of ranks, and the step with which all of them continue.
    Open(Tables, u64),
    /// All ranks end.
    End(Ending, Answer<()>),
    Statistics(Answer<Statistics>),
    /// The last request: the state is written.
    Stop,
    /// The last request: the folder stays as it is.
    Abandon,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Nothing so far.
    Absent,
    /// It has sent a request.
    Started,
    /// It has joined, with the tables of all.
    Joined,
    /// It knows that all ranks end, or it is lost.
    Told,
}

/// State that is read while another thread writes.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The part of the rows, and the number of servers.
    pub(crate) place: (u32, u32),
    pub(crate) tables: RwLock<Vec<Arc<Table>>>,
    pub(crate) keys: RwLock<Keys>,
    /// The slowest worker, after its updates were applied.
    pub(crate) slowest: watch::Receiver<Slowest>,
    /// The last request of each worker.
    pub(crate) heard: Mutex<Vec<Option<Instant>>>,
    pub(crate) queue: SyncSender<Request>,
    pub(crate) budget: Arc<Budget>,
    /// Pushes that were refused before they reached the thread that writes.
    pub(crate) refused: AtomicU64,
    pub(crate) failed_snapshot: Mutex<Option<Error>>,
    /// Workers that were removed and not yet reported.
    pub(crate) removed: Mutex<Vec<u32>>,
    /// What each worker has done.
    pub(crate) stages: Mutex<Vec<Stage>>,
    /// Why all ranks end.
    pub(crate) ending: OnceLock<Ending>,
    /// The most that a rank was asked for.
    pub(crate) asked: AtomicU32,
    /// The sum of the numbers of workers that have left.
    pub(crate) sum: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        place: (u32, u32),
        n_workers: u32,
        queue: SyncSender<Request>,
        slowest: watch::Receiver<Slowest>,
        (tables, keys): (Vec<Arc<Table>>, Keys),
        budget: Arc<Budget>,
    ) -> Self {
        Self {
            place,
            tables: RwLock::new(tables),
            keys: RwLock::new(keys),
            slowest,
            heard: Mutex::new(vec![None; n_workers as usize]),
            queue,
            budget,
            refused: AtomicU64::new(0),
            failed_snapshot: Mutex::new(None),
            removed: Mutex::default(),
            stages: Mutex::new(vec![Stage::Absent; n_workers as usize]),
            ending: OnceLock::new(),
            asked: AtomicU32::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// Passes a request to the thread that writes, and waits for its answer.
    pub(crate) async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        self.queue.try_send(request(answer)).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::busy(format!("{QUEUE_MAX} requests wait to be written")),
            TrySendError::Disconnected(_) => Refusal::ending(),
        })?;
        answered.await.unwrap_or_else(|_| Err(Refusal::ending()))
    }

    /// Notes that a worker is alive.
    pub(crate) fn hear(&self, worker: u32) {
        let mut heard = locked(&self.heard);
        if let Some(heard) = heard.get_mut(worker as usize) {
            *heard = Some(Instant::now());
        }
        self.reached(worker, Stage::Started);
    }

    /// Notes what a worker has done.
    pub(crate) fn reached(&self, worker: u32, stage: Stage) {
        if let Some(so_far) = locked(&self.stages).get_mut(worker as usize) {
            *so_far = stage.max(*so_far);
        }
    }

    /// Refuses a request of a worker if all ranks end.
    pub(crate) fn check_ended(&self, worker: Option<u32>) -> Result<(), Refusal> {
        let Some(ending) = self.ending.get() else { return Ok(()) };
        worker.into_iter().for_each(|worker| self.reached(worker, Stage::Told));
        Err(Refusal::ended(ending))
    }

    pub(crate) fn table(&self, number: u32) -> Result<Arc<Table>, Refusal> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables
            .get(number as usize)
            .cloned()
            .ok_or_else(|| Refusal::conflict(format!("table {number} does not exist; create it first")))
    }
}

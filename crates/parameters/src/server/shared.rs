//! What the threads of a server share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use tokio::sync::{oneshot, watch};

use crate::error::Error;
use crate::ledger::Statistics;
use crate::messages::PushRequest;
use crate::refusal::Refusal;
use crate::spec::Spec;
use crate::state::{Slowest, Worker};
use crate::table::Table;

/// Requests that wait for the thread that writes.
pub(crate) const QUEUE_MAX: usize = 256;
/// Bytes of pushes that wait for it.
pub(crate) const QUEUE_BYTES_MAX: usize = 256 << 20;

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// A request for the thread that writes.
#[derive(Debug)]
pub(crate) enum Request {
    Create(Spec, Answer<u32>),
    /// The worker, and the number of workers that it expects.
    Join(u32, u32, Answer<Worker>),
    /// A push, and its bytes in the queue.
    Push(PushRequest, Queued, Answer<bool>),
    Leave(u32, Answer<()>),
    Statistics(Answer<Statistics>),
    /// The last request: the state is written.
    Stop,
    /// The last request: the folder stays as it is.
    Abandon,
}

/// State that is read while another thread writes.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The part of the rows, and the number of servers.
    pub(crate) place: (u32, u32),
    pub(crate) tables: RwLock<Vec<Arc<Table>>>,
    /// The slowest worker, after its updates were applied.
    pub(crate) slowest: watch::Receiver<Slowest>,
    /// The last request of each worker.
    pub(crate) heard: Mutex<Vec<Option<Instant>>>,
    pub(crate) queue: SyncSender<Request>,
    queued_bytes: Arc<AtomicUsize>,
    /// Pushes that were refused before they reached the thread that writes.
    pub(crate) refused: AtomicU64,
    pub(crate) failed_snapshot: Mutex<Option<Error>>,
    /// Workers that were removed and not yet reported.
    pub(crate) removed: Mutex<Vec<u32>>,
}

/// Bytes in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Queued {
    bytes: usize,
    sum: Arc<AtomicUsize>,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.bytes, Relaxed);
    }
}

impl Shared {
    pub(crate) fn new(
        place: (u32, u32),
        n_workers: u32,
        queue: SyncSender<Request>,
        slowest: watch::Receiver<Slowest>,
        tables: Vec<Arc<Table>>,
    ) -> Self {
        Self {
            place,
            tables: RwLock::new(tables),
            slowest,
            heard: Mutex::new(vec![None; n_workers as usize]),
            queue,
            queued_bytes: Arc::default(),
            refused: AtomicU64::new(0),
            failed_snapshot: Mutex::new(None),
            removed: Mutex::default(),
        }
    }

    /// Reserves memory of the queue for a push.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Queued, Refusal> {
        let queued = Queued { bytes, sum: Arc::clone(&self.queued_bytes) };
        if self.queued_bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES_MAX {
            return Err(Refusal::busy(format!("{QUEUE_BYTES_MAX} bytes of pushes wait to be written")));
        }
        Ok(queued)
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
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heard) = heard.get_mut(worker as usize) {
            *heard = Some(Instant::now());
        }
    }

    pub(crate) fn table(&self, number: u32) -> Result<Arc<Table>, Refusal> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables
            .get(number as usize)
            .cloned()
            .ok_or_else(|| Refusal::conflict(format!("table {number} does not exist; create it first")))
    }
}

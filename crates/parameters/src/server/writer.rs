//! The thread that changes the state: it takes the requests that wait, logs their entries as one group, applies them and
//! answers. So one call of the disk serves all workers, and an answer is sent when its entries are durable.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use program::exit::Failed;
use program::threads::locked;
use tokio::sync::watch;

use super::budget::Account;
use super::shared::{Answer, Request, Shared, Stage};
use super::silence::Silence;
use super::sync::LogSync;
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::ledger::{KeyStatistics, SinceStart, Statistics, TableStatistics, WorkerStatistics};
use crate::log::{Entry, Group, Log, ServerSettings};
use crate::messages::{Ending, PushRequest};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::spec::Spec;
use crate::state::{LEFT, Slowest, State, Verdict, Worker, memory_of};
use crate::table::{Table, tables_bytes};
use crate::tables::Tables;

/// Bytes of entries that are logged together.
const GROUP_BYTES: u64 = 16 << 20;
/// Time between two looks at workers and snapshots.
const TICK: Duration = Duration::from_millis(100);
/// Time between two calls of the disk with `--log-sync interval`.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// A longer log is shortened by a snapshot, whatever `--snapshot-every` is,
const LOG_BYTES_MAX: u64 = 4 << 30;
/// but not sooner than this after the last attempt.
const SNAPSHOT_AGAIN: Duration = Duration::from_secs(10);
/// A longer message of ranks that end is cut: it is in the header of a reply.
const ENDING_CHARS_MAX: usize = 1000;

/// The settings of the thread.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) settings: ServerSettings,
    pub(crate) memory_max: usize,
    pub(crate) log_sync: LogSync,
    pub(crate) snapshot_every: Duration,
    pub(crate) remove_after: Duration,
}

/// The thread.
pub(crate) struct Writer {
    writing: Writing,
    state: State,
    /// `None`: nothing is durable, and the workers are ranks.
    log: Option<Log>,
    /// The start of the process.
    began: Instant,
    silence: Silence,
    synced: Instant,
    snapshot: Option<JoinHandle<Result<()>>>,
    snapshot_at: Instant,
    slowest: watch::Sender<Slowest>,
    since_start: SinceStart,
}

/// What follows when the entries of a group are durable.
enum Effect {
    Table(Table),
    Push(PushRequest),
}

/// How the thread ends.
enum Last {
    /// With a snapshot.
    Stop,
    /// As after a kill.
    Abandon,
}

/// A group, and what follows when it is durable.
#[derive(Default)]
struct Work {
    group: Group,
    bytes: u64,
    /// The memory of pushes in the group.
    accounts: Vec<Account>,
    effects: Vec<Effect>,
    answers: Vec<Box<dyn FnOnce() + Send>>,
}

impl Work {
    fn answer<T: Send + 'static>(&mut self, answer: Answer<T>, with: std::result::Result<T, Refusal>) {
        // A client that is gone asks again.
        self.answers.push(Box::new(move || drop(answer.send(with))));
    }
}

impl Writer {
    pub(crate) fn new(
        writing: Writing,
        state: State,
        log: Option<Log>,
        slowest: watch::Sender<Slowest>,
    ) -> Self {
        let now = Instant::now();
        let since_start = SinceStart::default();
        Self {
            writing,
            state,
            log,
            began: now,
            silence: Silence::new(now),
            synced: now,
            snapshot: None,
            snapshot_at: now,
            slowest,
            since_start,
        }
    }

    /// Serves requests until the stop, and then writes a snapshot. Returns the statistics at the end.
    pub(crate) fn run(mut self, requests: &Receiver<Request>, shared: &Shared) -> Result<Statistics> {
        loop {
            let mut work = Work::default();
            let mut next = match requests.recv_timeout(TICK) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Request::Stop),
            };
            let mut last = None;
            while let Some(request) = next {
                last = self.take(request, &mut work, shared);
                let continues = last.is_none() && work.bytes < GROUP_BYTES;
                next = continues.then(|| requests.try_recv().ok()).flatten();
            }
            self.remove_silent(&mut work, shared);
            self.finish(work, shared)?;
            self.look_at_snapshot(shared)?;
            match last {
                None => {}
                Some(Last::Abandon) => return Ok(self.statistics(shared)),
                Some(Last::Stop) => return self.end(shared),
            }
        }
    }

    /// Begins a request. Returns how the thread ends if it is the last one.
    fn take(&mut self, request: Request, work: &mut Work, shared: &Shared) -> Option<Last> {
        match request {
            Request::Create(spec, answer) => {
                let created = self.create(spec, work, shared);
                work.answer(answer, created);
            }
            Request::Join(worker, n_workers, answer) => {
                let joined = self.join(worker, n_workers);
                work.answer(answer, joined);
            }
            Request::Push(push, account, answer) => self.push(push, account, answer, work),
            Request::Leave(worker, number, answer) => {
                let left = self.leave(worker, number, work, shared);
                work.answer(answer, left);
            }
            Request::Open(tables, step) => self.open(tables, step, shared),
            Request::End(ending, answer) => {
                let ended = self.end_ranks(&ending, shared);
                work.answer(answer, ended);
            }
            Request::Statistics(answer) => {
                let statistics = self.statistics(shared);
                work.answer(answer, Ok(statistics));
            }
            Request::Stop => return Some(Last::Stop),
            Request::Abandon => return Some(Last::Abandon),
        }
        None
    }

    fn create(&mut self, spec: Spec, work: &mut Work, shared: &Shared) -> std::result::Result<u32, Refusal> {
        let (number, is_new) = self.state.table(&spec)?;
        if is_new && self.log.is_none() {
            return Err(Refusal::busy("rank 0 has not read its input yet"));
        }
        if is_new {
            let ServerSettings { shard, servers, .. } = self.writing.settings;
            let sum = tables_bytes(self.state.specs.iter().chain([&spec]), shard, servers);
            let memory_max = self.writing.memory_max;
            if sum > memory_max {
                return Err(Refusal::conflict(format!(
                    "the tables need {sum} bytes, but --memory is {memory_max}; raise it, or use more servers"
                )));
            }
            self.note(&Entry::Create(spec.to_request(shard, servers)), work);
            work.effects.push(Effect::Table(Table::new(spec.clone(), shard, servers)));
            self.state.specs.push(spec);
            shared.keys.write().unwrap_or_else(PoisonError::into_inner).open(&self.state.specs);
            shared.budget.leave(sum);
        }
        Ok(number)
    }

    /// Logs an entry with the group.
    fn note(&self, entry: &Entry, work: &mut Work) {
        if self.log.is_some() {
            work.group.push(entry);
        }
    }

    /// Begins the steps of ranks.
    fn open(&mut self, tables: Tables, step: u64, shared: &Shared) {
        self.state.n_updates = tables.version();
        self.state.specs = tables.0.iter().map(|table| table.spec.clone()).collect();
        self.state.workers.iter_mut().for_each(|worker| worker.clock = step);
        let tables = tables.0.into_iter().map(Arc::new).collect();
        *shared.tables.write().unwrap_or_else(PoisonError::into_inner) = tables;
    }

    /// Ends all ranks, unless they end for another reason.
    fn end_ranks(&self, ending: &Ending, shared: &Shared) -> std::result::Result<(), Refusal> {
        if self.log.is_some() {
            return Err(Refusal::invalid("the end of all ranks, expected by a server of ranks only"));
        }
        let message = ending.message.chars().take(ENDING_CHARS_MAX).collect();
        // Only the first one counts.
        let _ = shared.ending.set(Ending { message, code: ending.code });
        // Wakes the calls that wait.
        self.slowest.send_modify(|_| ());
        Ok(())
    }

    fn join(&self, worker: u32, n_workers: u32) -> std::result::Result<Worker, Refusal> {
        let expected = self.state.workers.len();
        if n_workers as usize != expected {
            return Err(Refusal::conflict(format!(
                "{n_workers} workers, expected {expected}; pass the same number to --worker I/N and to --workers of \
                 the server"
            )));
        }
        Ok(self.state.known(worker)?.clone())
    }

    fn push(&mut self, push: PushRequest, account: Account, answer: Answer<bool>, work: &mut Work) {
        match self.state.judge(&push) {
            Ok(Verdict::New(staleness)) => {
                work.bytes += memory_of(&push);
                work.accounts.push(account);
                let entry = Entry::Push(push);
                self.note(&entry, work);
                if let Entry::Push(push) = entry {
                    work.effects.extend(self.state.accept(push, staleness).into_iter().map(Effect::Push));
                }
                work.answer(answer, Ok(false));
            }
            Ok(Verdict::Repeated) => {
                self.since_start.repeated += 1;
                // Also after the group: the push may have been accepted a moment ago.
                work.answer(answer, Ok(true));
            }
            Ok(Verdict::TooOld(staleness)) => {
                self.since_start.too_old += 1;
                let bound = self.state.staleness.unwrap_or(u64::MAX);
                let message =
                    format!("rows that are {staleness} steps old, expected at most --staleness {bound}");
                work.answer(answer, Err(Refusal::conflict(message)));
            }
            Err(refusal) => {
                self.since_start.refused += 1;
                work.answer(answer, Err(refusal));
            }
        }
    }

    fn leave(
        &mut self,
        worker: u32,
        number: u64,
        work: &mut Work,
        shared: &Shared,
    ) -> std::result::Result<(), Refusal> {
        if self.state.known(worker)?.clock != LEFT {
            shared.sum.fetch_add(number, Relaxed);
            self.note(&Entry::Leave(worker), work);
            work.effects.extend(self.state.leave(worker, false).into_iter().map(Effect::Push));
        }
        Ok(())
    }

    /// Removes workers that have been silent for too long, since the start of the process if they had pushed before it.
    fn remove_silent(&mut self, work: &mut Work, shared: &Shared) {
        let heard = locked(&shared.heard).clone();
        let now = Instant::now();
        self.silence.look(now);
        for (worker, heard) in (0..).zip(heard) {
            let Worker { clock, n_parts, .. } = self.state.workers[worker as usize];
            let had_pushed = clock > 0 || n_parts > 0;
            let heard = heard.or(had_pushed.then_some(self.began));
            let is_silent = heard.is_some_and(|heard| self.silence.since(heard) > self.writing.remove_after);
            if is_silent && clock != LEFT && self.log.is_none() {
                // The server is in the process of rank 0.
                if worker > 0 {
                    shared.reached(worker, Stage::Told);
                    let _ = self.end_ranks(&Ending::lost(worker, self.writing.remove_after), shared);
                }
            } else if is_silent && clock != LEFT {
                self.note(&Entry::Remove(worker), work);
                work.effects.extend(self.state.leave(worker, true).into_iter().map(Effect::Push));
                locked(&shared.removed).push(worker);
            }
        }
    }

    /// Logs the group, applies it and answers.
    fn finish(&mut self, mut work: Work, shared: &Shared) -> Result<()> {
        if let Some(log) = &mut self.log {
            if !work.group.is_empty() {
                self.since_start.log_bytes += log.append(&mut work.group)?;
                self.since_start.log_writes += 1;
            }
            let is_due = match self.writing.log_sync {
                LogSync::Always => true,
                LogSync::Interval => self.synced.elapsed() >= SYNC_INTERVAL,
                LogSync::Off => false,
            };
            if is_due {
                log.sync()?;
                self.synced = Instant::now();
            }
        }
        for effect in work.effects {
            match effect {
                Effect::Table(table) => {
                    shared.tables.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(table));
                }
                Effect::Push(push) => {
                    apply(&mut self.state, &push, |table| shared.table(table))?;
                    if !push.counts.is_empty() {
                        shared.keys.write().unwrap_or_else(PoisonError::into_inner).count(&push.counts);
                    }
                }
            }
        }
        self.slowest.send_if_modified(|slowest| {
            let before = std::mem::replace(slowest, self.state.slowest());
            before != *slowest
        });
        work.answers.into_iter().for_each(|answer| answer());
        Ok(())
    }

    /// Begins a snapshot if one is due, and takes note of one that ended.
    fn look_at_snapshot(&mut self, shared: &Shared) -> Result<()> {
        if let Some(snapshot) = self.snapshot.take_if(|snapshot| snapshot.is_finished())
            && let Err(error) = self.end_snapshot(snapshot)
        {
            self.take_note(error, shared);
        }
        let Some(log) = &mut self.log else { return Ok(()) };
        let elapsed = self.snapshot_at.elapsed();
        let is_due = elapsed >= self.writing.snapshot_every && log.n_bytes() > 0;
        let is_long = log.n_bytes() > LOG_BYTES_MAX && elapsed >= SNAPSHOT_AGAIN;
        if self.snapshot.is_none() && (is_due || is_long) {
            // Unlike a failed snapshot, a failed write of the log ends the server.
            log.sync()?;
            if let Err(error) = self.begin_snapshot(shared) {
                self.take_note(error, shared);
            }
        }
        Ok(())
    }

    /// A snapshot that cannot be written is tried again later: the log has what it would have.
    fn take_note(&mut self, error: Error, shared: &Shared) {
        self.since_start.failed_snapshots += 1;
        *locked(&shared.failed_snapshot) = Some(error);
    }

    fn begin_snapshot(&mut self, shared: &Shared) -> Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        self.snapshot_at = Instant::now();
        let number = log.rotate()?;
        let snapshot = Snapshot {
            settings: self.writing.settings.clone(),
            state: self.state.clone(),
            tables: shared.tables.read().unwrap_or_else(PoisonError::into_inner).clone(),
            keys: shared.keys.read().unwrap_or_else(PoisonError::into_inner).to_bytes(),
            number,
            log: log.handle()?,
        };
        let folder = log.folder().to_owned();
        let write = move || {
            snapshot.write(&folder)?;
            Log::delete_before(&folder, number)
        };
        let thread = thread::Builder::new().name("snapshot".to_owned()).spawn(write);
        self.snapshot = Some(thread.map_err(|source| Error::threads(&source))?);
        Ok(())
    }

    fn end_snapshot(&mut self, snapshot: JoinHandle<Result<()>>) -> Result<()> {
        snapshot.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        self.since_start.snapshots += 1;
        Ok(())
    }

    /// Writes the last snapshot.
    fn end(&mut self, shared: &Shared) -> Result<Statistics> {
        for _ in 0..2 {
            if let Some(snapshot) = self.snapshot.take() {
                self.end_snapshot(snapshot)?;
            }
            if self.log.as_ref().is_some_and(|log| log.n_bytes() > 0) {
                self.begin_snapshot(shared)?;
            }
        }
        Ok(self.statistics(shared))
    }

    fn statistics(&self, shared: &Shared) -> Statistics {
        let heard = locked(&shared.heard).clone();
        let State { specs, workers, ledger, held, .. } = &self.state;
        let workers = workers.iter().zip(heard).map(|(worker, heard)| WorkerStatistics {
            steps: (worker.clock != LEFT).then_some(worker.clock),
            removed: worker.is_removed,
            silent_s: heard.map(|heard| heard.elapsed().as_secs_f64()),
            lines: worker.committed.lines,
        });
        let table =
            |spec: &Spec| TableStatistics { name: spec.name.clone(), rows: spec.n_rows, dim: spec.dim };
        let keys = shared.keys.read().unwrap_or_else(PoisonError::into_inner);
        let keys = KeyStatistics { rows: keys.n_keys(), counted: keys.n_counted, left_out: keys.n_left_out };
        let has_keys = shared.place.0 == 0 && specs.iter().any(|spec| spec.min_count > 0);
        Statistics {
            shard: self.writing.settings.shard,
            servers: self.writing.settings.servers,
            bound: self.state.staleness,
            workers: workers.collect(),
            tables: specs.iter().map(table).collect(),
            keys: has_keys.then_some(keys),
            ledger: ledger.clone(),
            balanced: ledger.balances(),
            waiting_pushes: held.len() as u64,
            since_start: SinceStart {
                refused: self.since_start.refused + shared.refused.load(Relaxed),
                ..self.since_start
            },
        }
    }
}

/// Applies a push that was accepted. Each update has a version, so that recovery can tell which ones a snapshot contains.
pub(super) fn apply(
    state: &mut State,
    push: &PushRequest,
    table: impl Fn(u32) -> std::result::Result<Arc<Table>, Refusal>,
) -> Result<()> {
    for update in &push.updates {
        state.n_updates += 1;
        let applied = table(update.table).and_then(|table| table.apply(update, state.n_updates, push.step));
        applied.map_err(|_| Failed::defect("an update that was checked cannot be applied"))?;
    }
    Ok(())
}

/// Repeats an entry of the log.
pub(crate) fn repeat(
    state: &mut State,
    (tables, keys): (&mut Vec<Arc<Table>>, &mut Keys),
    entry: Entry,
    settings: &ServerSettings,
    check_memory: &impl Fn(&[Spec]) -> Result<()>,
) -> Result<()> {
    let broken = |_| Failed::defect("the log has an entry that the state refuses");
    let ready = match entry {
        Entry::Create(request) => {
            let spec = Spec::of_request(request).map_err(broken)?;
            state.specs.push(spec.clone());
            check_memory(&state.specs)?;
            keys.open(&state.specs);
            tables.push(Arc::new(Table::new(spec, settings.shard, settings.servers)));
            Vec::new()
        }
        Entry::Push(push) => match state.judge(&push).map_err(broken)? {
            Verdict::New(staleness) => state.accept(push, staleness),
            Verdict::Repeated | Verdict::TooOld(_) => {
                return Err(Failed::defect("the log has a push that the state refuses").into());
            }
        },
        Entry::Leave(worker) => state.leave(worker, false),
        Entry::Remove(worker) => state.leave(worker, true),
    };
    for push in ready {
        let of =
            |number: u32| tables.get(number as usize).cloned().ok_or_else(|| Refusal::invalid("no table"));
        apply(state, &push, of)?;
        keys.count(&push.counts);
    }
    Ok(())
}

//! Prepares batches in background threads and returns them in order.
//!
//! One thread determines the rows of each batch. If rows are read in blocks, it also reads the next window ahead.
//! Loader i makes the batches i, i + `loaders`, i + 2 · `loaders`, … and puts them into its queue. The consumer reads
//! the queues in the order of the loaders, one batch from each, so the order of batches and errors does not depend on
//! thread timing.
//!
//! Each queue holds [`QUEUE_BATCHES`] batches. With [`Loading::ahead`], no batch is made earlier than that, so that shares
//! of later batches can still change.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use clap::ValueEnum;
use dataset::vocabulary::PADDING;
use program::exit::{Exit, Failed};
use program::threads::locked;
use serde::{Deserialize, Serialize};

use crate::blocks::{WINDOWS_MAX, Windows};
use crate::error::{Error, Result};
use crate::order::{Arrangement, Order};
use crate::part::Part;
use crate::rows::{Rows, Source};
use crate::share::{ShareSchedule, Shares};
use crate::table::Table;

/// Maximum prepared batches per loader.
const QUEUE_BATCHES: usize = 2;

/// One rank's share of a batch. The rows are sorted by length, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Index of the batch in the epoch, from 0.
    pub step: u64,
    /// Batch size over all ranks. Sums of losses are divided by it.
    pub n_rows_global: usize,
    /// Index of this rank's first row in the batch.
    pub first_row: usize,
    /// Indices of this rank's rows in the dataset file; may be empty.
    pub rows: Vec<u32>,
    /// Number of tokens per row, at least 1.
    pub lengths: Vec<i64>,
    /// Number of tokens of this rank's longest row; 0 without rows.
    pub longest: usize,
    /// `[rows, longest]`: each row's tokens, followed by padding.
    pub tokens: Vec<i64>,
    /// 1 for a positive text, otherwise 0.
    pub labels: Vec<u8>,
    /// The most frequent rating of the text's reviews, 1 to 5; the lower one on a tie.
    pub ratings: Vec<u8>,
    /// Factor of each row's loss.
    pub weights: Vec<f64>,
}

impl Batch {
    /// Some rows of the share, without the padding that they do not need.
    pub fn part(&self, rows: Range<usize>) -> Self {
        let longest = self.lengths[rows.clone()].iter().max().map_or(0, |&longest| longest as usize);
        let tokens = rows.clone().flat_map(|row| &self.tokens[row * self.longest..][..longest]);
        Self {
            step: self.step,
            n_rows_global: self.n_rows_global,
            first_row: self.first_row + rows.start,
            longest,
            tokens: tokens.copied().collect(),
            rows: self.rows[rows.clone()].to_vec(),
            lengths: self.lengths[rows.clone()].to_vec(),
            labels: self.labels[rows.clone()].to_vec(),
            ratings: self.ratings[rows.clone()].to_vec(),
            weights: self.weights[rows].to_vec(),
        }
    }
}

/// Weight of a row's loss as a function of n, the number of reviews with its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum RowWeight {
    /// 1 for each text.
    #[default]
    One,
    /// 1 + ln n for a text of n reviews.
    Log,
    /// n for a text of n reviews.
    Count,
}

impl RowWeight {
    /// The weight of a text with `n_votes` reviews. Every choice gives a text with one review the weight 1.
    pub fn of(self, n_votes: u32) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Log => 1.0 + f64::from(n_votes).ln(),
            Self::Count => f64::from(n_votes),
        }
    }
}

/// How rows and batches are assigned to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// For training: a share of each batch.
    Shares {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        world_size: usize,
        /// Shares of all ranks.
        schedule: ShareSchedule,
    },
    /// For evaluation: every `world_size`-th batch, undivided. The last bit of a row's output can depend on the
    /// shape of the batch, so the shape must not depend on the number of ranks.
    Whole {
        /// The rank, and the index of its first batch.
        rank: usize,
        /// The number of ranks.
        world_size: usize,
    },
}

impl Dealing {
    /// All rows of all batches, for a single process.
    pub fn alone() -> Self {
        Self::Whole { rank: 0, world_size: 1 }
    }

    /// Equal shares of each batch.
    pub fn equal(batch_rows: usize, rank: usize, world_size: usize) -> Self {
        let schedule = ShareSchedule::new(Shares::equal(batch_rows, world_size));
        Self::Shares { rank, world_size, schedule }
    }

    fn check(&self, batch_rows: usize) -> Result<()> {
        let (Self::Shares { rank, world_size, .. } | Self::Whole { rank, world_size }) = self;
        if rank >= world_size {
            let expected = format!("less than the number of ranks, {world_size}");
            return Err(Error::setting("the rank", rank, &expected));
        }
        match self {
            Self::Shares { schedule, .. } => {
                schedule.changes().iter().try_for_each(|(_, shares)| shares.check(batch_rows, *world_size))
            }
            Self::Whole { .. } => Ok(()),
        }
    }

    /// Whether this rank has rows of this step.
    fn has(&self, step: u64) -> bool {
        match *self {
            Self::Shares { .. } => true,
            Self::Whole { rank, world_size } => step % world_size as u64 == rank as u64,
        }
    }

    /// This rank's rows of a batch whose rows have these lengths.
    fn cut(&self, step: u64, lengths: &[u32]) -> Range<usize> {
        match self {
            Self::Shares { rank, schedule, .. } => schedule.at(step).range(*rank, lengths),
            Self::Whole { .. } => 0..lengths.len(),
        }
    }
}

/// Settings of a loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// The split.
    pub part: Part,
    /// The order of the rows.
    pub arrangement: Arrangement,
    /// Batch size over all ranks, at least 1.
    pub batch_rows: usize,
    /// The first step. Greater than 0 in a resumed training.
    pub from_step: u64,
    /// This rank's rows of each batch.
    pub dealing: Dealing,
    /// The weight of each row.
    pub row_weight: RowWeight,
    /// Number of threads that make batches, at least 1.
    pub loaders: usize,
    /// If shares can change: the number of batches that are made before the consumer takes them.
    pub ahead: Option<u64>,
}

impl Loading {
    /// All rows of a split in the order for evaluation, on this process alone and by one thread.
    pub fn of_evaluation(part: Part, batch_rows: usize) -> Self {
        Self {
            part,
            arrangement: Arrangement::Fixed,
            batch_rows,
            from_step: 0,
            dealing: Dealing::alone(),
            row_weight: RowWeight::One,
            loaders: 1,
            ahead: None,
        }
    }
}

/// Iterates over a rank's batches of one epoch, in order. Dropping it ends its threads.
pub struct Loader {
    queues: Vec<Receiver<Result<Batch>>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// This rank's remaining steps.
    steps: Steps,
    cut: Arc<Cut>,
    ahead: Option<u64>,
    n_taken: usize,
}

/// How batches are cut, for all threads.
struct Cut {
    now: Mutex<CutNow>,
    changed: Condvar,
}

struct CutNow {
    dealing: Dealing,
    /// The first step that is not made yet.
    end: u64,
}

impl Cut {
    fn lock(&self) -> MutexGuard<'_, CutNow> {
        locked(&self.now)
    }

    /// This rank's rows of a batch whose rows have these lengths. Waits until the batch can be cut.
    fn rows(&self, step: u64, lengths: &[u32]) -> Range<usize> {
        let mut now = self.lock();
        while step >= now.end {
            now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.dealing.cut(step, lengths)
    }

    /// Permits batches up to this step.
    fn permit(&self, end: u64) {
        self.lock().end = end;
        self.changed.notify_all();
    }
}

impl Loader {
    /// Starts the threads.
    pub fn start(rows: &Rows, loading: Loading) -> Result<Self> {
        check_positive("the batch size", loading.batch_rows)?;
        check_positive("loaders", loading.loaders)?;
        loading.dealing.check(loading.batch_rows)?;
        let n_steps = rows.n_rows(loading.part).div_ceil(loading.batch_rows as u64);
        let batches = match rows.source() {
            Source::Memory(tables) => Batches::OfTable(tables[loading.part as usize].clone()),
            Source::Blocks(blocks) => {
                let Loading { part, arrangement, batch_rows, .. } = loading;
                let missing = || Failed::defect("rows read in blocks have no plan");
                let plan = rows.plan(part, batch_rows)?.ok_or_else(missing)?;
                Batches::OfWindows(Windows::new(blocks.clone(), part, arrangement, batch_rows, plan))
            }
        };
        let steps = Steps { dealing: loading.dealing.clone(), next: loading.from_step, end: n_steps };
        let end = loading.ahead.map_or(u64::MAX, |ahead| loading.from_step.saturating_add(ahead));
        let now = CutNow { dealing: loading.dealing.clone(), end };
        let mut loader = Self {
            queues: Vec::new(),
            threads: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            steps: steps.clone(),
            cut: Arc::new(Cut { now: Mutex::new(now), changed: Condvar::new() }),
            ahead: loading.ahead,
            n_taken: 0,
        };
        let mut jobs = Vec::new();
        for number in 0..loading.loaders {
            let (job, jobs_to_do) = channel();
            let (batch, batches_done) = sync_channel(QUEUE_BATCHES);
            jobs.push(job);
            loader.queues.push(batches_done);
            let (cut, row_weight) = (loader.cut.clone(), loading.row_weight);
            loader.spawn(format!("loader {number}"), move || {
                make_batches(&jobs_to_do, &batch, &cut, row_weight);
            })?;
        }
        let stop = loader.stop.clone();
        loader.spawn("loader's reader".to_owned(), move || {
            let mut feed = Feed { jobs, n_sent: 0, steps };
            let fed = match batches {
                Batches::OfTable(table) => feed_table(&mut feed, table, &loading),
                Batches::OfWindows(windows) => feed_windows(&mut feed, &windows, &stop),
            };
            if let Err(error) = fed {
                feed.send(Err(error));
            }
        })?;
        Ok(loader)
    }

    /// Changes the shares from a step on, whose batch and those after it are not made yet.
    ///
    /// # Errors
    /// If a batch of these steps may be made already, or the shares are not those of a batch.
    pub fn change(&mut self, from_step: u64, shares: Shares, batch_rows: usize) -> Result<()> {
        let mut now = self.cut.lock();
        let may_change = from_step >= now.end;
        match &mut now.dealing {
            Dealing::Shares { schedule, world_size, .. } if may_change => {
                shares.check(batch_rows, *world_size)?;
                schedule.change(from_step, shares);
                Ok(())
            }
            _ => {
                let promise = format!("shares changed from batch {from_step} on, which is cut already");
                Err(Failed::defect(promise).into())
            }
        }
    }

    fn spawn(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = Builder::new().name(name).spawn(work).map_err(|source| {
            let message = "cannot start a thread that loads batches; lower the number of loaders";
            Failed::caused(Exit::Io, message, &source)
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Iterator for Loader {
    type Item = Result<Batch>;

    /// Returns this rank's next batch. After an error, there are no more.
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.steps.next()?;
        if let Some(ahead) = self.ahead {
            self.cut.permit((step + 1).saturating_add(ahead));
        }
        let batch = self.queues[self.n_taken % self.queues.len()].recv();
        self.n_taken += 1;
        let batch = batch.unwrap_or_else(|_| {
            Err(Failed::defect(format!("a loader ended before it returned batch {step}")).into())
        });
        if batch.is_err() {
            self.steps.next = self.steps.end;
        }
        Some(batch)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.cut.permit(u64::MAX);
        // A loader thread that makes or sends a batch finds its queue closed.
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // A panic is already printed, and its batch is missing.
            let _ = thread.join();
        }
    }
}

fn check_positive(setting: &'static str, found: usize) -> Result<()> {
    if found > 0 {
        return Ok(());
    }
    Err(Error::setting(setting, found, "1 or more"))
}

/// A rank's steps, in order.
#[derive(Clone)]
struct Steps {
    dealing: Dealing,
    next: u64,
    end: u64,
}

impl Iterator for Steps {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let step = (self.next..self.end).find(|&step| self.dealing.has(step))?;
        self.next = step + 1;
        Some(step)
    }
}

/// The source of batches.
enum Batches {
    OfTable(Arc<Table>),
    OfWindows(Windows),
}

/// Rows that are in memory together, and their order.
struct Window {
    table: Arc<Table>,
    order: Order,
    /// The first step of the order.
    first_step: u64,
    /// Notified when the window is no longer needed.
    released: Option<Sender<()>>,
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(released) = &self.released {
            // Nobody receives it after the last window.
            let _ = released.send(());
        }
    }
}

/// A batch to make.
struct Job {
    step: u64,
    window: Arc<Window>,
}

/// Distributes jobs to the loaders.
struct Feed {
    jobs: Vec<Sender<Result<Job>>>,
    n_sent: usize,
    steps: Steps,
}

impl Feed {
    /// Sends the batches of a window, up to step `end`. Jobs are small, so all of them may be queued.
    fn send_window(&mut self, window: Window, end: u64) {
        let window = Arc::new(window);
        for step in (Steps { end, ..self.steps.clone() }) {
            self.send(Ok(Job { step, window: window.clone() }));
        }
        self.steps.next = end;
    }

    /// The send fails only if the loader has ended; then its batches are not needed.
    fn send(&mut self, job: Result<Job>) {
        let _ = self.jobs[self.n_sent % self.jobs.len()].send(job);
        self.n_sent += 1;
    }
}

fn feed_table(feed: &mut Feed, table: Arc<Table>, loading: &Loading) -> Result<()> {
    let order = Order::of_epoch(loading.arrangement, &table.lengths(), loading.batch_rows);
    let end = feed.steps.end;
    feed.send_window(Window { table, order, first_step: 0, released: None }, end);
    Ok(())
}

fn feed_windows(feed: &mut Feed, windows: &Windows, stop: &AtomicBool) -> Result<()> {
    let (released, releases) = channel();
    for _ in 0..WINDOWS_MAX {
        let _ = released.send(());
    }
    let first = windows.with_step(feed.steps.next);
    if windows.len() == 0 || feed.steps.next >= feed.steps.end {
        return Ok(());
    }
    let Some(mut carried) = windows.carried(first, stop)? else { return Ok(()) };
    for number in first..windows.len() {
        // Wait until an earlier window is released, so that at most WINDOWS_MAX exist.
        let _ = releases.recv();
        let Some(table) = windows.read(number, &carried, stop)? else { return Ok(()) };
        let order = windows.order(number, &table.lengths());
        carried = windows.select(&table, order.left().iter().map(|&place| place as usize));
        let first_step = windows.first_step(number);
        let is_last = number + 1 == windows.len();
        let end = if is_last { feed.steps.end } else { windows.first_step(number + 1) };
        let window = Window { table: Arc::new(table), order, first_step, released: Some(released.clone()) };
        feed.send_window(window, end);
    }
    Ok(())
}

fn make_batches(
    jobs: &Receiver<Result<Job>>,
    batches: &SyncSender<Result<Batch>>,
    cut: &Cut,
    row_weight: RowWeight,
) {
    for job in jobs {
        let batch = job.map(|job| {
            let rows = job.window.order.batch((job.step - job.window.first_step) as usize);
            let lengths: Vec<u32> =
                rows.iter().map(|&place| job.window.table.length(place as usize)).collect();
            let own = cut.rows(job.step, &lengths);
            let first_row = own.start;
            let batch = make_batch(job.step, rows.len(), &job.window.table, &rows[own], row_weight);
            Batch { first_row, ..batch }
        });
        if batches.send(batch).is_err() {
            return;
        }
    }
}

fn make_batch(
    step: u64,
    n_rows_global: usize,
    table: &Table,
    places: &[u32],
    row_weight: RowWeight,
) -> Batch {
    let mut batch = Batch { step, n_rows_global, ..Batch::default() };
    let places = || places.iter().map(|&place| place as usize);
    batch.longest = places().map(|place| table.length(place) as usize).max().unwrap_or(0);
    batch.tokens.reserve_exact(places().len() * batch.longest);
    for (n, place) in places().enumerate() {
        batch.rows.push(table.rows()[place]);
        batch.lengths.push(i64::from(table.length(place)));
        table.append_tokens(place, &mut batch.tokens);
        batch.tokens.resize((n + 1) * batch.longest, i64::from(PADDING));
        batch.labels.push(table.labels()[place]);
        batch.ratings.push(table.ratings()[place]);
        batch.weights.push(row_weight.of(table.n_votes()[place]));
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_one_review_has_weight_one() {
        for weight in [RowWeight::One, RowWeight::Log, RowWeight::Count] {
            assert_eq!(weight.of(1), 1.0);
        }
        assert_eq!(RowWeight::One.of(20), 1.0);
        assert!((RowWeight::Log.of(20) - 3.995_732_273_553_991).abs() < 1e-15);
        assert_eq!(RowWeight::Count.of(20), 20.0);
    }

    #[test]
    fn whole_batches_go_to_the_ranks_in_turn() {
        let steps = |rank| Steps { dealing: Dealing::Whole { rank, world_size: 3 }, next: 0, end: 8 };
        assert_eq!(steps(0).collect::<Vec<_>>(), [0, 3, 6]);
        assert_eq!(steps(2).collect::<Vec<_>>(), [2, 5]);
        let later = Steps { next: 4, ..steps(0) };
        assert_eq!(later.collect::<Vec<_>>(), [6]);
    }
}

//! The steps of a worker: pull, train, push. If the bound allows it, the rows of the next step are pulled while this one is
//! trained, and its updates are pushed while the next one is.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use launch::interrupt::{Asked, Interrupts};
use parameters::{Client, Joined, LEFT, Moment, Pulling, Pushing, Read, Update, Wire};
use report::whole;
use serde::Serialize;
use skipgram::{Decay, Distribution, Done, Rows, Training, Vocabulary, Work};

use super::shares::Share;
use crate::arguments::Embed;
use crate::commands::embed::epochs;
use crate::commands::embed::progress::Progress;
use crate::error::{Error, Result};
use crate::tell::tell;

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// What a worker runs with.
pub(super) struct Steps<'a> {
    pub(super) arguments: &'a Embed,
    pub(super) interrupts: &'a Interrupts,
    pub(super) share: &'a Share,
    pub(super) joined: &'a Joined,
}

/// What the steps of a process cost.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Measured {
    #[serde(skip)]
    pub(super) steps: u64,
    /// Number of pushed rows and messages, and of those the ones that were accepted before.
    pub(super) pushed_rows: u64,
    pub(super) pushes: u64,
    pub(super) repeated_pushes: u64,
    /// Bytes of row numbers and values, pulled and pushed.
    #[serde(skip)]
    pub(super) bytes: u64,
    /// Seconds of all steps, and of those the ones in which the worker waited.
    pub(super) seconds: f64,
    pub(super) waiting_s: f64,
}

/// A step whose rows are being pulled.
struct Begun {
    work: Work,
    rows: Rows,
    pulling: Pulling,
}

/// What the encoding of updates has not sent, by table and row.
type Leftovers = [HashMap<u32, Vec<f32>>; 2];

impl Steps<'_> {
    /// Runs the steps that are left. Returns the training, what the steps cost, and what they brought.
    pub(super) fn run(
        &self,
        client: &Client,
        mut training: Training,
        vocabulary: &Vocabulary,
        mut progress: Option<Progress>,
    ) -> Result<(Training, Measured, Done)> {
        let n_steps = self.share.n_steps(epochs(self.arguments));
        let mut step = if self.joined.step == LEFT { n_steps } else { self.joined.step.min(n_steps) };
        if step > 0 {
            tell(&format!("continuing after step {} of {}", whole(step), whole(n_steps)));
        }
        training.set_n_tokens(self.share.n_words_before(step));
        let settings = training.settings();
        let distribution = Distribution::new(&vocabulary.counts(), 1, settings.power, settings.sample);
        let distribution = Arc::new(distribution);
        let decay = Decay::Linear { n_tokens: self.share.n_words_before(n_steps) };
        let (mut measured, mut done) = (Measured::default(), Done::default());
        let mut leftovers = Leftovers::default();
        let (began, mut told) = (Instant::now(), Instant::now());
        let mut next: Option<Begun> = None;
        let mut pushing: Option<Pushing> = None;
        while step < n_steps {
            if self.interrupts.asked() == Some(Asked::Stop) {
                self.pushed(client, &mut pushing, &mut measured)?;
                return Err(Error::WorkerInterrupted { step });
            }
            let Begun { work, rows, pulling } = match next.take() {
                Some(begun) => begun,
                None => self.begin(client, &training, &distribution, step)?,
            };
            let waited = Instant::now();
            let pulled = client.pulled(pulling)?;
            measured.waiting_s += waited.elapsed().as_secs_f64();
            measured.bytes += pulled.bytes;
            write(&training, &rows, &pulled.values);
            if self.joined.staleness != Some(0) && step + 1 < n_steps {
                next = Some(self.begin(client, &training, &distribution, step + 1)?);
            }
            let is_taken = AtomicBool::new(false);
            let take = || (!is_taken.swap(true, Relaxed)).then(|| work.clone());
            done.add(&training.run(1, decay, &take));
            let mut updates = updates(&training, rows, &pulled.values, &mut leftovers);
            self.pushed(client, &mut pushing, &mut measured)?;
            pushing = Some(client.push(step, &pulled.read_at, &mut updates)?);
            if self.arguments.served.wire != Wire::F32 {
                keep(updates, &mut leftovers);
            }
            if self.joined.staleness == Some(0) {
                self.pushed(client, &mut pushing, &mut measured)?;
            }
            step += 1;
            measured.steps += 1;
            measured.seconds = began.elapsed().as_secs_f64();
            if told.elapsed() >= INTERVAL {
                told = Instant::now();
                self.tell(step, n_steps, &measured, &done);
            }
            if let Some(progress) = &mut progress {
                progress.note(training.n_tokens(), None);
                if step % self.share.n_steps_of_epoch() == 0 {
                    let epoch = (step / self.share.n_steps_of_epoch()) as u32;
                    progress.end_epoch(epoch, epochs(self.arguments), training.n_tokens(), done.loss());
                }
            }
        }
        self.pushed(client, &mut pushing, &mut measured)?;
        measured.seconds = began.elapsed().as_secs_f64();
        progress.map_or(Ok(()), |mut progress| progress.finish())?;
        Ok((training, measured, done))
    }

    /// Starts to pull the rows of a step.
    fn begin(
        &self,
        client: &Client,
        training: &Training,
        distribution: &Arc<Distribution>,
        step: u64,
    ) -> Result<Begun> {
        let place = self.arguments.served.worker;
        let work = Work {
            sentences: self.share.step(step)?,
            distribution: Arc::clone(distribution),
            number: step * u64::from(place.of) + u64::from(place.number),
        };
        let rows = training.rows(&work);
        let reads = [&rows.input, &rows.output].into_iter().zip(0..);
        let reads = reads.map(|(rows, table)| Read { table, rows: rows.clone() }).collect();
        let pulling = client.pull(Moment::Step(step), reads)?;
        Ok(Begun { work, rows, pulling })
    }

    /// Waits for the acknowledgement of the last push.
    fn pushed(&self, client: &Client, pushing: &mut Option<Pushing>, measured: &mut Measured) -> Result<()> {
        if let Some(pushing) = pushing.take() {
            let waited = Instant::now();
            let sent = client.pushed(pushing)?;
            measured.waiting_s += waited.elapsed().as_secs_f64();
            measured.bytes += sent.bytes;
            measured.pushed_rows += sent.rows;
            measured.pushes += sent.pushes;
            measured.repeated_pushes += sent.repeated;
        }
        Ok(())
    }

    fn tell(&self, step: u64, n_steps: u64, measured: &Measured, done: &Done) {
        let pairs_per_s = done.n_pairs as f64 / measured.seconds;
        let waiting = 100.0 * measured.waiting_s / measured.seconds;
        let loss = done.loss().map_or_else(String::new, |loss| format!(", loss {loss:.4}"));
        tell(&format!(
            "step {} of {}, {} pairs/s, {waiting:.0} % waiting{loss}",
            whole(step),
            whole(n_steps),
            whole(pairs_per_s as u64)
        ));
    }
}

/// Writes rows into the tables.
fn write(training: &Training, rows: &Rows, values: &[Vec<f32>]) {
    let tables = [(training.input(), &rows.input), (training.output(), &rows.output)];
    for ((table, rows), values) in tables.into_iter().zip(values) {
        for (row, values) in rows.iter().zip(values.chunks_exact(table.dim())) {
            table.write(*row, 0, values);
        }
    }
}

/// The differences of rows to their values before the step, with what earlier updates of them left.
fn updates(training: &Training, rows: Rows, before: &[Vec<f32>], leftovers: &mut Leftovers) -> [Update; 2] {
    let dim = training.settings().dim;
    let mut after = vec![0.0; dim];
    let tables = [(training.input(), rows.input), (training.output(), rows.output)];
    let mut at = 0;
    tables.map(|(table, rows)| {
        let mut values = Vec::with_capacity(rows.len() * dim);
        for (row, before) in rows.iter().zip(before[at].chunks_exact(dim)) {
            table.read(*row, 0, &mut after);
            let left = leftovers[at].remove(row);
            let from = values.len();
            values.extend(after.iter().zip(before).map(|(after, before)| after - before));
            for (value, left) in values[from..].iter_mut().zip(left.iter().flatten()) {
                *value += left;
            }
        }
        at += 1;
        Update { table: at as u32 - 1, rows, values }
    })
}

/// Keeps what was not sent.
fn keep(updates: [Update; 2], leftovers: &mut Leftovers) {
    for (update, leftovers) in updates.into_iter().zip(leftovers) {
        let dim = update.values.len() / update.rows.len().max(1);
        for (row, values) in update.rows.iter().zip(update.values.chunks_exact(dim.max(1))) {
            leftovers.insert(*row, values.to_vec());
        }
    }
}

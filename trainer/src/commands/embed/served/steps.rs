//! The steps of a worker: pull, train, push. If the bound allows it, the rows of the next step are pulled while this one is
//! trained, and its updates are pushed while the next one is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use launch::interrupt::{Asked, Interrupts};
use parameters::{Client, Joined, LEFT, Moment, Pulling, Pushing, Update, Wire};
use program::exit::{Exit, Failed};
use report::whole;
use serde::Serialize;
use skipgram::{Decay, Distribution, Done, Vocabulary};

use super::read_all;
use super::shares::Share;
use crate::arguments::Embed;
use crate::commands::embed::comparisons::Comparisons;
use crate::commands::embed::epochs;
use crate::commands::embed::model::{Model, check_finite, reads, updates};
use crate::commands::embed::progress::{Counts, Progress};
use crate::commands::texts_out::TextsOut;
use crate::error::Result;
use crate::tell::tell;

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// What a worker runs with.
pub(super) struct Steps<'a> {
    pub(super) arguments: &'a Embed,
    pub(super) interrupts: &'a Interrupts,
    pub(super) client: &'a Client,
    pub(super) joined: &'a Joined,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) share: &'a Share,
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
struct Begun<W> {
    work: W,
    /// Of each table.
    rows: Vec<Vec<u32>>,
    pulling: Pulling,
}

/// What the encoding of updates has not sent, by table and row.
type Leftovers = Vec<HashMap<u32, Vec<f32>>>;

/// The steps of this process.
struct Run<'a, M: Model> {
    steps: &'a Steps<'a>,
    model: M,
    distribution: Arc<Distribution>,
    decay: Decay,
    n_steps: u64,
    leftovers: Leftovers,
    next: Option<Begun<M::Work>>,
    pushing: Option<Pushing>,
    measured: Measured,
    done: Done,
    of_epoch: Done,
}

impl<'a> Steps<'a> {
    /// Runs the steps that are left. Returns the model, what the steps cost, and what they brought. Worker 0 has a
    /// training folder, with a log.
    pub(super) fn run<M: Model>(
        &'a self,
        mut model: M,
        out: Option<&TextsOut>,
        comparisons: &mut Comparisons,
    ) -> Result<(M, Measured, Done)> {
        let (n_steps, n_own) = (self.share.n_most_steps(epochs(self.arguments)), self.n_own());
        let mut step = if self.joined.step == LEFT { n_steps } else { self.joined.step.min(n_steps) };
        if step > 0 {
            tell(&format!("continuing after step {} of {}", whole(step), whole(n_steps)));
        }
        model.set_n_tokens(self.share.n_words_before(step.min(n_own)));
        let mut progress = out.map(|out| Progress::new(out, model.n_tokens())).transpose()?;
        let mut run = Run::new(self, model, n_steps);
        let (began, mut told) = (Instant::now(), Instant::now());
        while step < n_steps {
            if self.interrupts.asked() == Some(Asked::Stop) {
                run.wait_for_push()?;
                let message = format!(
                    "interrupted after step {step}; the servers have its updates: repeat the command, that of worker 0 \
                     with --resume"
                );
                return Err(Failed::new(Exit::TryAgain, message).into());
            }
            run.step(step)?;
            step += 1;
            run.measured.seconds = began.elapsed().as_secs_f64();
            if told.elapsed() >= INTERVAL {
                told = Instant::now();
                run.tell(step, progress.as_mut());
            }
            let is_epoch = step <= n_own && step.is_multiple_of(self.share.n_steps_of_epoch());
            if let (true, Some(progress)) = (is_epoch, &mut progress) {
                run.end_epoch(step, progress, comparisons)?;
            }
        }
        run.wait_for_push()?;
        run.measured.seconds = began.elapsed().as_secs_f64();
        progress.map_or(Ok(()), |mut progress| progress.finish())?;
        Ok((run.model, run.measured, run.done))
    }
}

impl Steps<'_> {
    /// Number of steps with sentences.
    fn n_own(&self) -> u64 {
        self.share.n_steps(epochs(self.arguments))
    }
}

impl<'a, M: Model> Run<'a, M> {
    fn new(steps: &'a Steps<'a>, model: M, n_steps: u64) -> Self {
        Self {
            steps,
            leftovers: model.specs("").iter().map(|_| HashMap::new()).collect(),
            distribution: Arc::new(model.distribution(steps.vocabulary)),
            model,
            decay: Decay::Linear { n_tokens: steps.share.n_words_before(steps.n_own()) },
            n_steps,
            next: None,
            pushing: None,
            measured: Measured::default(),
            done: Done::default(),
            of_epoch: Done::default(),
        }
    }

    /// Pulls the rows of a step, trains it, and starts to push its updates.
    fn step(&mut self, step: u64) -> Result<()> {
        let Steps { client, joined, arguments, .. } = *self.steps;
        let Begun { work, rows, pulling } = match self.next.take() {
            Some(begun) => begun,
            None => self.begin(step)?,
        };
        let waited = Instant::now();
        let pulled = client.pulled(pulling)?;
        self.measured.waiting_s += waited.elapsed().as_secs_f64();
        self.measured.bytes += pulled.bytes;
        self.model.write(&rows, &pulled.values);
        let is_strict = joined.staleness == Some(0);
        if !is_strict && step + 1 < self.n_steps {
            self.next = Some(self.begin(step + 1)?);
        }
        let (done, pushed) = self.model.train(&work, &rows, &pulled.values, self.decay)?;
        self.done.add(&done);
        self.of_epoch.add(&done);
        let mut updates = updates(rows, pushed);
        add(&mut updates, &mut self.leftovers);
        check_finite(&updates, step + 1)?;
        self.wait_for_push()?;
        self.pushing = Some(client.push(step, &pulled.read_at, &mut updates)?);
        if arguments.served.wire != Wire::F32 {
            keep(updates, &mut self.leftovers);
        }
        if is_strict {
            self.wait_for_push()?;
        }
        self.measured.steps += 1;
        Ok(())
    }

    /// Starts to pull the rows of a step.
    fn begin(&self, step: u64) -> Result<Begun<M::Work>> {
        let epochs = epochs(self.steps.arguments);
        let work = self.model.work_on(self.steps.share.work(step, epochs, &self.distribution)?);
        let rows = self.model.rows_of(&work);
        let pulling = self.steps.client.pull(Moment::Step(step), reads(&rows))?;
        Ok(Begun { work, rows, pulling })
    }

    /// Waits for the acknowledgement of the last push.
    fn wait_for_push(&mut self) -> Result<()> {
        if let Some(pushing) = self.pushing.take() {
            let waited = Instant::now();
            let sent = self.steps.client.pushed(pushing)?;
            self.measured.waiting_s += waited.elapsed().as_secs_f64();
            self.measured.bytes += sent.bytes;
            self.measured.pushed_rows += sent.rows;
            self.measured.pushes += sent.pushes;
            self.measured.repeated_pushes += sent.repeated;
        }
        Ok(())
    }

    /// Tells the user about the steps so far, and logs them.
    fn tell(&mut self, step: u64, progress: Option<&mut Progress>) {
        let Measured { seconds, waiting_s, .. } = self.measured;
        let waiting = 100.0 * waiting_s / seconds;
        let loss = self.model.take_loss();
        let loss_text = loss.map_or_else(String::new, |loss| format!(", loss {loss:.4}"));
        tell(&format!(
            "step {} of {}, {} pairs/s, {waiting:.0} % waiting{loss_text}",
            whole(step),
            whole(self.n_steps),
            whole((self.done.n_pairs as f64 / seconds) as u64)
        ));
        if let Some(progress) = progress {
            let n_tokens = self.model.n_tokens();
            progress.write(n_tokens, loss, progress.tokens_per_s(n_tokens), Counts::default());
        }
    }

    /// Ends an epoch of this worker. Vectors are evaluated as they are then on the servers.
    fn end_epoch(&mut self, step: u64, progress: &mut Progress, comparisons: &mut Comparisons) -> Result<()> {
        let Steps { arguments, client, vocabulary, share, .. } = *self.steps;
        let epoch = (step / share.n_steps_of_epoch()) as u32;
        let loss = std::mem::take(&mut self.of_epoch).loss();
        progress.end_epoch(epoch, epochs(arguments), self.model.n_tokens(), loss);
        if comparisons.is_asked() {
            read_all(client, &mut self.model, Moment::Now)?;
        }
        self.model.compare(comparisons, vocabulary, progress);
        Ok(())
    }
}

/// Adds what earlier updates of the rows left.
fn add(updates: &mut [Update], leftovers: &mut Leftovers) {
    for (update, leftovers) in updates.iter_mut().zip(leftovers) {
        let dim = update.values.len() / update.rows.len().max(1);
        for (row, values) in update.rows.iter().zip(update.values.chunks_exact_mut(dim.max(1))) {
            let left = leftovers.remove(row);
            values.iter_mut().zip(left.iter().flatten()).for_each(|(value, left)| *value += left);
        }
    }
}

/// Keeps what was not sent.
fn keep(updates: Vec<Update>, leftovers: &mut Leftovers) {
    for (update, leftovers) in updates.into_iter().zip(leftovers) {
        let dim = update.values.len() / update.rows.len().max(1);
        for (row, values) in update.rows.iter().zip(update.values.chunks_exact(dim.max(1))) {
            leftovers.insert(*row, values.to_vec());
        }
    }
}

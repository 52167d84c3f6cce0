//! The steps of a worker or rank: pull, train, push. If the bound allows it, the rows of the next step are pulled while this
//! one is trained, and its updates are pushed while the next one is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use embeddings::skipgram::{Decay, Distribution, Done, Subwords, Vocabulary};
use launch::interrupt::{Interrupts, Requested};
use parameters::{Client, Joined, LEFT, Moment, Pulling, Pushing, Update, Wire};
use program::exit::{Exit, Failed};
use report::whole;
use serde::Serialize;
use training::Result;
use training::tell::tell;

use super::comparisons::Comparisons;
use super::model::{Model, check_finite, reads, rows_from, updates};
use super::progress::{Counts, Progress};
use super::shares::Share;
use crate::arguments::Train;

/// Time between two lines.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// Rows that are read at once for the model.
const ROWS_AT_ONCE: usize = 1 << 16;

/// What a worker or rank runs with.
pub(super) struct Steps<'a> {
    pub(super) arguments: &'a Train,
    /// By which a worker ends; a rank ends with all others.
    pub(super) interrupts: Option<&'a Interrupts>,
    pub(super) client: &'a Client,
    pub(super) joined: &'a Joined,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) share: &'a Share,
    pub(super) plan: Plan,
}

/// The exchanges with servers, between which there are steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Number of steps, and of those of an epoch.
    pub(super) n_steps: u64,
    pub(super) steps_of_epoch: u64,
    /// Steps of an exchange, which also ends with an epoch.
    pub(super) period: u64,
}

impl Plan {
    /// The step after the exchange that begins with this one.
    fn end(&self, step: u64) -> u64 {
        let next = |of: u64| (step / of + 1) * of;
        next(self.period).min(next(self.steps_of_epoch.max(1))).min(self.n_steps)
    }

    /// The first step after this number of exchanges.
    fn step_after(&self, n_exchanges: u64) -> u64 {
        match self.period {
            1 => n_exchanges.min(self.n_steps),
            _ => (0..n_exchanges).fold(0, |step, _| self.end(step)),
        }
    }

    /// Number of exchanges before a step.
    pub(super) fn exchanges_before(&self, step: u64) -> u64 {
        let mut begins = (0u64..).scan(0, |at, number| {
            let begin = *at;
            *at = self.end(begin);
            Some((number, begin))
        });
        match self.period {
            1 => step,
            _ => begins.find(|&(_, begin)| begin >= step).map_or(0, |(number, _)| number),
        }
    }
}

/// What the exchanges of a process cost.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Measured {
    #[serde(skip)]
    pub(super) exchanges: u64,
    /// Number of pushed rows and messages, and of those the ones that were accepted before.
    pub(super) pushed_rows: u64,
    pub(super) pushes: u64,
    pub(super) repeated_pushes: u64,
    /// Bytes of row numbers and values, pulled and pushed.
    #[serde(skip)]
    pub(super) bytes: u64,
    /// Seconds of all steps, and of those the ones in which the process waited.
    pub(super) seconds: f64,
    pub(super) waiting_s: f64,
}

/// Steps whose rows are being pulled.
struct Begun<W> {
    works: Vec<W>,
    /// The step after them.
    end: u64,
    /// Of each table.
    rows: Vec<Vec<u32>>,
    pulling: Pulling,
}

/// What the encoding of updates has not sent, by table and row.
pub(super) type Leftovers = Vec<HashMap<u32, Vec<f32>>>;

/// The steps of this process.
struct ProcessSteps<'a, M: Model> {
    steps: &'a Steps<'a>,
    model: M,
    distribution: Arc<Distribution>,
    subwords: Option<Arc<Subwords>>,
    decay: Decay,
    /// Number of exchanges so far, and the next step.
    n_exchanges: u64,
    step: u64,
    leftovers: Leftovers,
    next: Option<Begun<M::Work>>,
    pushing: Option<Pushing>,
    measured: Measured,
    done: Done,
    of_epoch: Done,
}

impl<'a> Steps<'a> {
    /// Number of tokens before the steps that are left.
    pub(super) fn n_tokens(&self) -> u64 {
        self.share.n_words_before(self.first().min(self.n_own()))
    }

    /// The first step of those that are left.
    fn first(&self) -> u64 {
        match self.joined.step {
            LEFT => self.plan.n_steps,
            n_exchanges => self.plan.step_after(n_exchanges),
        }
    }

    /// Number of steps with sentences.
    fn n_own(&self) -> u64 {
        self.share.n_steps(self.arguments.epochs())
    }

    /// Runs the steps that are left. Returns the model, what the steps cost, and what they brought. Worker and rank 0 have a
    /// log. `pause` is called with the rows before each step.
    pub(super) fn run<M: Model>(
        &'a self,
        mut model: M,
        mut progress: Option<Progress>,
        comparisons: &mut Comparisons,
        mut pause: impl FnMut(&mut M, u64) -> Result<()>,
    ) -> Result<(M, Measured, Done)> {
        let Plan { n_steps, steps_of_epoch, .. } = self.plan;
        if self.first() > 0 {
            tell(&format!("continuing after step {} of {}", whole(self.first()), whole(n_steps)));
        }
        model.set_n_tokens(self.n_tokens());
        let mut run = ProcessSteps::new(self, model);
        let (began, mut told) = (Instant::now(), Instant::now());
        while run.step < n_steps {
            if self.interrupts.is_some_and(|interrupts| interrupts.requested() == Some(Requested::Stop)) {
                run.wait_for_push()?;
                let message = format!(
                    "interrupted after step {}; the servers have its updates: repeat the command, that of worker 0 \
                     with --resume",
                    run.step
                );
                return Err(Failed::new(Exit::TryAgain, message).into());
            }
            run.exchange(&mut pause)?;
            run.measured.seconds = began.elapsed().as_secs_f64();
            if told.elapsed() >= INTERVAL {
                told = Instant::now();
                run.tell(progress.as_mut());
            }
            let n_epochs = u64::from(self.arguments.epochs());
            let is_epoch = run.step <= steps_of_epoch * n_epochs && run.step.is_multiple_of(steps_of_epoch);
            if let (true, Some(progress)) = (is_epoch, &mut progress) {
                run.end_epoch(progress, comparisons)?;
            }
        }
        run.wait_for_push()?;
        run.measured.seconds = began.elapsed().as_secs_f64();
        progress.map_or(Ok(()), |mut progress| progress.finish())?;
        Ok((run.model, run.measured, run.done))
    }
}

impl<'a, M: Model> ProcessSteps<'a, M> {
    fn new(steps: &'a Steps<'a>, model: M) -> Self {
        let step = steps.first();
        Self {
            steps,
            leftovers: model.specs("").iter().map(|_| HashMap::new()).collect(),
            distribution: Arc::new(model.distribution(steps.vocabulary)),
            subwords: model.subwords(steps.vocabulary).map(Arc::new),
            model,
            decay: Decay::Linear { n_tokens: steps.share.n_words_before(steps.n_own()) },
            n_exchanges: steps.plan.exchanges_before(step),
            step,
            next: None,
            pushing: None,
            measured: Measured::default(),
            done: Done::default(),
            of_epoch: Done::default(),
        }
    }

    /// Pulls the rows of the next steps, trains these, and starts to push their updates.
    fn exchange(&mut self, pause: &mut impl FnMut(&mut M, u64) -> Result<()>) -> Result<()> {
        let Steps { client, joined, arguments, plan, .. } = *self.steps;
        let Begun { works, end, rows, pulling } = match self.next.take() {
            Some(begun) => begun,
            None => self.begin(self.n_exchanges, self.step)?,
        };
        let waited = Instant::now();
        let pulled = client.pulled(pulling)?;
        self.measured.waiting_s += waited.elapsed().as_secs_f64();
        self.measured.bytes += pulled.bytes;
        pause(&mut self.model, self.step)?;
        self.model.write(&rows, &pulled.values);
        let is_strict = joined.staleness == Some(0);
        if !is_strict && end < plan.n_steps {
            self.next = Some(self.begin(self.n_exchanges + 1, end)?);
        }
        let (done, pushed) = self.model.train(&works, &rows, &pulled.values, self.decay)?;
        self.done.add(&done);
        self.of_epoch.add(&done);
        let mut updates = updates(rows, pushed);
        add(&mut updates, &mut self.leftovers);
        check_finite(&updates, end)?;
        self.wait_for_push()?;
        self.pushing = Some(client.push(self.n_exchanges, &pulled.read_at, &mut updates)?);
        if arguments.served.wire != Wire::F32 {
            keep(updates, &mut self.leftovers);
        }
        if is_strict {
            self.wait_for_push()?;
        }
        (self.n_exchanges, self.step) = (self.n_exchanges + 1, end);
        self.measured.exchanges += 1;
        Ok(())
    }

    /// Starts to pull the rows of the steps of an exchange.
    fn begin(&self, exchange: u64, step: u64) -> Result<Begun<M::Work>> {
        let Steps { arguments, share, plan, client, .. } = *self.steps;
        let end = plan.end(step);
        let of_step = |step| {
            let work = share.work(step, arguments.epochs(), &self.distribution, self.subwords.as_ref())?;
            Ok(self.model.work_on(work))
        };
        let works = (step..end).map(of_step).collect::<Result<Vec<_>>>()?;
        let mut rows = vec![Vec::new(); self.leftovers.len()];
        for work in &works {
            rows.iter_mut().zip(self.model.rows_of(work)).for_each(|(rows, of_work)| rows.extend(of_work));
        }
        if works.len() > 1 {
            for rows in &mut rows {
                rows.sort_unstable();
                rows.dedup();
            }
        }
        let pulling = client.pull(Moment::Step(exchange), reads(&rows))?;
        Ok(Begun { works, end, rows, pulling })
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
    fn tell(&mut self, progress: Option<&mut Progress>) {
        let Measured { seconds, waiting_s, .. } = self.measured;
        let waiting = 100.0 * waiting_s / seconds;
        let loss = self.model.take_loss();
        let loss_text = loss.map_or_else(String::new, |loss| format!(", loss {loss:.4}"));
        tell(&format!(
            "step {} of {}, {} pairs/s, {waiting:.0} % waiting{loss_text}",
            whole(self.step),
            whole(self.steps.plan.n_steps),
            whole((self.done.n_pairs as f64 / seconds) as u64)
        ));
        if let Some(progress) = progress {
            let n_tokens = self.model.n_tokens();
            progress.write(n_tokens, loss, progress.tokens_per_s(n_tokens), Counts::default());
        }
    }

    /// Ends an epoch of this process. Vectors are evaluated as they are then on the servers; with a staleness of 0, when all
    /// have ended their steps so far.
    fn end_epoch(&mut self, progress: &mut Progress, comparisons: &mut Comparisons) -> Result<()> {
        let Steps { arguments, client, vocabulary, plan, joined, .. } = *self.steps;
        let epoch = (self.step / plan.steps_of_epoch) as u32;
        let loss = std::mem::take(&mut self.of_epoch).loss();
        progress.end_epoch(epoch, arguments.epochs(), self.model.n_tokens(), loss);
        if comparisons.is_asked() {
            let is_strict = joined.staleness == Some(0);
            let moment = if is_strict { Moment::Step(self.n_exchanges) } else { Moment::Now };
            read_all(client, &mut self.model, moment)?;
        }
        self.model.compare(comparisons, vocabulary, progress);
        Ok(())
    }
}

/// Reads all rows from the servers.
pub(super) fn read_all<M: Model>(client: &Client, model: &mut M, moment: Moment) -> Result<()> {
    let n_rows = model.specs("").iter().map(|spec| spec.n_rows).max().unwrap_or_default();
    read_rows(client, model, moment, n_rows)
}

/// Reads the first rows of each table from the servers.
pub(super) fn read_rows<M: Model>(client: &Client, model: &mut M, moment: Moment, n_rows: u64) -> Result<()> {
    let specs = model.specs("");
    for from in (0..n_rows).step_by(ROWS_AT_ONCE) {
        let rows = rows_from(&specs, from, (n_rows - from).min(ROWS_AT_ONCE as u64));
        let pulled = client.pulled(client.pull(moment, reads(&rows))?)?;
        model.write(&rows, &pulled.values);
    }
    Ok(())
}

/// Adds what earlier updates of the rows left.
pub(super) fn add(updates: &mut [Update], leftovers: &mut Leftovers) {
    for (update, leftovers) in updates.iter_mut().zip(leftovers) {
        let dim = update.values.len() / update.rows.len().max(1);
        for (row, values) in update.rows.iter().zip(update.values.chunks_exact_mut(dim.max(1))) {
            let left = leftovers.remove(row);
            values.iter_mut().zip(left.iter().flatten()).for_each(|(value, left)| *value += left);
        }
    }
}

/// Keeps what was not sent.
pub(super) fn keep(updates: Vec<Update>, leftovers: &mut Leftovers) {
    for (update, leftovers) in updates.into_iter().zip(leftovers) {
        let dim = update.values.len() / update.rows.len().max(1);
        for (row, values) in update.rows.iter().zip(update.values.chunks_exact(dim.max(1))) {
            leftovers.insert(*row, values.to_vec());
        }
    }
}

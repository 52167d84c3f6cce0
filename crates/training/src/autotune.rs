//! Searches the settings of a training within a time, and prints the best as a command.
//!
//! Trials run one after the other in a thread. The main thread keeps the time: a trial that does not stop when it
//! should is abandoned, and the program ends with the best settings so far.

mod command;
mod output;
mod plan;
pub mod search;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use launch::interrupt::{Interrupts, Requested};

pub use self::command::Trained;
use self::output::Output;
use self::plan::{End, Reason, Trial};
pub use self::plan::{Limit, Metrics, Plan};
use self::search::{Flags, Search};
use crate::arguments::MetricName;
use crate::error::{Error, Result};

/// Time between two checks for signals.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// Time for a trial to stop before it is abandoned.
const GRACE: Duration = Duration::from_millis(300);
/// Maximum share of the time that one trial may take, unless the first one takes more than half of it.
const SHARE_OF_TRIAL: f64 = 0.25;

enum Event {
    Ended(Trial),
    Finished(Result<Reason>),
}

impl Plan {
    /// Runs trials and prints the best. `run` trains with some flags; `None` if it was stopped.
    pub fn run(
        self,
        run: impl FnMut(&Flags, &Limit) -> Result<Option<Metrics>> + Send + 'static,
    ) -> Result<()> {
        let interrupts = Interrupts::listen().map_err(Error::Signals)?;
        let mut output = Output::new(&self)?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = channel();
        let trials = Trials {
            search: Search::new(self.spaces.clone(), self.seed),
            metric: self.arguments.metric,
            n_max: self.arguments.trials.unwrap_or(u32::MAX),
            minutes: self.arguments.minutes,
            first_s: 0.0,
            limit: Limit { at: self.end(), is_stopped: Arc::clone(&is_stopped) },
        };
        let work = move || {
            let finished = trials.run(run, &sender);
            // Without a receiver the program ends already.
            let _ = sender.send(Event::Finished(finished));
        };
        let worker = thread::Builder::new().name("trials".to_owned()).spawn(work);
        worker.map_err(|source| Error::io("thread".as_ref(), source))?;
        let reason = watch(&receiver, &interrupts, &is_stopped, self.end(), &mut output)?;
        output.finish(&self, reason)
    }
}

/// Receives trials until the search has ended or must end.
fn watch(
    receiver: &Receiver<Event>,
    interrupts: &Interrupts,
    is_stopped: &AtomicBool,
    end: Instant,
    output: &mut Output,
) -> Result<Reason> {
    let mut interrupted = None;
    loop {
        match receiver.recv_timeout(CHECK_EVERY) {
            Ok(Event::Ended(trial)) => output.note(trial)?,
            Ok(Event::Finished(Ok(_) | Err(_))) if interrupted.is_some() => return Ok(Reason::Interrupted),
            Ok(Event::Finished(reason)) => return reason,
            Err(RecvTimeoutError::Timeout) => output.show(end),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal(&"the thread of the trials has ended"));
            }
        }
        let now = Instant::now();
        if interrupted.is_none() && interrupts.requested() == Some(Requested::Stop) {
            is_stopped.store(true, Ordering::Relaxed);
            interrupted = Some(now);
        }
        if interrupted.is_some_and(|at| now >= at + GRACE) {
            return Ok(Reason::Interrupted);
        }
        if now >= end + GRACE {
            return Ok(Reason::Time);
        }
    }
}

/// The trials of a search.
struct Trials {
    search: Search,
    metric: MetricName,
    n_max: u32,
    minutes: f64,
    /// Seconds of the first trial.
    first_s: f64,
    /// The limit of all trials.
    limit: Limit,
}

impl Trials {
    /// Runs trials until the time is over or nothing is left to try.
    fn run(
        mut self,
        mut run: impl FnMut(&Flags, &Limit) -> Result<Option<Metrics>>,
        sender: &Sender<Event>,
    ) -> Result<Reason> {
        for number in 1..=self.n_max {
            if self.limit.is_over() {
                return Ok(Reason::Time);
            }
            let Some(point) = self.search.next() else { return Ok(Reason::Exhausted) };
            let flags = self.search.flags(&point);
            let limit = self.limit_of(number);
            let began = Instant::now();
            let end = match run(&flags, &limit) {
                // No settings can be trained, or the message is of the input.
                Err(error) if number == 1 => return Err(error),
                Err(error) => End::Failed(program::exit::chain(&error)),
                // The end of the search is not the trial's.
                Ok(None) if self.limit.is_over() => return Ok(Reason::Time),
                Ok(None) => End::Stopped,
                Ok(Some(metrics)) if !metrics.score(self.metric).is_finite() => {
                    End::Failed("the metric is not a finite number".to_owned())
                }
                Ok(Some(metrics)) => End::Measured(metrics),
            };
            let trial = Trial { number, flags, end, seconds: began.elapsed().as_secs_f64() };
            if number == 1 {
                self.first_s = trial.seconds;
            }
            if let Some(score) = trial.score(self.metric) {
                self.search.note(&point, score);
            }
            if sender.send(Event::Ended(trial)).is_err() {
                return Ok(Reason::Time);
            }
        }
        Ok(Reason::Trials)
    }

    fn limit_of(&self, number: u32) -> Limit {
        let share = Duration::from_secs_f64((60.0 * self.minutes * SHARE_OF_TRIAL).max(2.0 * self.first_s));
        let own = if number == 1 { self.limit.at } else { Instant::now() + share };
        Limit { at: own.min(self.limit.at), is_stopped: Arc::clone(&self.limit.is_stopped) }
    }
}

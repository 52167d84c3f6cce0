//! Measures how a rank spends its time: on the phases of a step, or waiting.

use std::time::{Duration, Instant};

use batches::balance::Measured;
use c10d::Reducer;
use runs::training::{Profile, RankTimes};
use tch::{Device, Tensor};

use crate::error::Result;
use crate::ranks::Ranks;

/// What a rank does in a part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for a batch.
    Loading,
    /// It computes outputs.
    Forward,
    /// It computes losses and gradients.
    Backward,
    /// It waits until the slowest rank has computed its gradients.
    Waiting,
    /// It exchanges gradients.
    Reduction,
    /// It clips gradients and changes weights.
    Optimizer,
}

impl Phase {
    /// All phases, each at its number.
    pub const ALL: [Self; 6] =
        [Self::Loading, Self::Forward, Self::Backward, Self::Waiting, Self::Reduction, Self::Optimizer];

    /// The name in a trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Waiting => "waiting",
            Self::Reduction => "reduction",
            Self::Optimizer => "optimizer",
        }
    }
}

/// A phase of a step.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The phase.
    pub phase: Phase,
    /// Its begin.
    pub begin: Instant,
    /// Its duration.
    pub took: Duration,
}

/// Measures one rank's times in an epoch.
#[derive(Debug)]
pub struct Stopwatch {
    begin: Instant,
    device: Device,
    has_others: bool,
    rows: u64,
    sent_bytes: u64,
    /// By number of the phase.
    totals: [Duration; Phase::ALL.len()],
    /// The phases of the current step.
    spans: Vec<Span>,
    lap: Lap,
}

/// The start of a step, and the work of its batches.
#[derive(Debug)]
struct Lap {
    begin: Instant,
    /// Time that was spent waiting before it.
    waited: Duration,
    rows: usize,
    work: u64,
    batches: u64,
}

impl Lap {
    fn begin(waited: Duration) -> Self {
        Self { begin: Instant::now(), waited, rows: 0, work: 0, batches: 0 }
    }
}

impl Stopwatch {
    /// Starts measuring a rank that computes on this device without others.
    pub fn alone(device: Device) -> Self {
        Self {
            begin: Instant::now(),
            device,
            has_others: false,
            rows: 0,
            sent_bytes: 0,
            totals: Default::default(),
            spans: Vec::new(),
            lap: Lap::begin(Duration::ZERO),
        }
    }

    /// Starts measuring one of several ranks.
    pub fn among_ranks(device: Device) -> Self {
        Self { has_others: true, ..Self::alone(device) }
    }

    /// Counts the rows of a share, and its work.
    pub fn count(&mut self, rows: usize, work: u64) {
        self.rows += rows as u64;
        self.lap.rows += rows;
        self.lap.work += work;
        self.lap.batches += 1;
    }

    /// Counts bytes sent to other ranks.
    pub fn count_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Measures a phase.
    pub fn measure<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = work();
        self.note(phase, begin, begin.elapsed());
        done
    }

    /// Measures a phase that computes. A GPU with other ranks has computed it when this returns; otherwise the time would
    /// count as that of a later phase, for example of waiting for the other ranks.
    pub fn compute<T>(&mut self, phase: Phase, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let device = Some(self.device).filter(|_| self.has_others);
        self.measure(phase, || {
            let done = work()?;
            device.map_or(Ok(()), c10d::wait_for)?;
            Ok(done)
        })
    }

    /// Does something that is not a part of a step, such as logging or saving a checkpoint.
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = work();
        self.lap.begin += begin.elapsed();
        done
    }

    /// Notes a phase that was measured elsewhere.
    pub fn note(&mut self, phase: Phase, begin: Instant, took: Duration) {
        self.totals[phase as usize] += took;
        self.spans.push(Span { phase, begin, took });
    }

    /// The phases since the last call.
    pub fn end_step(&mut self) -> Vec<Span> {
        let capacity = self.spans.len();
        std::mem::replace(&mut self.spans, Vec::with_capacity(capacity))
    }

    /// Time in a phase since the start.
    pub fn total(&self, phase: Phase) -> Duration {
        self.totals[phase as usize]
    }

    /// Time of waiting for other ranks and of the exchange with them.
    fn for_ranks(&self) -> Duration {
        self.total(Phase::Waiting) + self.total(Phase::Reduction)
    }

    /// The mean measurement of the batches since the last call.
    pub fn lap(&mut self) -> Measured {
        let waited = self.for_ranks() + self.total(Phase::Loading);
        let lap = std::mem::replace(&mut self.lap, Lap::begin(waited));
        let computed = lap.begin.elapsed().saturating_sub(waited.saturating_sub(lap.waited));
        let n = lap.batches.max(1);
        let nanoseconds = u64::try_from(computed.as_nanos()).unwrap_or(u64::MAX) / n;
        Measured { rows: lap.rows / n as usize, work: lap.work / n, nanoseconds }
    }

    /// Computes gradients and reduces them. The reduction starts when this rank has computed its last gradient. It
    /// includes the time until the other ranks have computed theirs. On a GPU, it ends in the next exchange with the other
    /// ranks, and counts as waiting.
    pub fn backward(&mut self, reducer: &Reducer<'_>, loss: &Tensor) -> Result<()> {
        let begin = Instant::now();
        reducer.backward(loss)?;
        // On a GPU, this waits until it has computed the gradients.
        let timeline = reducer.timeline()?;
        let took = begin.elapsed();
        let computed = timeline.iter().map(|bucket| bucket.ready).max().unwrap_or_default().min(took);
        self.note(Phase::Backward, begin, computed);
        self.note(Phase::Reduction, begin + computed, took - computed);
        Ok(())
    }

    /// The times of all ranks.
    pub fn stop(self, ranks: &Ranks) -> Result<Vec<RankTimes>> {
        const PER_S: f64 = 1e6;
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let [seconds, rows, sent] = [micros(self.begin.elapsed()), self.rows as i64, self.sent_bytes as i64];
        let mut own = vec![rows, sent, seconds];
        own.extend(self.totals.map(micros));
        let has_others = self.has_others;
        // A GPU without other ranks is not made to wait after each phase.
        let is_profiled = has_others || self.device == Device::Cpu;
        let times = ranks.gather_i64(&own)?;
        let times = times.chunks_exact(own.len()).enumerate().map(|(rank, of_rank)| {
            let (counts, durations) = of_rank.split_at(2);
            let [seconds, loading_s, forward_s, backward_s, waiting_s, reduction_s, optimizer_s] =
                std::array::from_fn(|at| durations[at] as f64 / PER_S);
            let profile = Profile {
                loading_s,
                forward_s,
                backward_s,
                waiting_s,
                reduction_s,
                optimizer_s,
                sent_bytes: counts[1] as u64,
            };
            let waited_for_ranks_s = Some(if has_others { waiting_s + reduction_s } else { 0.0 });
            RankTimes {
                rank,
                rows: counts[0] as u64,
                seconds,
                waited_for_batches_s: loading_s,
                waited_for_ranks_s,
                profile: is_profiled.then_some(profile),
            }
        });
        Ok(times.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes for some time. Returns its duration, which is longer on a busy machine.
    fn spend(millis: u64) -> Duration {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(millis) {}
        begin.elapsed()
    }

    #[test]
    fn waiting_and_checkpoints_are_no_part_of_a_measurement() {
        let begin = Instant::now();
        let mut stopwatch = Stopwatch::among_ranks(Device::Cpu);
        stopwatch.count(2, 30);
        stopwatch.count(4, 50);
        let computed = stopwatch.measure(Phase::Backward, || spend(10));
        let waited = stopwatch.measure(Phase::Waiting, || spend(40));
        let saved = stopwatch.aside(|| spend(40));
        let Measured { rows, work, nanoseconds } = stopwatch.lap();
        let all = begin.elapsed();
        assert_eq!((rows, work), (3, 40));
        // The mean of both batches is rounded down to nanoseconds.
        let both = Duration::from_nanos(2 * nanoseconds);
        assert!(both + Duration::from_nanos(1) >= computed, "{both:?} of {computed:?}");
        assert!(both <= all - waited - saved, "{both:?} of {all:?} less {waited:?} and {saved:?}");
    }
}

//! Measures how a rank spends its time: it computes, or it waits for batches or for the other ranks.

use std::time::{Duration, Instant};

use balance::Measured;
use c10d::Reducer;
use runs::training::RankTimes;
use tch::{Device, Tensor};

use crate::error::Result;
use crate::ranks::Ranks;

/// Measures one rank's times in an epoch.
#[derive(Debug)]
pub struct Stopwatch {
    begin: Instant,
    device: Device,
    rows: u64,
    for_ranks: Duration,
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
    /// Starts measuring a rank that computes on this device.
    pub fn start(device: Device) -> Self {
        let lap = Lap::begin(Duration::ZERO);
        Self { begin: Instant::now(), device, rows: 0, for_ranks: Duration::ZERO, lap }
    }

    /// Counts the rows of a share, and its work.
    pub fn count(&mut self, rows: usize, work: u64) {
        self.rows += rows as u64;
        self.lap.rows += rows;
        self.lap.work += work;
        self.lap.batches += 1;
    }

    /// The mean measurement of the batches since the last call.
    pub fn lap(&mut self, waited_for_batches_s: f64) -> Measured {
        let waited = self.for_ranks + Duration::from_secs_f64(waited_for_batches_s);
        let lap = std::mem::replace(&mut self.lap, Lap::begin(waited));
        let computed = lap.begin.elapsed().saturating_sub(waited.saturating_sub(lap.waited));
        let n = lap.batches.max(1);
        let nanoseconds = u64::try_from(computed.as_nanos()).unwrap_or(u64::MAX) / n;
        Measured { rows: lap.rows / n as usize, work: lap.work / n, nanoseconds }
    }

    /// Computes gradients and reduces them. The waiting time starts when this rank has computed its last gradient.
    /// It includes the time until the other ranks have computed theirs.
    pub fn backward(&mut self, reducer: &Reducer<'_>, loss: &Tensor) -> Result<()> {
        let begin = Instant::now();
        reducer.backward(loss)?;
        let computed = reducer.timeline().iter().map(|bucket| bucket.ready).max().unwrap_or_default();
        self.for_ranks += begin.elapsed().saturating_sub(computed);
        Ok(())
    }

    /// Measures a call that returns only when the slowest rank has made it.
    pub fn wait<T>(&mut self, meet: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = Instant::now();
        let met = meet()?;
        self.for_ranks += begin.elapsed();
        Ok(met)
    }

    /// The times of all ranks.
    pub fn stop(self, ranks: &Ranks, waited_for_batches_s: f64) -> Result<Vec<RankTimes>> {
        const PER_S: f64 = 1e6;
        let for_ranks = match (ranks.world_size(), self.device) {
            (1, _) => 0.0,
            (_, Device::Cpu) => self.for_ranks.as_secs_f64(),
            _ => -1.0,
        };
        let own = [self.begin.elapsed().as_secs_f64(), waited_for_batches_s, for_ranks];
        let [seconds, for_batches, for_ranks] = own.map(|seconds| (seconds * PER_S) as i64);
        let all = ranks.gather_i64(&[self.rows as i64, seconds, for_batches, for_ranks])?;
        let times = all.chunks_exact(4).enumerate().map(|(rank, of_rank)| RankTimes {
            rank,
            rows: of_rank[0] as u64,
            seconds: of_rank[1] as f64 / PER_S,
            waited_for_batches_s: of_rank[2] as f64 / PER_S,
            waited_for_ranks_s: (of_rank[3] >= 0).then(|| of_rank[3] as f64 / PER_S),
        });
        Ok(times.collect())
    }
}

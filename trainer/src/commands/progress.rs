//! Progress of a training: a bar on a terminal, lines elsewhere, nothing with --quiet, and the metrics in its folder.

use std::time::{Duration, Instant};

use batches::balance::{Decision, Measured, Reason};
use indicatif::{HumanDuration, ProgressBar};
use runs::training::{EpochLine, Line, ShareTimes, StepsLine};
use scoring::Metrics;
use training::log::Log;
use training::tell::{bar, tell, tell_above};

use crate::error::Result;
use crate::train::Event;

/// Time between two lines on standard error, and between two lines of the file.
const INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of a training and logs it. Only on rank 0.
pub struct Progress {
    bar: ProgressBar,
    log: Log,
    /// Steps per epoch; there is a line after each epoch.
    steps_of_epoch: u64,
    /// Steps between two lines (`--log-steps`).
    log_steps: Option<u64>,
    since: IntervalSums,
    epoch: EpochTime,
    left: TimeLeft,
}

/// The start of the part of an epoch that this process computes, and the end of its last step.
struct EpochTime {
    from_step: u64,
    begin: Instant,
    last: Instant,
}

impl EpochTime {
    fn from(from_step: u64) -> Self {
        let now = Instant::now();
        Self { from_step, begin: now, last: now }
    }
}

/// Sums since the last line.
struct IntervalSums {
    begin: Instant,
    rows: u64,
    steps: u64,
    batches: u64,
    loss: f64,
    waited: Duration,
    /// By rank: sums over the batches of the rows of a share, of its work and of its computing time.
    shares: Vec<[f64; 3]>,
}

impl IntervalSums {
    fn new() -> Self {
        Self {
            begin: Instant::now(),
            rows: 0,
            steps: 0,
            batches: 0,
            loss: 0.0,
            waited: Duration::ZERO,
            shares: Vec::new(),
        }
    }

    /// Adds a step whose batches have these mean shares, by rank.
    fn add_shares(&mut self, batches: u64, shares: &[Measured]) {
        self.batches += batches;
        self.shares.resize(shares.len(), [0.0; 3]);
        for (sums, share) in self.shares.iter_mut().zip(shares) {
            let of_batch = [share.rows as f64, share.work as f64, share.nanoseconds as f64 / 1e9];
            for (sum, value) in sums.iter_mut().zip(of_batch) {
                *sum += batches as f64 * value;
            }
        }
    }

    /// The mean shares of a batch, if there are several ranks.
    fn shares(&self, took: Duration) -> Vec<ShareTimes> {
        if self.shares.len() < 2 {
            return Vec::new();
        }
        let n = self.batches as f64;
        let of_batch = took.as_secs_f64() / n;
        let mean = self.shares.iter().map(|sums| sums.map(|sum| sum / n));
        mean.map(|[rows, work, computed_s]| {
            let rest_s = (of_batch - computed_s).max(0.0);
            ShareTimes { rows, work: Some(work), computed_s, rest_s }
        })
        .collect()
    }
}

/// Estimates the time left from the steps of this process.
struct TimeLeft {
    steps: u64,
    from_step: u64,
    begin: Instant,
}

impl TimeLeft {
    fn after(&self, step: u64) -> Option<Duration> {
        let (done, left) = (step.checked_sub(self.from_step)?, self.steps.checked_sub(step)?);
        (done > 0 && left > 0).then(|| self.begin.elapsed().mul_f64(left as f64 / done as f64))
    }
}

impl Progress {
    /// Shows a training of `steps` steps, of which `done` are done.
    pub fn new(steps: u64, done: u64, steps_of_epoch: u64, log_steps: Option<u64>, log: Log) -> Result<Self> {
        let bar = bar(Some(steps), "{msg} {wide_bar} {pos}/{len} steps, {eta} left")?;
        bar.set_position(done);
        let (since, epoch) = (IntervalSums::new(), EpochTime::from(done));
        let left = TimeLeft { steps, from_step: done, begin: Instant::now() };
        Ok(Self { bar, log, steps_of_epoch, log_steps, since, epoch, left })
    }

    /// Shows and logs an event.
    pub fn note(&mut self, event: &Event<'_>) {
        match *event {
            Event::Step { position, loss, rate, norm, drift, rows, batches, waited, shares } => {
                self.epoch.last = Instant::now();
                self.since.rows += rows;
                self.since.steps += 1;
                self.since.loss += loss;
                self.since.waited += waited;
                self.since.add_shares(batches, shares);
                let before = self.bar.position();
                self.bar.set_position(position.steps);
                let took = self.since.begin.elapsed();
                let is_due =
                    self.log_steps.map_or(took >= INTERVAL, |every| position.steps / every > before / every);
                if !is_due && !position.steps.is_multiple_of(self.steps_of_epoch) {
                    return;
                }
                let mean = self.since.loss / self.since.steps as f64;
                let speed = self.since.rows as f64 / took.as_secs_f64();
                let text = format!(
                    "epoch {} step {}: loss {mean:.4}, {speed:.0} rows/s",
                    position.epoch + 1,
                    position.steps
                );
                self.show(&text, self.left.after(position.steps));
                self.log.write(&Line::Steps(StepsLine {
                    epoch: position.epoch + 1,
                    step: position.steps,
                    loss: mean,
                    rate,
                    // A failure of the GPU is reported by the next step.
                    gradient_norm: norm.and_then(|norm| norm.f_double_value(&[]).ok()),
                    drift,
                    reviews_per_s: speed,
                    waited_share: self.since.waited.as_secs_f64() / took.as_secs_f64(),
                    elapsed_s: Some(self.log.elapsed_s()),
                    shares: self.since.shares(took),
                }));
                self.since = IntervalSums::new();
            }
            Event::Restored { position, decisions } => self.log.restore(position.steps, decisions),
            Event::Shares { position, decision } => {
                self.print(&shares(decision));
                self.log.write(&Line::Shares { step: position.steps, decision: (*decision).clone() });
            }
            Event::Epoch { position, loss, validation, test, ranks } => {
                let shown = |part, metrics: Option<&Metrics>| match metrics {
                    Some(metrics) => {
                        format!(", {part} loss {:.4}, accuracy {:.4}", metrics.loss, metrics.accuracy)
                    }
                    None => String::new(),
                };
                let (validated, tested) = (shown("validation", validation), shown("test", test));
                let text =
                    format!("epoch {} finished: training loss {loss:.4}{validated}{tested}", position.epoch);
                self.print(&text);
                self.log.write(&Line::Epoch(EpochLine {
                    epoch: position.epoch,
                    step: position.steps,
                    loss: Some(loss),
                    seconds: Some(self.epoch.last.duration_since(self.epoch.begin).as_secs_f64()),
                    from_step: Some(self.epoch.from_step),
                    validation: validation.copied().map(Into::into),
                    test: test.copied().map(Into::into),
                    ranks: ranks.to_vec(),
                }));
                self.since = IntervalSums::new();
                self.epoch = EpochTime::from(position.steps);
            }
        }
    }

    /// Ends the bar.
    pub fn finish(self) -> Log {
        self.bar.finish_and_clear();
        self.log
    }

    /// Prints a line that stays.
    fn print(&self, text: &str) {
        tell_above(&self.bar, text);
    }

    /// Shows a line. Without a bar, which shows the remaining time itself, the remaining time is appended.
    fn show(&self, text: &str, left: Option<Duration>) {
        if self.bar.is_hidden() {
            let left = left.map_or_else(String::new, |left| format!(", {} left", HumanDuration(left)));
            tell(&format!("{text}{left}"));
        } else {
            self.bar.set_message(text.to_owned());
        }
    }
}

/// A decision about shares in a line.
fn shares(decision: &Decision) -> String {
    let percents = decision.fractions().map(|part| format!("{:.1} %", 100.0 * part));
    let (from, percents) = (decision.from_batch, percents.collect::<Vec<_>>().join(", "));
    let line = format!("shares of the tokens by rank from batch {from} on: {percents}");
    match decision.reason {
        Reason::Faster { before, after } => {
            let gain = 100.0 * (1.0 - after as f64 / before.max(1) as f64);
            format!("{line}; expected to take {gain:.0} % less time")
        }
        Reason::Epoch { .. } => line,
        Reason::Memory { rank } => format!("{line}; a share did not fit into the memory of rank {rank}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_those_of_a_batch_if_steps_have_several() {
        let of = |seconds: u64| Measured { rows: 4, work: 100, nanoseconds: seconds * 1_000_000_000 };
        let mut window = IntervalSums::new();
        window.add_shares(2, &[of(1), of(3)]);
        // The last step of an epoch.
        window.add_shares(1, &[of(4), of(3)]);
        let [fast, slow] = window.shares(Duration::from_secs(15))[..] else { panic!("two ranks") };
        let of_batch = |share: ShareTimes| (share.rows, share.work, share.computed_s, share.rest_s);
        assert_eq!(of_batch(fast), (4.0, Some(100.0), 2.0, 3.0));
        assert_eq!(of_batch(slow), (4.0, Some(100.0), 3.0, 2.0));
    }
}

//! Decides when shares change.

use serde::{Deserialize, Serialize};

use crate::balance::costs::{Cost, Costs, Measured};
use crate::balance::divide::divide;
use crate::balance::per_epoch::{self, EpochDivision};

/// When and how shares change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BalanceRule {
    /// The slowest rank's time is minimised.
    Dynamic {
        /// Steps from a decision that changes nothing to the next one. The first decision follows after three steps, and
        /// so does the one after a change.
        every: u64,
    },
    /// Shares follow the compute times of whole epochs, as in an earlier system.
    PerEpoch {
        /// Epochs between two decisions.
        every: u64,
    },
    /// The decisions of another training are repeated, so that the result does not depend on times.
    Replay {
        /// The decisions.
        decisions: Vec<Decision>,
    },
}

/// Settings of a balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancerSettings {
    /// The rule.
    pub rule: BalanceRule,
    /// Number of ranks.
    pub ranks: usize,
    /// Rows of a whole batch.
    pub batch_rows: usize,
    /// Batches of a step.
    pub step_batches: u64,
    /// Batches from a decision to the first one to which it applies. Earlier ones may be cut already.
    pub delay: u64,
}

/// Steps with new shares that are measured before the next decision: after the start, and after each change.
const NEW_STEPS: u64 = 3;
/// Steps that are kept.
const WINDOW: usize = 100;
/// Minimum predicted gain of a decision, as a part of the time of the slowest rank.
const GAIN_MIN: f64 = 0.02;
/// Minimum predicted gain in standard errors of the most uncertain rank's time.
const GAIN_ERRORS: f64 = 2.0;
/// The limit of a rank is the work of a share that did not fit into its memory, divided by this.
const MEMORY_DIVISOR: u64 = 2;

/// A change of the shares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The first batch with these shares, counted over the whole training.
    pub from_batch: u64,
    /// Parts of a batch's work, by rank. There are as many parts as a whole batch has rows.
    pub parts: Vec<usize>,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    /// Each rank's part of a batch's work.
    pub fn fractions(&self) -> impl Iterator<Item = f64> {
        let all = self.parts.iter().sum::<usize>().max(1) as f64;
        self.parts.iter().map(move |&parts| parts as f64 / all)
    }
}

/// Why shares change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The slowest rank becomes faster.
    Faster {
        /// Expected nanoseconds of the slowest rank with the shares before.
        before: u64,
        /// Expected nanoseconds of the slowest rank with these shares.
        after: u64,
    },
    /// An epoch has ended, under [`BalanceRule::PerEpoch`].
    Epoch {
        /// Rows that the earlier system would leave out of the next epoch.
        left_out: u64,
    },
    /// A share did not fit into the memory of a rank.
    Memory {
        /// The rank.
        rank: usize,
    },
}

/// Divides batches by measurements. Serialized, it is a part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balancer {
    settings: BalancerSettings,
    costs: Costs,
    /// Maximum work of a share, by rank, where a larger one did not fit into memory.
    work_max: Vec<Option<u64>>,
    /// Number of batches before the next decision.
    next_decision: u64,
    /// Shares before the first decision.
    first: Vec<usize>,
    log: Vec<Decision>,
    /// Compute time of each rank in the current epoch, and the number of epochs that have ended.
    epoch_nanoseconds: Vec<u64>,
    epochs: u64,
}

impl Balancer {
    /// Starts with these shares, whose sum is that of a batch.
    pub fn new(settings: BalancerSettings, first: Vec<usize>) -> Self {
        let (work_max, epoch_nanoseconds) = (vec![None; settings.ranks], vec![0; settings.ranks]);
        let (costs, next_decision) = (Costs::new(WINDOW), NEW_STEPS.saturating_mul(settings.step_batches));
        let log = match &settings.rule {
            BalanceRule::Replay { decisions } => decisions.clone(),
            BalanceRule::Dynamic { .. } | BalanceRule::PerEpoch { .. } => Vec::new(),
        };
        Self { settings, costs, work_max, next_decision, first, log, epoch_nanoseconds, epochs: 0 }
    }

    /// Refuses a state that was not saved with this rule and batch size: the name of a field, its value and the valid
    /// values.
    pub fn check(
        &self,
        rule: Option<&BalanceRule>,
        batch_rows: usize,
    ) -> Result<(), (&'static str, String, String)> {
        let BalancerSettings { ranks, .. } = self.settings;
        let settings = BalancerSettings {
            batch_rows,
            rule: rule.unwrap_or(&self.settings.rule).clone(),
            ..self.settings.clone()
        };
        if rule.is_none() || self.settings != settings || ranks < 2 {
            let expected = format!("the rule {rule:?} and {batch_rows} rows");
            let found = format!("{:?}", self.settings).replacen("BalancerSettings", "Settings", 1);
            return Err(("balancer", found, expected));
        }
        let sum = |parts: &[usize]| parts.iter().try_fold(0, |sum: usize, &part| sum.checked_add(part));
        let all = self.log.iter().map(|decision| &decision.parts).chain([&self.first]);
        for parts in all {
            if parts.len() != ranks || sum(parts) != Some(batch_rows) {
                let expected = format!("{ranks} shares with the sum {batch_rows}");
                return Err(("balancer.parts", format!("{parts:?}"), expected));
            }
        }
        let lengths = self.costs.lengths().chain([self.work_max.len(), self.epoch_nanoseconds.len()]);
        match lengths.into_iter().find(|&length| length != ranks) {
            Some(length) => Err(("balancer.costs", format!("{length} ranks"), ranks.to_string())),
            None => Ok(()),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &BalancerSettings {
        &self.settings
    }

    /// The shares of the latest decision.
    fn parts(&self) -> &[usize] {
        self.log.last().map_or(&self.first, |decision| &decision.parts)
    }

    /// The shares of a batch.
    pub fn parts_of(&self, batch: u64) -> &[usize] {
        let decided = self.log.iter().rfind(|decision| decision.from_batch <= batch);
        decided.map_or(&self.first, |decision| &decision.parts)
    }

    /// All decisions. They are sufficient to repeat the training.
    pub fn log(&self) -> &[Decision] {
        &self.log
    }

    /// Notes the measurements of a step, one per rank, and decides. `batch` is the last one of the step; it counts all
    /// batches of the training.
    pub fn note(&mut self, batch: u64, measured: Vec<Measured>) -> Option<&Decision> {
        for (sum, measured) in self.epoch_nanoseconds.iter_mut().zip(&measured) {
            *sum += measured.nanoseconds;
        }
        self.costs.add(measured);
        let BalanceRule::Dynamic { every } = self.settings.rule else { return None };
        if batch + 1 < self.next_decision {
            return None;
        }
        let costs = self.costs.fit()?;
        let parts = divide(self.settings.batch_rows, &costs, &self.limits());
        let slowest = |parts: &[usize]| {
            let times = parts.iter().zip(&costs).map(|(&part, cost)| cost.seconds(part as f64));
            times.fold(0.0, f64::max)
        };
        let (before, after) = (slowest(self.parts()), slowest(&parts));
        self.next_decision = (batch + 1).saturating_add(every.saturating_mul(self.settings.step_batches));
        let error = costs.iter().map(|cost| cost.error).fold(0.0, f64::max);
        if before - after < GAIN_MIN.max(GAIN_ERRORS * error) * before {
            return None;
        }
        let [before, after] = [before, after].map(|seconds| (seconds * 1e9) as u64);
        Some(self.change(batch, parts, Reason::Faster { before, after }))
    }

    /// Notes the end of an epoch of `n_rows` rows, before the batches of the next one are cut, and decides.
    pub fn end_epoch(&mut self, next_batch: u64, n_rows: u64) -> Option<&Decision> {
        let ranks = self.settings.ranks;
        let nanoseconds = std::mem::replace(&mut self.epoch_nanoseconds, vec![0; ranks]);
        self.epochs += 1;
        let BalanceRule::PerEpoch { every } = self.settings.rule else { return None };
        if !self.epochs.is_multiple_of(every.max(1)) || nanoseconds.contains(&0) {
            return None;
        }
        let shares: Vec<f64> = self.parts().iter().map(|&part| part as f64).collect();
        let seconds: Vec<f64> = nanoseconds.iter().map(|&nanoseconds| nanoseconds as f64 / 1e9).collect();
        let EpochDivision { sizes, left_out, .. } =
            per_epoch::plan(&shares, &seconds, self.settings.batch_rows, n_rows);
        self.log.push(Decision { from_batch: next_batch, parts: sizes, reason: Reason::Epoch { left_out } });
        self.log.last()
    }

    /// Notes that a share with this work did not fit into the memory of a rank. With [`BalanceRule::Dynamic`], the rank gets
    /// less.
    pub fn out_of_memory(&mut self, batch: u64, rank: usize, work: u64) -> Option<&Decision> {
        let BalanceRule::Dynamic { .. } = self.settings.rule else { return None };
        let fits = work / MEMORY_DIVISOR;
        self.work_max[rank] = Some(self.work_max[rank].map_or(fits, |max| max.min(fits)));
        let limits = self.limits();
        if self.parts()[rank] <= limits[rank] {
            return None;
        }
        let equal = Cost { fixed: 0.0, per_work: 1.0, error: 0.0 };
        let costs = self.costs.fit().unwrap_or_else(|| vec![equal; self.settings.ranks]);
        let parts = divide(self.settings.batch_rows, &costs, &limits);
        Some(self.change(batch, parts, Reason::Memory { rank }))
    }

    /// Maximum parts of each share, by the step with the most work per row.
    fn limits(&self) -> Vec<usize> {
        let of_row = self.costs.work_per_row_max().unwrap_or(1.0);
        let parts = |max: u64| ((max as f64 / of_row) as usize).max(1);
        self.work_max.iter().map(|max| max.map_or(usize::MAX, parts)).collect()
    }

    fn change(&mut self, batch: u64, parts: Vec<usize>, reason: Reason) -> &Decision {
        let from_batch = batch + 1 + self.settings.delay;
        // Batches up to the change still have the shares before.
        self.next_decision = from_batch.saturating_add(NEW_STEPS.saturating_mul(self.settings.step_batches));
        self.log.push(Decision { from_batch, parts, reason });
        &self.log[self.log.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BATCH: usize = 256;

    /// Ranks whose times follow a formula with noise.
    struct Simulation {
        balancer: Balancer,
        /// Seconds of a batch without work, and seconds per unit of work, by rank.
        truth: Vec<(f64, f64)>,
        step: u64,
        random: u64,
    }

    impl Simulation {
        fn of(truth: &[(f64, f64)]) -> Self {
            let settings = BalancerSettings {
                rule: BalanceRule::Dynamic { every: 10 },
                ranks: truth.len(),
                batch_rows: BATCH,
                step_batches: 1,
                delay: 6,
            };
            let sizes = vec![BATCH / truth.len(); truth.len()];
            let balancer = Balancer::new(settings, sizes);
            Self { balancer, truth: truth.to_vec(), step: 0, random: 1 }
        }

        fn uniform(&mut self) -> f64 {
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.random >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Runs steps whose longest row varies. Returns the sum of the slowest ranks' seconds, relative to the sum with the
        /// best division of each step.
        fn run(&mut self, steps: u64, noise: f64) -> f64 {
            let (mut taken, mut ideal) = (0.0, 0.0);
            for _ in 0..steps {
                let sizes = self.balancer.parts_of(self.step).to_vec();
                let length = 40.0 + (self.uniform() * 60.0).floor();
                let costs: Vec<Cost> = self
                    .truth
                    .iter()
                    .map(|&(fixed, per_work)| Cost { fixed, per_work, error: 0.0 })
                    .collect();
                let of_rows = costs.iter().map(|cost| Cost { per_work: cost.per_work * length, ..*cost });
                let best = divide(BATCH, &of_rows.collect::<Vec<_>>(), &vec![usize::MAX; costs.len()]);
                let slowest = |sizes: &[usize]| {
                    sizes
                        .iter()
                        .zip(&costs)
                        .map(|(&rows, cost)| cost.seconds(rows as f64 * length))
                        .fold(0.0, f64::max)
                };
                taken += slowest(&sizes);
                ideal += slowest(&best);
                let measured = (0..costs.len()).map(|rank| {
                    let work = sizes[rank] as f64 * length;
                    let seconds = costs[rank].seconds(work) * (1.0 + noise * (2.0 * self.uniform() - 1.0));
                    Measured { rows: sizes[rank], work: work as u64, nanoseconds: (seconds * 1e9) as u64 }
                });
                let measured = measured.collect();
                self.balancer.note(self.step, measured);
                self.step += 1;
            }
            ideal / taken
        }
    }

    #[test]
    fn unequal_ranks_reach_95_percent_of_the_ideal_in_400_steps() {
        for noise in [0.0, 0.2] {
            assert!(Simulation::of(&[(0.0, 1e-5), (0.0, 1.79e-5)]).run(400, noise) > 0.95);
            assert!(Simulation::of(&[(0.02, 1e-5), (0.01, 1.79e-5)]).run(400, noise) > 0.95);
            let fast = (0.005, 1e-5);
            assert!(Simulation::of(&[fast, fast, fast, (0.005, 1.79e-5)]).run(400, noise) > 0.95);
        }
    }

    #[test]
    fn equal_ranks_keep_equal_shares_within_a_few_percent() {
        let mut simulation = Simulation::of(&[(0.01, 1e-5); 4]);
        assert!(simulation.run(1000, 0.1) > 0.97);
        assert!(simulation.balancer.log().len() < 10, "{:?}", simulation.balancer.log());
    }

    #[test]
    fn a_rank_that_halves_its_speed_is_followed_within_50_steps() {
        let mut simulation = Simulation::of(&[(0.0, 1e-5), (0.0, 1e-5)]);
        simulation.run(200, 0.1);
        simulation.truth[1].1 *= 2.0;
        simulation.run(50, 0.1);
        assert!(simulation.run(100, 0.1) > 0.95);
    }

    #[test]
    fn shares_of_an_epoch_follow_the_times_of_the_epoch_before() {
        let settings = BalancerSettings {
            rule: BalanceRule::PerEpoch { every: 2 },
            ranks: 4,
            batch_rows: 512,
            step_batches: 1,
            delay: 6,
        };
        let mut balancer = Balancer::new(settings, vec![128; 4]);
        let epoch = |balancer: &mut Balancer, first| {
            let measured =
                |seconds: u64| Measured { rows: 128, work: 1, nanoseconds: seconds * 1_000_000_000 };
            for step in first..first + 20 {
                assert_eq!(balancer.note(step, [1, 1, 1, 2].map(measured).to_vec()), None);
            }
            balancer.end_epoch(first + 20, 10_000).cloned()
        };
        assert_eq!(epoch(&mut balancer, 0), None);
        let (parts, reason) = (vec![146, 147, 146, 73], Reason::Epoch { left_out: 272 });
        assert_eq!(epoch(&mut balancer, 20), Some(Decision { from_batch: 40, parts, reason }));
        assert_eq!((balancer.parts_of(39), balancer.parts_of(40)[3]), (&[128; 4][..], 73));
    }

    #[test]
    fn steps_of_several_batches_are_counted_as_steps() {
        let settings = |step_batches| BalancerSettings {
            rule: BalanceRule::Dynamic { every: 10 },
            ranks: 2,
            batch_rows: BATCH,
            step_batches,
            delay: 2,
        };
        // The step after which there is a decision, if ranks are equal until this step.
        let decided = |step_batches: u64, equal_until: u64| {
            let mut balancer = Balancer::new(settings(step_batches), vec![BATCH / 2; 2]);
            let decides = |step: &u64| {
                let seconds = if *step < equal_until { [1, 1] } else { [1, 3] };
                let measured =
                    seconds.map(|seconds| Measured { rows: 9, work: 9, nanoseconds: seconds * 1_000_000 });
                balancer.note((step + 1) * step_batches - 1, measured.to_vec()).is_some()
            };
            (0..60).find(decides)
        };
        for step_batches in [1, 4, 16] {
            assert_eq!(decided(step_batches, 0), Some(2), "{step_batches} batches");
            let late = decided(step_batches, 10).unwrap();
            assert_eq!(late % 10, 2, "{step_batches} batches: {late}");
        }
    }

    #[test]
    fn a_replay_has_the_decisions_whatever_the_times() {
        let mut first = Simulation::of(&[(0.0, 1e-5), (0.0, 2e-5)]);
        first.run(200, 0.2);
        let decisions = first.balancer.log().to_vec();
        assert!(!decisions.is_empty());
        let mut again = Simulation::of(&[(0.0, 3e-5), (0.0, 1e-5)]);
        let settings =
            BalancerSettings { rule: BalanceRule::Replay { decisions }, ..again.balancer.settings().clone() };
        again.balancer = Balancer::new(settings, vec![BATCH / 2; 2]);
        for step in 0..200 {
            assert_eq!(again.balancer.parts_of(step), first.balancer.parts_of(step));
            again.run(1, 0.2);
        }
        assert_eq!(again.balancer.log(), first.balancer.log());
    }

    #[test]
    fn a_share_that_does_not_fit_is_halved_and_stays_so() {
        let mut simulation = Simulation::of(&[(0.0, 1e-5), (0.0, 4e-5)]);
        simulation.run(100, 0.0);
        let (before, step) = (simulation.balancer.parts()[0], simulation.step);
        let work = before as u64 * 100;
        let decision = simulation.balancer.out_of_memory(step, 0, work).unwrap().clone();
        assert_eq!(decision.parts.iter().sum::<usize>(), BATCH);
        assert_eq!(decision.reason, Reason::Memory { rank: 0 });
        // The longest row has nearly 100 tokens.
        let is_half = |rows: usize| (before / 2..=before / 2 + 5).contains(&rows);
        assert!(is_half(decision.parts[0]), "{before}: {decision:?}");
        simulation.run(200, 0.0);
        assert!(is_half(simulation.balancer.parts()[0]), "{before}: {:?}", simulation.balancer.log());
    }

    proptest! {
        #[test]
        fn a_balancer_that_was_saved_decides_as_one_that_was_not(
            truth in prop::collection::vec((0.0f64..0.1, 1e-6f64..1e-4), 1..5),
            n_before in 0u64..80,
        ) {
            let mut one = Simulation::of(&truth);
            one.run(n_before, 0.2);
            let saved = serde_json::to_string(&one.balancer).unwrap();
            let loaded: Balancer = serde_json::from_str(&saved).unwrap();
            let mut other = Simulation { balancer: loaded, truth, ..one };
            let mut one = Simulation { balancer: one.balancer, truth: other.truth.clone(), ..other };
            prop_assert_eq!(one.run(100, 0.2).to_bits(), other.run(100, 0.2).to_bits());
            prop_assert_eq!(one.balancer.log(), other.balancer.log());
        }

        #[test]
        fn all_shares_have_rows_and_the_sum_of_a_batch(
            times in prop::collection::vec(prop::collection::vec(0u64..10_000, 3), 20..60),
        ) {
            let rule = BalanceRule::Dynamic { every: 3 };
            let settings = BalancerSettings { rule, ranks: 3, batch_rows: BATCH, step_batches: 1, delay: 2 };
            let mut balancer = Balancer::new(settings, vec![86, 85, 85]);
            for (step, times) in (0..).zip(times) {
                let rows = balancer.parts().to_vec();
                let measured = times.iter().zip(rows).map(|(&nanoseconds, rows)| Measured { rows, work: rows as u64, nanoseconds });
                let measured = measured.collect();
                if let Some(decision) = balancer.note(step, measured) {
                    prop_assert!(decision.parts.iter().all(|&rows| rows > 0));
                    prop_assert_eq!(decision.parts.iter().sum::<usize>(), BATCH);
                    prop_assert!(decision.from_batch > step);
                }
            }
        }
    }
}

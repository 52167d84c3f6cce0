//! Decides when shares change.

use serde::{Deserialize, Serialize};

use crate::costs::{Costs, Measured};
use crate::divide::divide;

/// Settings of a balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Number of ranks.
    pub ranks: usize,
    /// Rows of a whole batch.
    pub batch_rows: usize,
    /// Steps between two decisions.
    pub every: u64,
    /// Steps from a decision to the first step to which it applies. Batches of earlier steps may be cut already.
    pub delay: u64,
}

/// Steps before the first decision.
const FIRST: u64 = 5;
/// Steps that are kept.
const WINDOW: usize = 40;
/// Minimum predicted gain of a decision, as a part of the time of the slowest rank.
const GAIN_MIN: f64 = 0.02;
/// The work of a share that did not fit into memory, divided by this, is the rank's limit.
const TOO_LARGE: u64 = 2;

/// A change of the shares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The first step with these shares.
    pub from_step: u64,
    /// Rows of a whole batch, by rank.
    pub sizes: Vec<usize>,
    /// Why.
    pub reason: Reason,
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
    /// A share did not fit into the memory of a rank.
    Memory {
        /// The rank.
        rank: usize,
    },
}

/// Divides batches by measurements. Serialized, it is a part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balancer {
    settings: Settings,
    costs: Costs,
    /// Maximum work of a share, by rank, where a larger one did not fit into memory.
    work_max: Vec<Option<u64>>,
    /// The first step without shares that are decided already.
    next_decision: u64,
    sizes: Vec<usize>,
    log: Vec<Decision>,
}

impl Balancer {
    /// Starts with these shares, whose sum is that of a batch.
    pub fn new(settings: Settings, sizes: Vec<usize>) -> Self {
        let work_max = vec![None; settings.ranks];
        Self { settings, costs: Costs::new(WINDOW), work_max, next_decision: FIRST, sizes, log: Vec::new() }
    }

    /// The shares of the latest decision.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// All decisions. They are sufficient to repeat the training.
    pub fn log(&self) -> &[Decision] {
        &self.log
    }

    /// Notes the measurements of a step, one per rank, and decides. `step` counts all steps of the training.
    pub fn note(&mut self, step: u64, measured: Vec<Measured>) -> Option<&Decision> {
        self.costs.add(measured);
        if step + 1 < self.next_decision {
            return None;
        }
        let costs = self.costs.fit()?;
        let sizes = divide(self.settings.batch_rows, &costs, &self.limits());
        let slowest = |sizes: &[usize]| {
            let times = sizes.iter().zip(&costs).map(|(&rows, cost)| cost.seconds(rows as f64));
            times.fold(0.0, f64::max)
        };
        let (before, after) = (slowest(&self.sizes), slowest(&sizes));
        self.next_decision = step + 1 + self.settings.every;
        if before - after < GAIN_MIN * before {
            return None;
        }
        let [before, after] = [before, after].map(|seconds| (seconds * 1e9) as u64);
        Some(self.change(step, sizes, Reason::Faster { before, after }))
    }

    /// Notes that a share with this work did not fit into the memory of a rank, and gives the rank less.
    pub fn out_of_memory(&mut self, step: u64, rank: usize, work: u64) -> Option<&Decision> {
        let fits = work / TOO_LARGE;
        self.work_max[rank] = Some(self.work_max[rank].map_or(fits, |max| max.min(fits)));
        let limits = self.limits();
        if self.sizes[rank] <= limits[rank] {
            return None;
        }
        let equal = crate::Cost { fixed: 0.0, per_work: 1.0 };
        let costs = self.costs.fit().unwrap_or_else(|| vec![equal; self.settings.ranks]);
        let sizes = divide(self.settings.batch_rows, &costs, &limits);
        Some(self.change(step, sizes, Reason::Memory { rank }))
    }

    /// Maximum rows of each share, so that a step with the longest rows fits.
    fn limits(&self) -> Vec<usize> {
        let of_row = self.costs.work_per_row_max().unwrap_or(1.0);
        let rows = |max: u64| ((max as f64 / of_row) as usize).max(1);
        self.work_max.iter().map(|max| max.map_or(usize::MAX, rows)).collect()
    }

    fn change(&mut self, step: u64, sizes: Vec<usize>, reason: Reason) -> &Decision {
        let from_step = step + 1 + self.settings.delay;
        self.sizes.clone_from(&sizes);
        // Steps up to the change still have the shares before.
        self.next_decision = from_step + FIRST;
        self.log.push(Decision { from_step, sizes, reason });
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
        /// Seconds of a step without work, and seconds per unit of work, by rank.
        truth: Vec<(f64, f64)>,
        sizes: Vec<usize>,
        step: u64,
        random: u64,
    }

    impl Simulation {
        fn of(truth: &[(f64, f64)]) -> Self {
            let settings = Settings { ranks: truth.len(), batch_rows: BATCH, every: 10, delay: 6 };
            let sizes = vec![BATCH / truth.len(); truth.len()];
            let balancer = Balancer::new(settings, sizes.clone());
            Self { balancer, truth: truth.to_vec(), sizes, step: 0, random: 1 }
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
                if let Some(decision) = self.balancer.log().iter().rfind(|of| of.from_step <= self.step) {
                    self.sizes.clone_from(&decision.sizes);
                }
                let length = 40.0 + (self.uniform() * 60.0).floor();
                let costs: Vec<crate::Cost> =
                    self.truth.iter().map(|&(fixed, per_work)| crate::Cost { fixed, per_work }).collect();
                let of_rows =
                    costs.iter().map(|cost| crate::Cost { per_work: cost.per_work * length, ..*cost });
                let best = divide(BATCH, &of_rows.collect::<Vec<_>>(), &vec![usize::MAX; costs.len()]);
                let slowest = |sizes: &[usize]| {
                    sizes
                        .iter()
                        .zip(&costs)
                        .map(|(&rows, cost)| cost.seconds(rows as f64 * length))
                        .fold(0.0, f64::max)
                };
                taken += slowest(&self.sizes);
                ideal += slowest(&best);
                let measured = (0..costs.len()).map(|rank| {
                    let work = self.sizes[rank] as f64 * length;
                    let seconds = costs[rank].seconds(work) * (1.0 + noise * (2.0 * self.uniform() - 1.0));
                    Measured {
                        rows: self.sizes[rank],
                        work: work as u64,
                        nanoseconds: (seconds * 1e9) as u64,
                    }
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
    fn a_share_that_does_not_fit_is_halved_and_stays_so() {
        let mut simulation = Simulation::of(&[(0.0, 1e-5), (0.0, 4e-5)]);
        simulation.run(100, 0.0);
        let (before, step) = (simulation.balancer.sizes()[0], simulation.step);
        let work = before as u64 * 100;
        let decision = simulation.balancer.out_of_memory(step, 0, work).unwrap().clone();
        assert_eq!(decision.sizes.iter().sum::<usize>(), BATCH);
        assert_eq!(decision.reason, Reason::Memory { rank: 0 });
        // The longest row has nearly 100 tokens.
        let is_half = |rows: usize| (before / 2..=before / 2 + 5).contains(&rows);
        assert!(is_half(decision.sizes[0]), "{before}: {decision:?}");
        simulation.run(200, 0.0);
        assert!(is_half(simulation.balancer.sizes()[0]), "{before}: {:?}", simulation.balancer.log());
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
            let mut other = Simulation { balancer: loaded, truth, sizes: one.sizes.clone(), ..one };
            let mut one = Simulation { balancer: one.balancer, truth: other.truth.clone(), sizes: one.sizes, ..other };
            prop_assert_eq!(one.run(100, 0.2).to_bits(), other.run(100, 0.2).to_bits());
            prop_assert_eq!(one.balancer.log(), other.balancer.log());
        }

        #[test]
        fn all_shares_have_rows_and_the_sum_of_a_batch(
            times in prop::collection::vec(prop::collection::vec(0u64..10_000, 3), 20..60),
        ) {
            let settings = Settings { ranks: 3, batch_rows: BATCH, every: 3, delay: 2 };
            let mut balancer = Balancer::new(settings, vec![86, 85, 85]);
            for (step, times) in (0..).zip(times) {
                let rows = balancer.sizes().to_vec();
                let measured = times.iter().zip(rows).map(|(&nanoseconds, rows)| Measured { rows, work: rows as u64, nanoseconds });
                let measured = measured.collect();
                if let Some(decision) = balancer.note(step, measured) {
                    prop_assert!(decision.sizes.iter().all(|&rows| rows > 0));
                    prop_assert_eq!(decision.sizes.iter().sum::<usize>(), BATCH);
                    prop_assert!(decision.from_step > step);
                }
            }
        }
    }
}

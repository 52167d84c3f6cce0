//! The learning rate as a pure function of the step number.
//!
//! Follows Goyal et al. 2017 ("Accurate, Large Minibatch SGD"). A rate that suits a batch of `base_batch_rows` rows
//! grows in proportion to the batch size over all ranks. A high rate would harm a model with random weights, so a
//! warm-up raises the rate step by step. With η the base rate, k = `batch_rows` / `base_batch_rows` and W =
//! `warm_up_steps`, and steps counted from 0:
//!
//! ```text
//! rate(s) = η + (kη - η) · s / W    for s < W, where k > 1
//! rate(s) = kη · decay(s - W)       from then on
//! ```
//!
//! If k is at most 1, there is no warm-up: `rate(s) = kη` for s < W. Decay starts after the warm-up. The schedule
//! assumes optimizers with momentum v ← m·v + g, as in PyTorch, which need no correction when the rate changes.

use serde::{Deserialize, Serialize};

use super::InvalidSetting;

/// Learning rate schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The rate for a batch of the base size.
    pub base_rate: f64,
    /// Size of the base batch.
    pub base_batch_rows: u64,
    /// Batch size over all ranks.
    pub batch_rows: u64,
    /// Number of steps until the full rate; 0 means none.
    pub warm_up_steps: u64,
    /// The decay after the warm-up.
    pub decay: Decay,
}

/// Factor of the rate n steps after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Decay {
    /// 1.
    Constant,
    /// `factor` to the power of n / `every_steps`, rounded down.
    Step {
        /// Number of steps with the same rate.
        every_steps: u64,
        /// Factor between successive rates.
        factor: f64,
    },
    /// Falls linearly from 1 to 0.
    Linear {
        /// The step at which the rate reaches 0, the first one after the last step of the training. Counted
        /// from the start of the training.
        end_step: u64,
    },
    /// Falls from 1 to 0 along half a cosine.
    Cosine {
        /// The step at which the rate reaches 0, the first one after the last step of the training. Counted
        /// from the start of the training.
        end_step: u64,
    },
}

impl Schedule {
    /// Refuses invalid settings.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let refused = |setting, found: String, expected: &str| Err((setting, found, expected.to_owned()));
        if !(self.base_rate > 0.0 && self.base_rate.is_finite()) {
            return refused("the learning rate", self.base_rate.to_string(), "a finite number above 0");
        }
        if self.base_batch_rows == 0 {
            return refused("the base batch size", "0".to_owned(), "1 row or more");
        }
        if self.batch_rows == 0 {
            return refused("the batch size", "0".to_owned(), "1 row or more");
        }
        match self.decay {
            Decay::Step { every_steps: 0, .. } => {
                refused("the steps of one learning rate", "0".to_owned(), "1 or more")
            }
            Decay::Step { factor, .. } if !(factor > 0.0 && factor <= 1.0) => {
                refused("the factor of the learning rate", factor.to_string(), "above 0 and at most 1")
            }
            Decay::Linear { end_step } | Decay::Cosine { end_step } if end_step <= self.warm_up_steps => {
                let warm_up_steps = self.warm_up_steps;
                let expected = format!(
                    "more than the {warm_up_steps} steps of the warm-up; train longer, or warm up less"
                );
                refused("the number of steps", end_step.to_string(), &expected)
            }
            _ => Ok(()),
        }
    }

    /// The learning rate of a step, from 0.
    pub fn rate(&self, step: u64) -> f64 {
        let full = self.base_rate * (self.batch_rows as f64 / self.base_batch_rows as f64);
        match step.checked_sub(self.warm_up_steps) {
            None => {
                let start = self.base_rate.min(full);
                start + (full - start) * (step as f64 / self.warm_up_steps as f64)
            }
            Some(after) => full * self.decay.factor(after, self.warm_up_steps),
        }
    }
}

impl Decay {
    fn factor(self, after: u64, warm_up_steps: u64) -> f64 {
        // 1 at the end and after it.
        let progress = |end_step: u64| (after as f64 / (end_step - warm_up_steps) as f64).min(1.0);
        match self {
            Self::Constant => 1.0,
            Self::Step { every_steps, factor } => factor.powf((after / every_steps) as f64),
            Self::Linear { end_step } => 1.0 - progress(end_step),
            Self::Cosine { end_step } => 0.5 * (1.0 + (std::f64::consts::PI * progress(end_step)).cos()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        base_rate: 0.1,
        base_batch_rows: 256,
        batch_rows: 1024,
        warm_up_steps: 10,
        decay: Decay::Constant,
    };

    #[track_caller]
    fn rates(schedule: Schedule, expected: &[(u64, f64)]) {
        schedule.check().unwrap();
        for &(step, expected) in expected {
            let rate = schedule.rate(step);
            assert!((rate - expected).abs() < 1e-15, "step {step}: {rate}, expected {expected}");
        }
    }

    #[test]
    fn the_warm_up_rises_from_the_base_rate_to_the_full_rate() {
        rates(SCHEDULE, &[(0, 0.1), (1, 0.13), (5, 0.25), (9, 0.37), (10, 0.4), (1_000_000, 0.4)]);
    }

    #[test]
    fn a_batch_up_to_the_base_size_has_no_warm_up() {
        rates(Schedule { batch_rows: 256, ..SCHEDULE }, &[(0, 0.1), (9, 0.1), (10, 0.1)]);
        rates(Schedule { batch_rows: 64, ..SCHEDULE }, &[(0, 0.025), (9, 0.025), (10, 0.025)]);
        rates(Schedule { warm_up_steps: 0, ..SCHEDULE }, &[(0, 0.4), (1, 0.4)]);
    }

    #[test]
    fn decay_steps_count_from_the_end_of_the_warm_up() {
        let decay = Decay::Step { every_steps: 30, factor: 0.1 };
        let expected = [(5, 0.25), (10, 0.4), (39, 0.4), (40, 0.04), (69, 0.04), (70, 0.004)];
        rates(Schedule { decay, ..SCHEDULE }, &expected);
    }

    #[test]
    fn linear_decay_reaches_zero_after_the_last_step() {
        let schedule = Schedule { decay: Decay::Linear { end_step: 110 }, ..SCHEDULE };
        rates(schedule, &[(5, 0.25), (10, 0.4), (35, 0.3), (109, 0.004), (110, 0.0), (500, 0.0)]);
    }

    #[test]
    fn cosine_decay_reaches_zero_after_the_last_step() {
        let schedule = Schedule { decay: Decay::Cosine { end_step: 130 }, ..SCHEDULE };
        // One third of the way, the cosine of 60 degrees is 1/2, so the factor is 3/4.
        rates(schedule, &[(10, 0.4), (50, 0.3), (70, 0.2), (90, 0.1), (130, 0.0), (500, 0.0)]);
    }

    #[test]
    fn invalid_schedules_are_refused() {
        let bad = [
            Schedule { base_rate: 0.0, ..SCHEDULE },
            Schedule { base_rate: f64::NAN, ..SCHEDULE },
            Schedule { base_batch_rows: 0, ..SCHEDULE },
            Schedule { batch_rows: 0, ..SCHEDULE },
            Schedule { decay: Decay::Step { every_steps: 0, factor: 0.1 }, ..SCHEDULE },
            Schedule { decay: Decay::Step { every_steps: 5, factor: 1.5 }, ..SCHEDULE },
            Schedule { decay: Decay::Linear { end_step: 10 }, ..SCHEDULE },
            Schedule { decay: Decay::Cosine { end_step: 3 }, ..SCHEDULE },
        ];
        for schedule in bad {
            assert!(schedule.check().is_err(), "{schedule:?}");
        }
    }
}

//! Divides each batch among ranks of unequal speed.
//!
//! Measurements go in and shares come out: this module reads no clock and no file. Every rank has the measurements of all
//! ranks, so every rank makes the same decision without an exchange.
//!
//! The compute time of a rank for a batch is modelled as `fixed + per_work · work`. Work is what the time grows with, for
//! example tokens. A share is a part of a batch's work. `costs` fits both numbers to the latest steps. `divide` finds the
//! shares with the smallest time of the slowest rank. [`Balancer`] decides when shares change. `per_epoch` is the rule of
//! an earlier system, for comparison.

mod balancer;
mod costs;
mod divide;
mod per_epoch;

pub use balancer::{BalanceRule, Balancer, BalancerSettings, Decision, Reason};
pub use costs::Measured;

//! From a dataset to a trained model.
//!
//! What is here needs no tensors and no network: the rows of a dataset as batches for one rank ([`batches`]), the
//! learning rate of a step ([`schedule`]), and what an evaluation counts ([`metrics`]). All of it is a function of its
//! arguments, so that ranks which are told the same do the same.

mod error;

pub mod batches;
pub mod metrics;
pub mod random;
pub mod schedule;

pub use error::{Error, Result};

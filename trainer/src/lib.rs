//! From a dataset to a trained model.
//!
//! What is here needs no tensors and no network. All of it is a function of its arguments, so that ranks which are told
//! the same do the same.

mod error;

pub mod batches;
pub mod metrics;
pub mod random;

pub use error::{Error, Result};

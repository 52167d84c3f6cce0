//! From a dataset to a trained model.
//!
//! What is here needs no tensors and no network: the rows of a dataset as batches for one rank ([`batches`]), the
//! learning rate of a step ([`schedule`]), and what an evaluation counts ([`metrics`]). All of it is a function of its
//! arguments, so that ranks which are told the same do the same.

mod checkpoint;
mod device;
mod error;
mod init;
mod progress;

pub mod arguments;
pub mod batches;
pub mod evaluate;
pub mod evaluate_model;
pub mod fit;
pub mod interrupt;
pub mod loss;
pub mod metrics;
pub mod models;
pub mod optim;
pub mod predict;
pub mod random;
pub mod ranks;
pub mod saved;
pub mod schedule;
pub mod train;

pub use error::{Error, Result};

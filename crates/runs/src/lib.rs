//! What trainings leave behind, for any model: the folder of a saved model ([`saved`]), checkpoints ([`checkpoints`]), the
//! folder of a training with its events ([`training`]), the same events for TensorBoard ([`tensorboard`]), and what a
//! training was told ([`recipe`]). Knows nothing of how a model computes.

mod error;
mod json;

pub mod checkpoints;
pub mod recipe;
pub mod saved;
pub mod tensorboard;
pub mod training;

pub use error::{Error, Result};

//! What trainings leave behind, for any model: the folder of a saved model ([`saved`]), the folder of a training with its
//! events ([`training`]), and the same events for TensorBoard ([`tensorboard`]). Knows nothing of how a model computes.

mod error;

pub mod saved;
pub mod tensorboard;
pub mod training;

pub use error::{Error, Result};

//! The models that are trained, and how they are kept.

mod lstm;
mod parameters;
mod saving;

pub use lstm::{Dropout, Lstm, LstmSettings, Pool};
pub use parameters::Parameters;
pub(crate) use parameters::{read as read_tensors, write as write_tensors};
pub use saving::{SavedModel, read_model, save_model};

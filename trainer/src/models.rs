//! The models that are trained, and how their weights are kept.

mod lstm;
mod parameters;

pub use lstm::{Dropout, Lstm, LstmSettings, Pool};
pub use parameters::Parameters;
pub(crate) use parameters::{read as read_tensors, write as write_tensors};

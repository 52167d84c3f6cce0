//! The rows of a dataset as batches: which rows, in which order, cut how among ranks.

mod division;
mod order;
mod share;

pub use division::{Division, Part};
pub use order::{Arrangement, Order, POOL_BATCHES};
pub use share::{ShareSchedule, Shares};

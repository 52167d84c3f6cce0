//! The rows of a dataset as batches: which rows, in which order.

mod division;
mod order;

pub use division::{Division, Part};
pub use order::{Arrangement, Order, POOL_BATCHES};

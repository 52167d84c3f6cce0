//! The rows of a dataset as batches: which rows, in which order, cut how among ranks, read from where.
//!
//! `division` says what a row is for, `rows` opens a dataset, `table` holds rows in memory and `blocks` reads those
//! that do not fit, a window at a time. `order` arranges an epoch, `share` cuts a batch among ranks, and `loader`
//! puts all of it together: threads that have the next batches ready.
//!
//! A batch is a function of the dataset, the part, the seed, the epoch, the step, the number of rows of a batch and,
//! where rows are read in blocks, the [`Plan`]. It depends neither on the number of ranks and loaders nor on time,
//! and batch k is found without making those before it. What a rank has of it is a function of its [`Shares`]
//! besides.

mod blocks;
mod division;
mod error;
mod loader;
mod order;
mod rows;
mod share;
mod smallest;
mod table;

pub mod random;

pub use blocks::Plan;
pub use division::{Division, Part};
pub use error::{Error, Result};
pub use loader::{Batch, Dealing, Loader, Loading, RowWeight};
pub use order::{Arrangement, Order, POOL_BATCHES};
pub use rows::{Census, Reading, Rows};
pub use share::{ShareSchedule, Shares};
pub use smallest::{SMALLEST_MAX, Smallest};
pub use table::{Table, Tokens};

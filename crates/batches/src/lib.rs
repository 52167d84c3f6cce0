//! Reads the rows of a dataset as batches, in a reproducible order and with shares for each rank.
//!
//! `division` assigns rows to splits. `rows` opens a dataset. `overlap` counts the texts that two datasets share.
//! `table` holds rows in memory, and `blocks` reads rows that do not fit, one window at a time. `order` arranges an
//! epoch, `share` divides a batch among ranks, and `loader` prepares the next batches in threads. [`balance`] decides the
//! shares of ranks of unequal speed.
//!
//! A batch is a function of the dataset, the split, the seed, the epoch, the step, the batch size and, if rows are
//! read in blocks, the [`Plan`]. It depends neither on the number of ranks and loaders nor on timing. Batch k can be
//! computed without the batches before it. A rank's rows of a batch also depend on its [`Shares`].

pub mod balance;
mod blocks;
mod division;
mod error;
mod loader;
mod order;
mod overlap;
mod part;
mod reading;
mod rows;
mod share;
mod smallest;
mod table;

pub mod random;

pub use blocks::Plan;
pub use division::{Division, Fold};
pub use error::{Error, Result};
pub use loader::{Batch, Dealing, Loader, Loading, RowWeight};
pub use order::{Arrangement, Order, POOL_BATCHES};
pub use part::Part;
pub use reading::Reading;
pub use rows::{Census, Rows};
pub use share::{ShareSchedule, Shares};
pub use smallest::{SMALLEST_MAX, Smallest};
pub use table::{Table, Tokens};

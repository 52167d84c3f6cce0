//! Converts scores of rows into metrics and curves, for any model. [`Scoring`] defines the meaning of a model's
//! outputs. [`Tally`] and [`metrics()`] compute metrics that do not depend on the distribution of rows over ranks.
//! [`roc`] and [`calibration`] compute the curves.

mod curves;
mod error;
mod metrics;

pub use curves::{BINS, Bin, Calibration, calibration, roc};
pub use error::{Error, Result};
pub use metrics::{Confusion, LargerClass, Metrics, N_SUMS, Scoring, Tally, metrics, unranked};

/// A model's result for one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScore {
    /// The row's index in the dataset.
    pub row: u32,
    /// Its label.
    pub label: u8,
    /// The score, computed from the model's outputs by [`Scoring::score`].
    pub score: f32,
}

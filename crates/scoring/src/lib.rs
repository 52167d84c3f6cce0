//! Scores of rows → metrics and curves, for any model: what a model's outputs mean ([`Scoring`]), metrics that do not
//! depend on how the rows were divided among ranks ([`Tally`], [`metrics()`]), the ROC curve and the calibration.

mod curves;
mod error;
mod metrics;

pub use curves::{BINS, Bin, Calibration, calibration, roc};
pub use error::{Error, Result};
pub use metrics::{Confusion, LargerClass, Metrics, N_SUMS, Scoring, Tally, metrics, unranked};

/// What a model says of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScore {
    /// The row's place in the dataset.
    pub row: u32,
    /// Its label.
    pub label: u8,
    /// What the model's outputs come to, by its [`Scoring`].
    pub score: f32,
}

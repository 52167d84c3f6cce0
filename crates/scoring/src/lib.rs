//! Converts scores of rows into metrics and curves, for any model. [`Scoring`] defines the meaning of a model's
//! outputs, and [`Decision`] adds the model's calibration and threshold, which a [`Choice`] has. [`factors()`] fits a
//! sum of the log-odds of two models. [`Accumulator`] and [`metrics()`] compute metrics that do not depend on the
//! distribution of rows over ranks. [`intervals()`] computes their confidence intervals. [`roc`] and [`calibration()`]
//! compute the curves. [`estimates()`] computes the mean and deviation of metrics over folds. [`ClassAccumulator`] is
//! for three or more classes, and [`Counted`] for any number of classes.

mod calibration;
mod choice;
mod class_quality;
mod classes;
mod confusion;
mod counted;
mod curves;
mod decision;
mod error;
mod factors;
mod folds;
mod intervals;
mod loss;
mod measured;
mod metrics;
mod quality;
mod scoring;
mod threshold;

pub use calibration::{Calibrator, Method, calibrate, calibrate_classes, calibrate_logits};
pub use choice::Choice;
pub use class_quality::class_intervals;
pub use classes::{ClassAccumulator, class_metrics, unranked_classes};
pub use confusion::{CLASSES_MAX, Confusion, OfClass, Rates, rates};
pub use counted::{Counted, Scores, metrics_of, scores_of};
pub use curves::{BINS, Bin, Calibration, calibration, roc};
pub use decision::Decision;
pub use error::{Error, Result};
pub use factors::factors;
pub use folds::{Estimate, estimates};
pub use intervals::{Interval, Intervals, RowTexts, intervals, label_intervals};
pub use measured::Measured;
pub use metrics::{Accumulator, LargerClass, Metrics, N_SUMS, metrics, unranked};
pub use quality::{ProbabilityQuality, Quality};
pub use scoring::{ClassScore, LOG_ODDS_MAX, Probabilities, RowScore, Scoring};
pub use threshold::{Criterion, Threshold, ThresholdRule};

//! Converts texts to linear classifiers of weighted word n-grams.
//!
//! `keys` numbers the n-grams of a text. `matrix` lists the n-grams of all texts by row, without rare ones. `weights`
//! computes naive-Bayes and TF-IDF weights. `dual` trains with an L2 penalty and `sparse` with an L1 penalty, both by
//! coordinate `descent`, one classifier per label or one for two labels. `base` is the model from which a training
//! starts. `calibration` converts scores to probabilities. `model` answers.
//!
//! With [`LinearSettings::is_deterministic`] equal texts and settings give the same bits with any number of threads.

mod base;
mod calibration;
mod descent;
mod distinct;
mod dual;
mod keys;
mod matrix;
mod model;
mod named;
mod parallel;
mod row_index;
mod settings;
mod sparse;
#[cfg(test)]
mod tests;
mod training;
mod weights;

pub use calibration::Sigmoid;
pub use keys::AT_THE_END;
pub use model::{Contribution, LinearModel, LinearScratch, Named, Outputs, StoredModel};
pub use row_index::RowKeys;
pub use settings::{Counting, LinearSettings, MarginLoss, NgramTable, Penalty, Weighting};
pub use training::{LinearProgress, Numbered, train};

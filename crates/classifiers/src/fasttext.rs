//! A mean of word and n-gram embeddings with a linear layer, as in fastText (Joulin et al. 2016).
//!
//! `settings` describes a model and its training. `kernel` sums and updates the rows, which all threads share. `order`
//! shuffles the texts of an epoch. `update` is one step, and `training` runs all steps. `rounds` does so with
//! reproducible results, and `state` writes and reads a checkpoint. `model` is the result and its answers.

mod kernel;
mod listing;
mod model;
mod order;
mod program;
mod rounds;
mod row_set;
mod segment;
mod settings;
mod state;
mod top;
mod training;
mod update;

pub use model::{Counted, FastTextModel, Scores};
pub(crate) use program::logistic;
pub use row_set::RowSet;
pub use settings::{FastTextSettings, Loss, Optimizer, Schedule};
pub use training::{FastTextProgress, Training};

#[cfg(test)]
mod tests;

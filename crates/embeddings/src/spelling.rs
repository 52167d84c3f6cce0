//! Converts words to vectors by their characters: an LSTM reads the characters of a word, and a linear layer converts its
//! last state to the vector. So a word that never occurred has a vector too.
//!
//! [`Characters`] numbers the characters of a vocabulary. [`Generator`] has the weights and computes vectors.
//! [`SpellingTraining`] trains it by skip-gram with negative sampling (Mikolov et al. 2013) in batches: the distinct
//! words of a batch pass through the LSTM once, forward and backward, by the crate `kernels`. Results depend on the
//! number of threads, but not on timing. Files are the caller's.
//!
//! Letters of shapes: `V` words, `C` character ids, `E` dimension of a character's embedding, `H` hidden size,
//! `D` dimension of a vector.

mod adam;
mod batches;
mod characters;
mod engine;
mod generator;
mod scores;
mod settings;
mod state;
#[cfg(test)]
mod tests;
mod training;
mod weights;

pub use batches::Part;
pub use characters::Characters;
pub use generator::Generator;
pub use settings::{Outputs, SpellingSettings};
pub use training::{Drawn, SpellingTraining, TableSizes};
pub use weights::{Sizes, Weights};

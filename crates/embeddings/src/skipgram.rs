//! Converts sentences to word vectors, by skip-gram with negative sampling (Mikolov et al. 2013, "Distributed
//! representations of words and phrases and their compositionality").
//!
//! [`Vocabulary`] numbers and counts words as they arrive, in bounded memory. [`Distribution`] draws negative samples by the
//! counts. [`SkipGramTraining`] trains the vectors of the words on [`Sentences`], with threads that share them without
//! locks. With [`NgramBuckets`], the vector of a word is the mean of its own row and the rows of its character n-grams
//! (Bojanowski et al. 2017, "Enriching word vectors with subword information"). Files, streams and clocks are the
//! caller's.

mod characters;
mod distribution;
mod draws;
mod held_out;
mod kernel;
mod numbering;
mod sentences;
mod settings;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod training;
mod vocabulary;
mod windows;
mod worker;

pub use characters::{NgramBuckets, Subwords};
pub use distribution::Distribution;
pub use draws::TableRows;
pub use kernels::simd::Table;
pub use numbering::{Begun, Counting, Growing, count, number, rebuilt_after};
pub use sentences::Sentences;
pub use settings::{Decay, SkipGramSettings};
pub use training::{Done, SkipGramTraining, Work};
pub use vocabulary::{Counted, Vocabulary};

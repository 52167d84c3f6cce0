//! Trains word vectors, by [`skipgram`] or by an LSTM over the characters of a word ([`spelling`]), and converts them to
//! files and back, and to neighbours, analogies, similarities and distances.
//!
//! [`Embedding`] has the vectors of words, and of their character n-grams or a generator if there is one. [`folder`] is the native
//! format of a model, and [`files`] has those of other programs.
//! [`neighbours`], [`analogies`] and [`similarity`] evaluate an embedding, [`pip`] compares two, or one with the
//! factor of a matrix of [`ppmi`], and [`map`] projects one to two dimensions.
//!
//! Letters of shapes: `V` words, `D` dimension, `B` buckets of character n-grams.

pub mod analogies;
mod array;
mod embedding;
mod error;
pub mod files;
pub mod folder;
mod generator;
pub mod map;
pub mod neighbours;
pub mod pip;
pub mod ppmi;
pub mod similarity;
pub mod skipgram;
pub mod spelling;
#[cfg(test)]
mod tests;
mod units;

pub use array::is_sound;
pub use embedding::{CharacterNgrams, Embedding, lower_case};
pub use error::{Error, Result};

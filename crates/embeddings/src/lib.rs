//! Converts word vectors to files and back, and to neighbours, analogies, similarities and distances.
//!
//! [`Embedding`] has the vectors of words, and of their character n-grams if there are some. [`folder`] is the native
//! format of a model. Nothing here knows how vectors are trained.
//!
//! Letters of shapes: `V` words, `D` dimension, `B` buckets of character n-grams.

mod array;
mod embedding;
mod error;
pub mod folder;
#[cfg(test)]
mod tests;

pub use embedding::{CharacterNgrams, Embedding};
pub use error::{Error, Result};

//! Splits cleaned texts into words, numbers them in order of first appearance and counts them. Rows and files
//! are not part of this module.

mod dictionary;
pub mod keys;
mod spans;

pub use dictionary::{CountedWord, Dictionary};
pub use spans::{Span, find_words, room};

//! Cleaned texts → words, numbered in order of appearance and counted. Knows nothing of rows or files.

mod dictionary;
pub mod keys;
mod spans;

pub use dictionary::{Counted, Dictionary};
pub use spans::{Span, find_words, room};

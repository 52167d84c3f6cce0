//! What crosses the pipe between the programs: raw lines in, records and kept words out.
//!
//! Pure: bytes to bytes, no file, no clock, no environment. The mapper, the combiner and the reducer call the same
//! functions, so they cannot disagree.

pub mod cause;
pub mod clean;
pub mod cleaned;
pub mod digest;
mod fasttext;
pub mod format;
pub mod group;
pub mod json;
pub mod judgement;
pub mod ledger;
pub mod lines;
pub mod literal;
mod objects;
mod polarity_csv;
pub mod record;
pub mod review;
pub mod settings;
pub mod stop_words;

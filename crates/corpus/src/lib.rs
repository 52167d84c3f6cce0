//! What crosses the pipe between the programs: raw lines in, records and kept words out.
//!
//! All but [`exit`] and [`pipe`] is pure: bytes to bytes, no file, no clock, no environment. The mapper, the combiner
//! and the reducer call the same functions, so they cannot disagree.

pub mod clean;
pub mod digest;
pub mod exit;
mod fasttext;
pub mod format;
pub mod group;
pub mod json;
pub mod ledger;
pub mod lines;
pub mod literal;
mod objects;
pub mod partition;
pub mod pipe;
pub mod place;
mod polarity_csv;
pub mod progress;
pub mod record;
pub mod review;
pub mod settings;
pub mod stop_words;

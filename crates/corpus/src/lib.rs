//! Parses raw lines into reviews, cleans their texts, splits them into [`words`], and reads, writes and groups records.
//!
//! All functions are pure: bytes to bytes, without files, clocks or the environment. The mapper, the combiner
//! and the reducer call the same functions, so their results are consistent. Only [`arguments`], the flags for formats and
//! settings, reads files that a flag names.

pub mod arguments;
mod buffer;
pub mod cause;
mod class_ratings;
pub mod classes;
pub mod clean;
pub mod cleaned;
pub mod csv;
pub mod digest;
pub mod encoding;
pub mod entry;
mod fasttext;
mod fields;
pub mod format;
pub mod group;
pub mod json;
pub mod json_array;
pub mod judgement;
pub mod labels;
pub mod ledger;
pub mod lines;
pub mod literal;
mod objects;
mod polarity_csv;
mod rating_rule;
pub mod record;
pub mod rejects;
pub mod review;
pub mod sample;
mod scale;
pub mod scripts;
pub mod settings;
mod settings_record;
mod shape;
pub mod shell;
pub mod stop_words;
mod unrated;
mod window;
pub mod words;

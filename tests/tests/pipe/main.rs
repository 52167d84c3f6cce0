//! The path of a review through the real programs: raw line → mapper → sort → combiner → reducer → merge →
//! dataset.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod broken_pipe;
mod by_tasks;
mod dataset_in_s3;
mod defaults;
mod empty;
mod exactly_once;
mod formats;
mod hadoop;
mod in_s3;
mod input;
mod json;
mod large_vocabulary;
mod made;
mod merge_again;
mod months;
mod real_data;
mod replaced;
mod same_bytes;
mod settings;
mod streaming;
mod texts;

//! Converts raw reviews into a dataset on one machine. The dataset has the same bytes as the dataset that
//! mappers, a sort, reducers and a merge produce.
//!
//! Unlike in a Hadoop job, texts are not sorted. All threads read lines, clean texts and put each text into
//! the partition of its hash, with codes in place of words (`mapping.rs`). Then each partition is folded
//! separately: reviews of one text become one row, rows are sorted by hash, and words are counted
//! (`folding.rs`). The rows of the partitions, in the order of the partitions, are the rows of the dataset.
//! Its vocabulary is known after all partitions are folded (`content.rs`). Memory is bounded for every input:
//! data that does not fit is spilled to disk (`scratch.rs`). Lines, texts, rows and datasets are defined by
//! the same crates that the other programs use. `fetch.rs` downloads public corpora.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

pub mod arguments;
mod codebook;
mod content;
mod encoded;
mod extra_file;
mod fetch;
mod folding;
mod job;
mod mapping;
mod origins;
mod partitions;
mod rejects;
mod run;
mod scratch;

use program::exit::Failed;

pub use crate::extra_file::ExtraFile;
pub use crate::fetch::fetch;
pub use crate::job::Options;
pub use crate::run::{Made, run};

/// Result of the program's steps.
pub type Result<T> = std::result::Result<T, Failed>;

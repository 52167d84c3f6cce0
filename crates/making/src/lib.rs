//! Words and rows → one dataset under its name, whole or not at all, with its manifest beside it.
//!
//! Where words and rows come from is not known here: [`DatasetContent`] gives them. Knows nothing of raw text, shards and
//! runs.

mod card;
mod check;
mod content;
mod error;
mod hashes;
mod ids;
mod ledger;
mod make;
mod progress;
mod publish;
mod record;
mod vocabulary;

use std::num::NonZeroUsize;

pub use card::describe;
pub use check::{Checked, check};
pub use content::{DatasetContent, Size};
pub use error::{Error, Result, at};
pub use hashes::Hashes;
pub use ids::Ids;
pub use ledger::ledger_lines;
pub use make::{DatasetOptions, Making, VocabularyFrom};
pub use progress::ProgressBars;
pub use record::{check_version, parsed_record};

/// Threads that read a shard or a dataset: each holds a chunk of every column.
pub const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("8 is more than 0");

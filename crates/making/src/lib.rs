//! Writes words and rows into one dataset, in a folder or in S3. The dataset gets its name only when it is complete. Its
//! manifest is in the same folder.
//!
//! Words and rows come from any implementation of [`DatasetContent`]. Raw text, shards and runs are not part
//! of this crate.

mod beside;
mod bucket;
mod card;
mod check;
mod content;
mod croissant;
mod error;
mod folder;
mod ids;
mod ids_table;
mod input_file;
mod inputs;
mod make;
mod options;
mod output;
mod parquet;
mod publish;
mod record;
mod report;
mod texts;
mod vocabulary;

use std::num::NonZeroUsize;

pub use beside::{BadTextsName, TextsName};
pub use card::describe;
pub use check::{Checked, CheckedFile, check};
pub use content::{DatasetContent, Parts, Rows, Size};
pub use error::{Error, Result, at};
pub use ids::Ids;
pub use input_file::{DatasetFile, Hashes, manifest_of};
pub use inputs::Inputs;
pub use make::Making;
pub use options::{DatasetOptions, VocabularyFrom};
pub use output::{Existing, Output};
pub use program::bars::ProgressBars;
pub use record::parsed_record;
pub use report::{Report, json, ledger_lines};
pub use texts::{GroupSize, TextRow, TextsWriter};

/// Maximum number of threads that read a shard or a dataset. Each holds a chunk of every column.
pub const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("8 is more than 0");

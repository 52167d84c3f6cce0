//! The content of a dataset: words and rows, independent of their source.

use std::num::NonZeroUsize;

use corpus::digest::Digest;
use dataset::Row;

use crate::error::{Error, Result};
use crate::ids::Ids;
use crate::texts::TextsWriter;

/// Default of [`DatasetContent::table_threads`] on machines with more cores.
const TABLE_THREADS_MAX: NonZeroUsize = NonZeroUsize::new(2).expect("2 is more than 0");

/// The content of a dataset.
pub trait DatasetContent {
    /// Why the content is unavailable, or why no dataset can be made from it.
    type Error: From<Error>;

    /// Visits every distinct word once, in any order, with its count.
    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Self::Error>;

    /// Totals of the rows.
    fn size(&mut self) -> Result<Size, Self::Error>;

    /// Visits all rows in the order of a dataset. Their tokens are ids of the vocabulary. Also writes their texts,
    /// in the same order, if there is a file for them; only contents that have texts get one.
    fn each_row(
        &mut self,
        ids: &Ids<'_>,
        texts: Option<&mut TextsWriter>,
        visit: &mut dyn FnMut(&Row) -> Result<()>,
    ) -> Result<(), Self::Error>;

    /// Number of threads that encode or read Parquet files. Each takes up to 60 MiB.
    fn table_threads(&self) -> NonZeroUsize {
        dataset::threads(TABLE_THREADS_MAX)
    }

    /// Whether to stop. Called at intervals until the dataset gets its name.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Totals of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of rows.
    pub rows: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Digest of the rows.
    pub row_digest: Digest,
    /// Number of further rows that are excluded because another dataset has their texts.
    pub left_out: u64,
}

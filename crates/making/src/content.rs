//! The content of a dataset: words and rows, independent of their source.

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;

use corpus::digest::Digest;
use dataset::{EncodedRows, Row, RowsSize};

use crate::error::{Error, Result};
use crate::ids::Ids;
use crate::texts::TextsWriter;

/// Default of [`DatasetContent::table_threads`] on machines with more cores.
const TABLE_THREADS_MAX: NonZeroUsize = NonZeroUsize::new(2).expect("2 is more than 0");

/// The content of a dataset.
pub trait DatasetContent {
    /// Why the content is unavailable, or why no dataset can be made from it.
    type Error: From<Error> + Send;

    /// Visits every distinct word once, in any order, with its count.
    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Self::Error>;

    /// Totals of the rows.
    fn size(&mut self) -> Result<Size, Self::Error>;

    /// The rows in the order of a dataset. Their tokens are ids of the vocabulary.
    fn rows<'a>(&'a mut self, ids: &'a Ids<'a>) -> Result<Rows<'a, Self::Error>, Self::Error>;

    /// Number of threads that read parts and write the dataset.
    fn threads(&self) -> NonZeroUsize;

    /// Number of threads that encode or read Parquet files. Each takes up to 60 MiB.
    fn table_threads(&self) -> NonZeroUsize {
        dataset::threads(TABLE_THREADS_MAX)
    }

    /// Whether to stop. Called at intervals until the dataset gets its name.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The rows of a dataset.
pub enum Rows<'a, E> {
    /// Rows to encode.
    Parts(Box<dyn Parts<Error = E> + 'a>),
    /// Files of consecutive rows that other programs encoded. There is no file of texts.
    Encoded(Box<dyn Iterator<Item = Result<EncodedRows<BufReader<File>>, E>> + 'a>),
}

/// Consecutive parts of the rows. Several threads read them, each another part, in about the order of the parts.
pub trait Parts: Sync {
    /// Why the rows are unavailable.
    type Error;

    /// The size of each part.
    fn sizes(&self) -> &[RowsSize];

    /// Visits the rows of a part in order. Called once per part.
    fn each_row(
        &self,
        part: usize,
        visit: &mut dyn FnMut(&Row) -> dataset::Result<()>,
    ) -> Result<(), Self::Error>;

    /// Writes the texts of a part whose rows were visited. Called once per part, in the order of the parts, if there
    /// is a file of texts; only contents that have texts get one.
    fn write_texts(&self, part: usize, texts: &mut TextsWriter) -> Result<()>;
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

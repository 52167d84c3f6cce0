//! What a dataset is made of: words and rows, wherever they come from.

use corpus::digest::Digest;
use dataset::Row;

use crate::error::{Error, Result};
use crate::ids::Ids;

/// What a dataset is made of.
pub trait DatasetContent {
    /// Why it cannot be had, or why no dataset can be made of it.
    type Error: From<Error>;

    /// Visits every distinct word once, in any order, with how often it occurs.
    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Self::Error>;

    /// What its rows add up to.
    fn size(&mut self) -> Result<Size, Self::Error>;

    /// Visits all rows in the order of a dataset, their tokens being ids of the vocabulary.
    fn each_row(
        &mut self,
        ids: &Ids<'_>,
        visit: &mut dyn FnMut(&Row) -> Result<()>,
    ) -> Result<(), Self::Error>;

    /// Whether the dataset is not wanted any more; asked now and then, until it gets its name.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// What rows add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub rows: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Their digest.
    pub row_digest: Digest,
    /// Rows besides, which are left out because another dataset holds their texts.
    pub left_out: u64,
}

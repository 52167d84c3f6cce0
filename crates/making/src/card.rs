//! The data card of a dataset as text.

use dataset::Row;
use dataset::card::{Card, Summary};
use dataset::dataset_file::DatasetReader;

use crate::THREADS_MAX;
use crate::error::Result;

/// Reads and checks a whole dataset, and returns its card.
pub fn describe(dataset: &DatasetReader) -> Result<Card> {
    describe_while(dataset, |_| Ok(()))
}

/// Reads and checks a whole dataset, and returns its card. Calls `go_on` at intervals with the number of rows
/// read; an error from `go_on` stops the reading.
pub(crate) fn describe_while(
    dataset: &DatasetReader,
    mut go_on: impl FnMut(u64) -> Result<()>,
) -> Result<Card> {
    let mut summary = Summary::default();
    let count = |block: &mut Summary, _, row: &Row| block.count(row);
    dataset.try_verify_blocks(dataset::threads(THREADS_MAX), Summary::default, count, |block| {
        summary.add(block);
        go_on(summary.rows())
    })?;
    Ok(Card::of(dataset.settings(), &dataset.digests(), dataset.vocabulary(), &summary))
}

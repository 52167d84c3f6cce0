//! Reads and checks a whole dataset, and describes it in a data card.

use std::num::NonZeroUsize;
use std::path::Path;

use dataset::DatasetSettings;
use dataset::card::{Card, Summary};
use dataset::dataset_file::DatasetReader;
use dataset::{Digests, Row};
use program::exit::chain;

use crate::THREADS_MAX;
use crate::error::{Error, Result};

/// Reads and checks a whole dataset, and returns its card.
pub fn describe(dataset: &DatasetReader) -> Result<Card> {
    describe_while(dataset, dataset::threads(THREADS_MAX), |_| Ok(()))
}

/// Reads and checks a whole dataset, and returns its card. Calls `go_on` at intervals with the number of rows
/// read; an error from `go_on` stops the reading.
pub(crate) fn describe_while(
    dataset: &DatasetReader,
    threads: NonZeroUsize,
    mut go_on: impl FnMut(u64) -> Result<()>,
) -> Result<Card> {
    let mut summary = Summary::default();
    let count = |block: &mut Summary, _, row: &Row| block.count(row);
    dataset.verify_blocks(threads, Summary::default, count, |block| {
        summary.add(block);
        go_on(summary.rows())
    })?;
    Ok(Card::of(dataset.settings(), &dataset.digests(), dataset.vocabulary(), &summary))
}

/// Reads back the dataset that was just written. Returns its card, or an error.
pub(crate) fn verified(
    file: &Path,
    digests: Digests,
    settings: &DatasetSettings,
    n_rows: u64,
    threads: NonZeroUsize,
    go_on: impl FnMut(u64) -> Result<()>,
) -> Result<Card> {
    let unverified = |found| Error::Unverified { path: file.to_owned(), found };
    // Keeps only the description of the error, because the remedy for a file from another program does not
    // apply to a file that was just written.
    let said = |error: dataset::Error| match error {
        dataset::Error::Damaged { part, .. } => unverified(format!("{part} does not match its digest")),
        dataset::Error::Broken { thing, found, expected, .. } => {
            unverified(format!("{thing} is {found}, expected {expected}"))
        }
        other => unverified(chain(&other)),
    };
    let written = DatasetReader::open(file).map_err(said)?;
    if written.digests() != digests || written.settings() != settings || written.n_rows() != n_rows {
        return Err(unverified("other sizes, settings or digests".to_owned()));
    }
    // Building the card reads and checks the whole file.
    describe_while(&written, threads, go_on).map_err(|error| match error {
        Error::Interrupted => error,
        other => unverified(chain(&other)),
    })
}

//! Counts texts that a training split shares with another dataset, by their hashes. Metrics of such rows are too good.

use dataset::RowsReader;
use dataset::dataset_file::DatasetReader;

use crate::division::{Division, Part};
use crate::error::Result;
use crate::rows::Rows;

/// Number of rows of `other` whose text is in the training split of `rows`. Reads the hashes of both datasets, which
/// ascend, once.
pub fn training_texts_in(other: &Rows, rows: &Rows) -> Result<u64> {
    let mut others = DatasetReader::open(other.path())?.rows();
    let mut training =
        TrainingHashes { rows: DatasetReader::open(rows.path())?.rows(), division: rows.division(), at: 0 };
    let mut n_shared = 0;
    for at in 0..others.n_rows() {
        n_shared += u64::from(training.contains(others.hash(at)?)?);
    }
    Ok(n_shared)
}

/// The hashes of a training split, for queries with ascending hashes.
struct TrainingHashes {
    rows: RowsReader,
    division: Division,
    at: u64,
}

impl TrainingHashes {
    fn contains(&mut self, hash: u64) -> Result<bool> {
        while self.at < self.rows.n_rows() && self.rows.hash(self.at)? < hash {
            self.at += 1;
        }
        // Two texts can have the same hash.
        let mut at = self.at;
        while at < self.rows.n_rows() && self.rows.hash(at)? == hash {
            if self.division.part(self.rows.split(at)?) == Some(Part::Training) {
                return Ok(true);
            }
            at += 1;
        }
        Ok(false)
    }
}

//! The hashes of another dataset, used to exclude its texts.

use dataset::RowsReader;
use dataset::dataset_file::DatasetReader;

use crate::error::Result;

/// The hashes of another dataset, queried in ascending order.
pub struct Hashes {
    rows: RowsReader,
    at: u64,
}

impl Hashes {
    /// Starts at the first hash.
    pub fn of(dataset: &DatasetReader) -> Self {
        Self { rows: dataset.rows(), at: 0 }
    }

    /// Starts at the first hash that is not less than `hash`.
    pub fn from(dataset: &DatasetReader, hash: u64) -> Result<Self> {
        let mut hashes = Self::of(dataset);
        let mut end = hashes.rows.n_rows();
        while hashes.at < end {
            let middle = hashes.at + (end - hashes.at) / 2;
            if hashes.rows.hash(middle)? < hash { hashes.at = middle + 1 } else { end = middle }
        }
        Ok(hashes)
    }

    /// Whether the dataset has this hash, which must not be less than the one of the previous call.
    pub fn contains(&mut self, hash: u64) -> Result<bool> {
        while self.at < self.rows.n_rows() {
            let there = self.rows.hash(self.at)?;
            if there >= hash {
                return Ok(there == hash);
            }
            self.at += 1;
        }
        Ok(false)
    }
}

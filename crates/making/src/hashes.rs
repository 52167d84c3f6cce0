//! The hashes of another dataset, by which its texts are left out.

use dataset::RowsReader;
use dataset::dataset_file::DatasetReader;

use crate::error::Result;

/// The hashes of another dataset, asked for in ascending order.
pub struct Hashes {
    rows: RowsReader,
    at: u64,
}

impl Hashes {
    /// From the first on.
    pub fn of(dataset: &DatasetReader) -> Self {
        Self { rows: dataset.rows(), at: 0 }
    }

    /// From the first on that is not less than this one.
    pub fn from(dataset: &DatasetReader, hash: u64) -> Result<Self> {
        let mut hashes = Self::of(dataset);
        let mut end = hashes.rows.n_rows();
        while hashes.at < end {
            let middle = hashes.at + (end - hashes.at) / 2;
            if hashes.rows.hash(middle)? < hash { hashes.at = middle + 1 } else { end = middle }
        }
        Ok(hashes)
    }

    /// Whether the dataset holds this hash, which is not less than the one asked for before.
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

//! Finds texts that two datasets share, by their hashes.

use std::path::Path;

use dataset::RowsReader;
use dataset::dataset_file::DatasetReader;

use crate::division::Division;
use crate::error::Result;
use crate::part::Part;

/// Number of rows of the dataset `other` whose text is in a training split of `training`. Reads the hashes of all datasets,
/// which ascend, once.
pub(crate) fn training_texts_in(other: &Path, training: &[(&Path, Division)]) -> Result<u64> {
    let mut others = DatasetReader::open(other)?.rows();
    let open = |&(path, division): &(&Path, Division)| Hashes::of(path, Some(division));
    let mut training = training.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut n_shared = 0;
    for at in 0..others.n_rows() {
        let hash = others.hash(at)?;
        for hashes in &mut training {
            if hashes.contains(hash)? {
                n_shared += 1;
                break;
            }
        }
    }
    Ok(n_shared)
}

/// Indices and hashes of the rows of the dataset `other` whose text is in any split of `rows`, ascending.
pub(crate) fn shared_rows(other: &Path, rows: &Path) -> Result<Vec<(u32, u64)>> {
    let mut others = DatasetReader::open(other)?.rows();
    let mut hashes = Hashes::of(rows, None)?;
    let mut shared = Vec::new();
    for at in 0..others.n_rows() {
        let hash = others.hash(at)?;
        if hashes.contains(hash)? {
            shared.push((at as u32, hash));
        }
    }
    Ok(shared)
}

/// The hashes of a dataset or of its training split, for queries with ascending hashes.
struct Hashes {
    rows: RowsReader,
    /// If only the training split counts.
    division: Option<Division>,
    at: u64,
}

impl Hashes {
    fn of(path: &Path, division: Option<Division>) -> Result<Self> {
        Ok(Self { rows: DatasetReader::open(path)?.rows(), division, at: 0 })
    }

    fn contains(&mut self, hash: u64) -> Result<bool> {
        while self.at < self.rows.n_rows() && self.rows.hash(self.at)? < hash {
            self.at += 1;
        }
        // Two texts can have the same hash.
        let mut at = self.at;
        while at < self.rows.n_rows() && self.rows.hash(at)? == hash {
            let Some(division) = self.division else { return Ok(true) };
            if division.part_of(hash, self.rows.split(at)?) == Some(Part::Training) {
                return Ok(true);
            }
            at += 1;
        }
        Ok(false)
    }
}

//! Reads files of counts into the mappers' ledger.

use std::fs;
use std::path::PathBuf;

use corpus::ledger::MapperCounts;

use crate::error::{Error, Result};

/// Sums the files written by `mapper --counts`. Any other file is parsed as the saved output of Hadoop's job
/// client, whose counters are already the sum of all mappers. Returns `None` if there are no files.
pub fn sum(files: &[PathBuf]) -> Result<Option<MapperCounts>> {
    let mut sum = None;
    for path in files {
        let text = fs::read(path).map_err(|source| Error::Counts { path: path.clone(), source })?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let counts = serde_json::from_str(&text).ok().or_else(|| MapperCounts::from_job_output(&text));
        let counts: MapperCounts = counts.ok_or_else(|| Error::NoCounts { path: path.clone() })?;
        *sum.get_or_insert_with(MapperCounts::default) += counts;
    }
    Ok(sum)
}

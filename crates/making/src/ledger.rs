//! Formats the ledger of a manifest as text.

use corpus::ledger;
use dataset::manifest::DatasetManifest;

/// The ledger in lines: every line of the input, every text of the shards, every row of the dataset.
pub fn ledger_lines(manifest: &DatasetManifest) -> String {
    let counts = &manifest.seal.ledger;
    ledger::lines(counts.mapper.as_ref(), &counts.reducer, manifest.rows, manifest.left_out)
}

//! Converts the facts of a dataset that was written into the lines of the ledger, or into the JSON document of `--json`.

use corpus::ledger::lines;
use dataset::card::Card;
use dataset::commit::ListedFile;
use dataset::manifest::{DatasetManifest, Ledger};
use serde::Serialize;

use crate::output::Output;

/// The result of merge and sentimill: the facts of the ledger and of the data card.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// Path or URL of the dataset, as the user passed it.
    pub dataset: String,
    /// Whether the dataset was written now. Otherwise it existed with the same content.
    pub written: bool,
    /// Size of its file.
    pub bytes: u64,
    /// SHA-256 of its file.
    pub sha256: &'a str,
    /// Number of ids per row of the padded copy, if there is one.
    pub padded: Option<u64>,
    /// SHA-256 of the padded copy, if there is one.
    pub padded_sha256: Option<&'a str>,
    /// The Parquet file of its ids, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<&'a ListedFile>,
    /// The Parquet file of its texts, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<&'a ListedFile>,
    /// The description of its Parquet files, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub croissant: Option<&'a ListedFile>,
    /// Rows excluded because another dataset contains their texts.
    pub left_out: u64,
    /// Counts of lines and texts. The mappers' counts are null if they are unknown.
    pub ledger: &'a Ledger,
    /// The data card.
    pub card: &'a Card,
}

impl<'a> Report<'a> {
    /// Returns the report of a dataset that was written now.
    pub fn written(out: &Output, manifest: &'a DatasetManifest, card: &'a Card) -> Self {
        Self {
            dataset: out.to_string(),
            written: true,
            bytes: manifest.bytes,
            sha256: &manifest.sha256,
            padded: manifest.padded,
            padded_sha256: manifest.padded_sha256.as_deref(),
            ids: manifest.ids.as_ref(),
            texts: manifest.texts.as_ref(),
            croissant: manifest.croissant.as_ref(),
            left_out: manifest.left_out,
            ledger: &manifest.seal.ledger,
            card,
        }
    }

    /// Returns the report of a dataset that already existed.
    pub fn unchanged(out: &Output, manifest: &'a DatasetManifest, card: &'a Card) -> Self {
        Self { written: false, ..Self::written(out, manifest, card) }
    }
}

/// The ledger in lines: every line of the input, every text of the shards, every row of the dataset.
pub fn ledger_lines(manifest: &DatasetManifest) -> String {
    let counts = &manifest.seal.ledger;
    lines(counts.mapper.as_ref(), &counts.reducer, manifest.rows, manifest.left_out)
}

/// Returns a JSON document for standard output.
pub fn json(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("a document of plain values is JSON") + "\n"
}

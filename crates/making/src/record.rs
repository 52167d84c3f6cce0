//! Parses a record stored with shards or datasets, and checks its schema version.

use dataset::SCHEMA_VERSION;
use dataset::manifest::DatasetManifest;
use program::exit::{Exit, Failed};
use serde::de::DeserializeOwned;

use crate::error::Result;

/// Parses a record of this project's version, which `version` returns.
pub fn parsed_record<T: DeserializeOwned>(
    object: &str,
    expected: &str,
    bytes: &[u8],
    version: impl Fn(&T) -> u32,
) -> Result<T> {
    let found = match serde_json::from_slice(bytes) {
        Ok(record) if version(&record) == SCHEMA_VERSION => return Ok(record),
        Ok(record) => format!("schema version {}", version(&record)),
        // Without serde's list of all field names.
        Err(error) => error.to_string().split(", expected one of").next().unwrap_or_default().to_owned(),
    };
    let remedy = "restore it, or use the version of the programs that wrote it";
    let why = format!(
        "{object} is not a {expected} ({found}), expected one of schema version {SCHEMA_VERSION}; {remedy}"
    );
    Err(Failed::new(Exit::MissingInput, why).into())
}

/// Parses the manifest of a dataset.
pub(crate) fn parsed_manifest(object: &str, bytes: &[u8]) -> Result<DatasetManifest> {
    parsed_record(object, "manifest of a dataset", bytes, |manifest: &DatasetManifest| {
        manifest.schema_version
    })
}

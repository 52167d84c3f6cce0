//! Parses a record stored with shards or datasets, and checks its schema version.

use dataset::manifest::DatasetManifest;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Parses a record.
pub fn parsed_record<T: DeserializeOwned>(object: &str, expected: &'static str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Record {
        object: object.to_owned(),
        expected,
        // Without serde's list of all field names.
        found: error.to_string().split(", expected one of").next().unwrap_or_default().to_owned(),
    })
}

/// Parses the manifest of a dataset and checks its version.
pub(crate) fn parsed_manifest(object: &str, bytes: &[u8]) -> Result<DatasetManifest> {
    const EXPECTED: &str = "manifest of a dataset";
    let manifest: DatasetManifest = parsed_record(object, EXPECTED, bytes)?;
    check_version(object, EXPECTED, manifest.schema_version)?;
    Ok(manifest)
}

/// Checks the version of a parsed record.
pub fn check_version(object: &str, expected: &'static str, schema_version: u32) -> Result<()> {
    if schema_version == dataset::SCHEMA_VERSION {
        return Ok(());
    }
    Err(Error::Record {
        object: object.to_owned(),
        expected,
        found: format!("schema version {schema_version}"),
    })
}

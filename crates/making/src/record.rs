//! Parses a record stored with shards or datasets, and checks its schema version.

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

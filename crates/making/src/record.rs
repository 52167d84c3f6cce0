//! The bytes of a record that lies beside shards or datasets → the record, if it is one of this schema version.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Reads a record of ours.
pub fn parsed_record<T: DeserializeOwned>(object: &str, expected: &'static str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Record {
        object: object.to_owned(),
        expected,
        found: error.to_string(),
    })
}

/// Checks the version of a record that could be read.
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

//! JSON files for people to read, too.

use serde::Serialize;

/// A document's bytes, indented, with a line end behind it.
pub(crate) fn document(document: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(document)?;
    json.push(b'\n');
    Ok(json)
}

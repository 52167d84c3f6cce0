//! JSON files that people read too.

use serde::Serialize;

/// Serializes a document as indented JSON with a final newline.
pub(crate) fn document(document: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(document)?;
    json.push(b'\n');
    Ok(json)
}

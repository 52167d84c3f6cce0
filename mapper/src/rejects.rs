//! Formats a bad line as one JSON line with the reason, the position and the content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corpus::ledger::Fate;
use corpus::lines::{Line, LineContent};
use serde::Serialize;

use crate::InputSplit;

#[derive(Serialize)]
struct Reject<'a> {
    reason: &'a str,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    split_start: Option<u64>,
    offset: u64,
    /// The line without its line end, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
    /// The line, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_base64: Option<String>,
    /// The length of a line that is too long to be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_bytes: Option<u64>,
}

/// Appends the JSON line of a bad line.
pub(crate) fn write_reject(output: &mut Vec<u8>, fate: Fate, line: Line<'_>, split: &InputSplit) {
    let (text, base64, bytes) = match line.content {
        LineContent::TooLong { bytes, .. } => (None, None, Some(bytes)),
        LineContent::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) => (Some(text), None, None),
            Err(_) => (None, Some(STANDARD.encode(bytes)), None),
        },
    };
    let reject = Reject {
        reason: fate.counter(),
        file: &split.file,
        split_start: split.split_start,
        offset: line.offset,
        line: text,
        line_base64: base64,
        line_bytes: bytes,
    };
    serde_json::to_writer(&mut *output, &reject)
        .expect("strings and numbers become JSON, and memory takes it");
    output.push(b'\n');
}

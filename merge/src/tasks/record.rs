//! The record of a result: a line with its kind, version, identity and digest, and a line of JSON. Other bytes may follow.
//! The identity is a digest of the plan and the task.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};

use corpus::digest::Digest;
use program::exit::{Exit, Failed};
use program::system::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// Maximum length of a record. The words of a vocabulary of ten million fit.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// The bytes of a record.
pub(crate) fn of(kind: &str, identity: Digest, record: &impl Serialize) -> Vec<u8> {
    let line = serde_json::to_string(record).expect("words and numbers are JSON");
    format!("{}{line}\n", head(kind, identity, line.as_bytes())).into_bytes()
}

fn head(kind: &str, identity: Digest, line: &[u8]) -> String {
    format!("sentimill {kind} 1 {identity} {}\n", Digest::of(line))
}

/// Reads a record of this identity from the beginning of an object. Also returns its size.
pub(crate) fn read<T: DeserializeOwned>(
    kind: &str,
    identity: Digest,
    from: impl Read,
    object: &str,
) -> Result<(T, u64)> {
    let (mut first, mut line) = (Vec::new(), Vec::new());
    let mut lines = BufReader::new(from).take(RECORD_BYTES_MAX);
    let read = lines.read_until(b'\n', &mut first).and_then(|_| lines.read_until(b'\n', &mut line));
    read.map_err(|source| {
        Failed::new(Exit::Io, format!("{object}: {}", Failure::reading("read the record", &source)))
    })?;
    let bytes = (first.len() + line.len()) as u64;
    match line.strip_suffix(b"\n") {
        Some(line) if first == head(kind, identity, line).as_bytes() => match serde_json::from_slice(line) {
            Ok(record) => Ok((record, bytes)),
            Err(error) => Err(unexpected(&object, &error.to_string())),
        },
        _ => Err(unexpected(&object, "damaged, or the result of another plan or task")),
    }
}

/// The error for an object that is not the result of its task.
pub(crate) fn unexpected(object: &dyn Display, found: &str) -> Failed {
    let why = format!(
        "{object} is {found}, expected the result of a task of this plan; the object was altered, or is of a plan that was \
         deleted: delete it, and run the task again"
    );
    Failed::new(Exit::MissingInput, why)
}

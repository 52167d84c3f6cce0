//! Entries of the log, and the groups in which they are written.

use bytes::Bytes;
use prost::Message;
use xxhash_rust::xxh3::xxh3_64;

use crate::messages::{CreateRequest, PushRequest};

/// Bytes of a group before its entries.
pub(super) const HEADER: usize = 24;

/// A change of the state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    Create(CreateRequest),
    Push(PushRequest),
    Leave(u32),
    Remove(u32),
}

impl Entry {
    fn write(&self, bytes: &mut Vec<u8>) {
        let from = bytes.len();
        bytes.extend([0; 4]);
        let kind = match self {
            Self::Create(_) => 0,
            Self::Push(_) => 1,
            Self::Leave(_) => 2,
            Self::Remove(_) => 3,
        };
        bytes.push(kind);
        match self {
            Self::Create(request) => request.encode_raw(bytes),
            Self::Push(request) => request.encode_raw(bytes),
            Self::Leave(worker) | Self::Remove(worker) => bytes.extend(worker.to_le_bytes()),
        }
        let length = (bytes.len() - from - 4) as u32;
        bytes[from..from + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn read(mut bytes: Bytes) -> Option<Self> {
        let kind = *bytes.first()?;
        bytes = bytes.slice(1..);
        Some(match kind {
            0 => Self::Create(CreateRequest::decode(bytes).ok()?),
            1 => Self::Push(PushRequest::decode(bytes).ok()?),
            2 => Self::Leave(u32::from_le_bytes(bytes[..].try_into().ok()?)),
            3 => Self::Remove(u32::from_le_bytes(bytes[..].try_into().ok()?)),
            _ => return None,
        })
    }
}

/// Entries that are written together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    bytes: Vec<u8>,
    n: u32,
}

impl Group {
    pub(crate) fn push(&mut self, entry: &Entry) {
        if self.bytes.is_empty() {
            self.bytes.extend([0; HEADER]);
        }
        entry.write(&mut self.bytes);
        self.n += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The bytes of the group.
    pub(super) fn seal(&mut self) -> &[u8] {
        let length = (self.bytes.len() - HEADER) as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..8].copy_from_slice(&self.n.to_le_bytes());
        let (check, digest) = (xxh3_64(&self.bytes[..8]), xxh3_64(&self.bytes[HEADER..]));
        self.bytes[8..16].copy_from_slice(&check.to_le_bytes());
        self.bytes[16..HEADER].copy_from_slice(&digest.to_le_bytes());
        &self.bytes
    }
}

/// The entries of a group of `n`; `None` if they are malformed.
pub(super) fn entries(mut bytes: Bytes, n: u32) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let length = bytes.get(..4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let entry = bytes.get(4..4 + length).map(|_| bytes.slice(4..4 + length))?;
        entries.push(Entry::read(entry)?);
        bytes = bytes.slice(4 + length..);
    }
    (entries.len() == n as usize).then_some(entries)
}

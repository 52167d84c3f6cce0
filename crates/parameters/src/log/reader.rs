//! Reads a file of the log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use program::exit::Failed;
use xxhash_rust::xxh3::xxh3_64;

use super::groups::{Entry, HEADER, entries};
use super::{ServerSettings, check_settings, damaged};
use crate::error::{At, Result};

const MARK: &[u8; 8] = b"paramlog";
/// Longer settings or groups are damage.
const GROUP_BYTES_MAX: usize = 1 << 30;
/// Bytes that are read at once.
const ZEROS_AT_ONCE: usize = 1 << 20;

/// Reads a file.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) file: &'a File,
    /// The place of the next group.
    pub(super) at: u64,
    pub(super) length: u64,
}

impl Reader<'_> {
    /// The bytes at the place; `None` beyond the end of the file.
    fn bytes(&mut self, at: u64, n: usize) -> Result<Option<Vec<u8>>> {
        if at + n as u64 > self.length {
            return Ok(None);
        }
        let mut bytes = vec![0; n];
        let mut file = self.file;
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes)).at(self.path, "read it")?;
        Ok(Some(bytes))
    }

    /// Compares the settings of the file.
    pub(super) fn settings(&mut self, expected: &ServerSettings) -> Result<()> {
        let none = || damaged(self.path, 0, "another content", "the log of a parameter server");
        let unread = none();
        let Some(start) = self.bytes(0, 12)?.filter(|start| start.starts_with(MARK)) else {
            return Err(unread);
        };
        let length = u32_at(&start, 8) as usize;
        let Some(rest) = self.bytes(12, length.min(GROUP_BYTES_MAX) + 8)? else { return Err(unread) };
        let (json, found) = rest.split_at(length.min(GROUP_BYTES_MAX));
        if xxh3_64(json).to_le_bytes() != found {
            return Err(unread);
        }
        let found: ServerSettings = serde_json::from_slice(json).map_err(|_| unread)?;
        check_settings(self.path, &found, expected)?;
        self.at = 20 + length as u64;
        Ok(())
    }

    /// The next group; `None` if there is no whole one.
    pub(super) fn group(&mut self) -> Result<Option<Vec<Entry>>> {
        let Some((bytes, n)) = self.group_at(self.at)? else { return Ok(None) };
        let at = self.at;
        self.at += (HEADER + bytes.len()) as u64;
        let entries = entries(bytes, n);
        let unread = || damaged(self.path, at, "an unknown entry", "one of this release");
        entries.map(Some).ok_or_else(unread)
    }

    fn group_at(&mut self, at: u64) -> Result<Option<(Bytes, u32)>> {
        let Some(header) = self.bytes(at, HEADER)? else { return Ok(None) };
        let Some(length) = length_of(&header) else { return Ok(None) };
        let Some(bytes) = self.bytes(at + HEADER as u64, length)? else { return Ok(None) };
        let is_whole = xxh3_64(&bytes).to_le_bytes() == header[16..];
        Ok(is_whole.then(|| (bytes.into(), u32_at(&header, 4))))
    }

    /// Refuses an invalid group that a crash does not explain: one in an earlier file or in the synced part (both:
    /// `was_synced`), one before a whole one, or one with another header than was written.
    pub(super) fn check_torn(&mut self, was_synced: bool) -> Result<()> {
        let is_explained = match self.bytes(self.at, HEADER)? {
            None => true,
            Some(header) => match length_of(&header) {
                Some(length) => self.group_at(self.at + (HEADER + length) as u64)?.is_none(),
                // The file was extended, but of its content nothing or a part of the header was written.
                None => self.is_zero(self.at + HEADER as u64)?,
            },
        };
        if !was_synced && is_explained {
            return Ok(());
        }
        Err(damaged(self.path, self.at, "another digest", "that of the group"))
    }

    /// Whether the file is zeros from this place on.
    fn is_zero(&mut self, from: u64) -> Result<bool> {
        for at in (from..self.length).step_by(ZEROS_AT_ONCE) {
            let n = (self.length - at).min(ZEROS_AT_ONCE as u64) as usize;
            if self.bytes(at, n)?.is_none_or(|bytes| bytes.iter().any(|&byte| byte != 0)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The length of the entries after a header; `None` if the header is invalid.
fn length_of(header: &[u8]) -> Option<usize> {
    let length = u32_at(header, 0) as usize;
    (xxh3_64(&header[..8]).to_le_bytes() == header[8..16] && length <= GROUP_BYTES_MAX).then_some(length)
}

/// What a file begins with.
pub(super) fn header(settings: &ServerSettings) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(settings).map_err(Failed::defect)?;
    let (length, digest) = ((json.len() as u32).to_le_bytes(), xxh3_64(&json).to_le_bytes());
    Ok([&MARK[..], &length, &json, &digest].concat())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

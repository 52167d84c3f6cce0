//! The log: entries that are durable before they are acknowledged, and are read again after a crash.
//!
//! ```text
//! file:   "paramlog"  8 bytes
//!         length      u32, then the settings of the server as JSON, then their digest, u64
//!         groups
//! group:  length      u32, of the entries
//!         entries     number, u32
//!         digest      u64: XXH3 of the length, the number and the entries
//!         per entry: length u32, kind u8, content
//! ```
//!
//! Entries that arrive while the disk is busy form one group. Only the last group of the last file can be incomplete: a
//! crash interrupted its write, and none of its entries was acknowledged.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use durable::sync_folder;
use prost::Message;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{At, Error, Result};
use crate::messages::{CreateRequest, PushRequest};

const MARK: &[u8; 8] = b"paramlog";
const PREFIX: &str = "log-";
/// Longer settings or groups are damage.
const GROUP_BYTES_MAX: usize = 1 << 30;
const GROUP_HEADER: usize = 16;

/// What a server is, in each file of its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) shard: u32,
    pub(crate) servers: u32,
    pub(crate) workers: u32,
    pub(crate) staleness: Option<u64>,
}

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
            self.bytes.extend([0; GROUP_HEADER]);
        }
        entry.write(&mut self.bytes);
        self.n += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.n == 0
    }

    fn seal(&mut self) -> &[u8] {
        let length = (self.bytes.len() - GROUP_HEADER) as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..8].copy_from_slice(&self.n.to_le_bytes());
        let digest = digest(&self.bytes[..8], &self.bytes[GROUP_HEADER..]);
        self.bytes[8..GROUP_HEADER].copy_from_slice(&digest.to_le_bytes());
        &self.bytes
    }
}

fn digest(header: &[u8], entries: &[u8]) -> u64 {
    let mut hasher = Xxh3Default::new();
    hasher.update(header);
    hasher.update(entries);
    hasher.digest()
}

/// The file of the log to which entries are appended.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    settings: Settings,
    number: u64,
    path: PathBuf,
    file: File,
    /// Bytes of groups in the file.
    n_bytes: u64,
    is_synced: bool,
}

impl Log {
    /// Creates the file with this number.
    pub(crate) fn create(folder: &Path, settings: &Settings, number: u64) -> Result<Self> {
        let path = file_path(folder, number);
        let mut file = OpenOptions::new().create_new(true).append(true).open(&path).at(&path, "create it")?;
        file.write_all(&header(settings)?).and_then(|()| file.sync_all()).at(&path, "write it")?;
        sync_folder(folder).at(folder, "sync the folder")?;
        let (folder, settings) = (folder.to_owned(), settings.clone());
        Ok(Self { folder, settings, number, path, file, n_bytes: 0, is_synced: true })
    }

    /// Appends a group. It is durable after [`Log::sync`].
    pub(crate) fn append(&mut self, group: &mut Group) -> Result<u64> {
        let bytes = group.seal();
        self.file.write_all(bytes).at(&self.path, "write it")?;
        self.n_bytes += bytes.len() as u64;
        self.is_synced = false;
        Ok(bytes.len() as u64)
    }

    /// Makes all entries durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if !self.is_synced {
            self.file.sync_data().at(&self.path, "write it")?;
            self.is_synced = true;
        }
        Ok(())
    }

    /// Continues in the next file, whose number is returned.
    pub(crate) fn rotate(&mut self) -> Result<u64> {
        self.sync()?;
        *self = Self::create(&self.folder, &self.settings, self.number + 1)?;
        Ok(self.number)
    }

    /// Another handle of the file, by which another thread can make it durable.
    pub(crate) fn handle(&self) -> Result<File> {
        self.file.try_clone().at(&self.path, "open it")
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Deletes the files before this number.
    pub(crate) fn delete_before(folder: &Path, number: u64) -> Result<()> {
        for old in numbers(folder)?.into_iter().filter(|&old| old < number) {
            let path = file_path(folder, old);
            fs::remove_file(&path).at(&path, "delete it")?;
        }
        Ok(())
    }

    /// Passes the entries of the files from this number on to `apply`, and continues the last file. Returns the log and the
    /// number of bytes of an incomplete group that were removed. Without files, one is created.
    pub(crate) fn recover(
        folder: &Path,
        settings: &Settings,
        from: u64,
        mut apply: impl FnMut(Entry) -> Result<()>,
    ) -> Result<(Self, u64)> {
        let numbers: Vec<u64> = numbers(folder)?.into_iter().filter(|&number| number >= from).collect();
        if numbers.is_empty() && from == 0 {
            return Ok((Self::create(folder, settings, from)?, 0));
        }
        let mut last = None;
        for (place, number) in numbers.iter().enumerate() {
            let path = file_path(folder, *number);
            if *number != from + place as u64 {
                return Err(damaged(&path, 0, format!("file {number} of the log"), "the one before it"));
            }
            let is_last = place + 1 == numbers.len();
            last = Some(Self::read(folder, settings, *number, is_last, &mut apply)?);
        }
        let path = file_path(folder, from);
        last.ok_or_else(|| damaged(&path, 0, "no file".to_owned(), "the log after the snapshot"))
    }

    /// Passes the entries of a file to `apply`, and removes an incomplete group at the end of the last file.
    fn read(
        folder: &Path,
        settings: &Settings,
        number: u64,
        is_last: bool,
        apply: &mut impl FnMut(Entry) -> Result<()>,
    ) -> Result<(Self, u64)> {
        let path = file_path(folder, number);
        let file = OpenOptions::new().read(true).append(true).open(&path).at(&path, "open it")?;
        let length = file.metadata().at(&path, "read its length")?.len();
        let mut reader = Reader { path: &path, file: &file, at: 0, length };
        let expected = header(settings)?;
        if is_last && length < expected.len() as u64 {
            // A crash interrupted the creation of the file.
            fs::remove_file(&path).at(&path, "delete it")?;
            return Ok((Self::create(folder, settings, number)?, length));
        }
        reader.settings(settings)?;
        let begin = reader.at;
        while let Some(group) = reader.group()? {
            for entry in group {
                apply(entry)?;
            }
        }
        let torn = length - reader.at;
        if torn > 0 {
            reader.check_torn(is_last)?;
            file.set_len(reader.at).and_then(|()| file.sync_all()).at(&path, "truncate it")?;
        }
        let n_bytes = reader.at - begin;
        let (folder, settings) = (folder.to_owned(), settings.clone());
        Ok((Self { folder, settings, number, path, file, n_bytes, is_synced: true }, torn))
    }
}

/// Reads a file.
struct Reader<'a> {
    path: &'a Path,
    file: &'a File,
    at: u64,
    length: u64,
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
    fn settings(&mut self, expected: &Settings) -> Result<()> {
        let none = || damaged(self.path, 0, "another content".to_owned(), "the log of a parameter server");
        let unread = none();
        let Some(start) = self.bytes(0, 12)?.filter(|start| start.starts_with(MARK)) else {
            return Err(unread);
        };
        let length = u32_at(&start, 8) as usize;
        let Some(rest) = self.bytes(12, length.min(GROUP_BYTES_MAX) + 8)? else { return Err(unread) };
        let (json, found) = rest.split_at(length.min(GROUP_BYTES_MAX));
        if digest(&[], json).to_le_bytes() != found {
            return Err(unread);
        }
        let found: Settings = serde_json::from_slice(json).map_err(|_| unread)?;
        check_settings(self.path, &found, expected)?;
        self.at = 20 + length as u64;
        Ok(())
    }

    /// The next group; `None` if there is no whole one.
    fn group(&mut self) -> Result<Option<Vec<Entry>>> {
        let Some((bytes, n)) = self.group_at(self.at)? else { return Ok(None) };
        let at = self.at;
        self.at += (GROUP_HEADER + bytes.len()) as u64;
        let entries = entries(bytes, n);
        let unread = || damaged(self.path, at, "an unknown entry".to_owned(), "one of this release");
        entries.map(Some).ok_or_else(unread)
    }

    fn group_at(&mut self, at: u64) -> Result<Option<(Bytes, u32)>> {
        let Some(header) = self.bytes(at, GROUP_HEADER)? else { return Ok(None) };
        let (length, n) = (u32_at(&header, 0) as usize, u32_at(&header, 4));
        if length > GROUP_BYTES_MAX {
            return Ok(None);
        }
        let Some(bytes) = self.bytes(at + GROUP_HEADER as u64, length)? else { return Ok(None) };
        let is_whole = digest(&header[..8], &bytes).to_le_bytes() == header[8..];
        Ok(is_whole.then(|| (bytes.into(), n)))
    }

    /// Refuses an invalid group that a crash does not explain: one in an earlier file, or before a whole one.
    fn check_torn(&mut self, is_last: bool) -> Result<()> {
        let next = match self.bytes(self.at, GROUP_HEADER)? {
            Some(header) => self.group_at(self.at + GROUP_HEADER as u64 + u64::from(u32_at(&header, 0)))?,
            None => None,
        };
        if is_last && next.is_none() {
            return Ok(());
        }
        Err(damaged(self.path, self.at, "another digest".to_owned(), "that of the entries"))
    }
}

fn entries(mut bytes: Bytes, n: u32) -> Option<Vec<Entry>> {
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

fn header(settings: &Settings) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(settings).map_err(|error| Error::internal(&error))?;
    let (length, digest) = ((json.len() as u32).to_le_bytes(), digest(&[], &json).to_le_bytes());
    Ok([&MARK[..], &length, &json, &digest].concat())
}

/// Refuses a folder of a server with other settings.
pub(crate) fn check_settings(path: &Path, found: &Settings, expected: &Settings) -> Result<()> {
    let text = |staleness: Option<u64>| staleness.map_or("unbounded".to_owned(), |bound| bound.to_string());
    let shard = |settings: &Settings| format!("{}/{}", settings.shard, settings.servers);
    let pairs = [
        ("--shard", shard(found), shard(expected)),
        ("--workers", found.workers.to_string(), expected.workers.to_string()),
        ("--staleness", text(found.staleness), text(expected.staleness)),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => {
            Err(Error::OtherSettings { path: path.to_owned(), what, found, expected })
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn damaged(path: &Path, at: u64, found: String, expected: &'static str) -> Error {
    Error::Damaged { path: path.to_owned(), at, found, expected }
}

fn file_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{number:012}"))
}

/// The numbers of the files in a folder, ascending.
fn numbers(folder: &Path) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).at(folder, "list it")? {
        let name = entry.at(folder, "list it")?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|text| text.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { shard: 0, servers: 1, workers: 2, staleness: Some(3) };

    fn written(folder: &Path, entries: &[&[Entry]]) -> PathBuf {
        let mut log = Log::create(folder, &SETTINGS, 0).unwrap();
        for entries in entries {
            let mut group = Group::default();
            entries.iter().for_each(|entry| group.push(entry));
            log.append(&mut group).unwrap();
            log.sync().unwrap();
        }
        log.path
    }

    fn recovered(folder: &Path) -> Result<(Vec<Entry>, u64)> {
        let mut entries = Vec::new();
        let add = |entry| {
            entries.push(entry);
            Ok(())
        };
        let (_, torn) = Log::recover(folder, &SETTINGS, 0, add)?;
        Ok((entries, torn))
    }

    fn push(step: u64) -> Entry {
        Entry::Push(PushRequest { worker: 1, step, ..PushRequest::default() })
    }

    #[test]
    fn entries_come_back_and_a_torn_group_is_removed_at_each_length() {
        let folder = tempfile::tempdir().unwrap();
        let groups: [&[Entry]; 2] = [&[push(0), Entry::Leave(1)], &[push(1), Entry::Remove(0)]];
        let path = written(folder.path(), &groups);
        let whole = fs::read(&path).unwrap();
        assert_eq!(recovered(folder.path()).unwrap(), (groups.concat(), 0));
        let other = tempfile::tempdir().unwrap();
        let first = fs::read(written(other.path(), &groups[..1])).unwrap().len();
        for length in first..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let torn = (length - first) as u64;
            assert_eq!(recovered(folder.path()).unwrap(), (groups[0].to_vec(), torn));
            assert_eq!(recovered(folder.path()).unwrap(), (groups[0].to_vec(), 0));
        }
    }

    #[test]
    fn a_changed_byte_before_a_whole_group_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), &[&[push(0)], &[push(1)]]);
        let whole = fs::read(&path).unwrap();
        let header = header(&SETTINGS).unwrap().len();
        // Not the length of the group, without which the next group cannot be found.
        for at in (0..header).chain(header + 4..header + 20) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            let error = recovered(folder.path()).unwrap_err().to_string();
            assert!(error.contains("restore the folder from a copy"), "{at}: {error}");
        }
    }

    #[test]
    fn a_folder_of_another_server_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &[]);
        let other = Settings { workers: 3, ..SETTINGS };
        let error = Log::recover(folder.path(), &other, 0, |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("its server has --workers 2, expected 3"), "{error}");
    }
}

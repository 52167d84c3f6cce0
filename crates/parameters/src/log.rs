//! The log: entries that are durable before they are acknowledged, and are read again after a crash.
//!
//! ```text
//! file:   "paramlog"  8 bytes
//!         length      u32, then the settings of the server as JSON, then their digest, u64
//!         groups
//! group:  length      u32, of the entries
//!         entries     number, u32
//!         check       u64: XXH3 of the length and the number
//!         digest      u64: XXH3 of the entries
//!         per entry: length u32, kind u8, content
//! ```
//!
//! Entries that arrive while the disk is busy form one group. Only the last group of the last file can be incomplete: a
//! crash interrupted its write. With [`crate::LogSync::Always`], none of its entries was acknowledged. The file `synced`
//! says how much of the log is durable: an invalid group there was changed later, and is not one that a crash left.

mod groups;
mod mark;
mod reader;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use durable::sync_folder;
use program::exit::Exit;
use serde::{Deserialize, Serialize};

pub(crate) use self::groups::{Entry, Group};
pub(crate) use self::mark::NAME as SYNCED;
use self::mark::{Mark, Synced};
use self::reader::{Reader, header};
use crate::error::{At, Error, Result};

pub(crate) const PREFIX: &str = "log-";

/// What a server is, in each file of its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerSettings {
    pub(crate) shard: u32,
    pub(crate) servers: u32,
    pub(crate) workers: u32,
    pub(crate) staleness: Option<u64>,
}

/// The file of the log to which entries are appended.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    settings: ServerSettings,
    number: u64,
    path: PathBuf,
    file: File,
    /// Bytes of groups in the file.
    n_bytes: u64,
    /// Bytes before the first group.
    begin: u64,
    mark: Mark,
    is_synced: bool,
}

impl Log {
    /// Creates the file with this number.
    pub(crate) fn create(folder: &Path, settings: &ServerSettings, number: u64) -> Result<Self> {
        let path = file_path(folder, number);
        let mut file = OpenOptions::new().create_new(true).append(true).open(&path).at(&path, "create it")?;
        let header = header(settings)?;
        let written =
            file.write_all(&header).and_then(|()| file.sync_all()).and_then(|()| sync_folder(folder));
        if let Err(error) = written {
            // The file has no entries. If it cannot be deleted, the next attempt reports that it exists.
            let _ = fs::remove_file(&path);
            return Err(error).at(&path, "write it");
        }
        let (mark, begin) = (Mark::open(folder)?, header.len() as u64);
        let (folder, settings) = (folder.to_owned(), settings.clone());
        Ok(Self { folder, settings, number, path, file, n_bytes: 0, begin, mark, is_synced: true })
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
            self.mark_synced()?;
        }
        Ok(())
    }

    fn mark_synced(&self) -> Result<()> {
        self.mark.write(Synced { number: self.number, length: self.begin + self.n_bytes })
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

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        settings: &ServerSettings,
        from: u64,
        mut apply: impl FnMut(Entry) -> Result<()>,
    ) -> Result<(Self, u64)> {
        let numbers: Vec<u64> = numbers(folder)?.into_iter().filter(|&number| number >= from).collect();
        let synced = Mark::read(folder)?.filter(|synced| synced.number >= from);
        if let Some(Synced { number, .. }) = synced
            && numbers.last().is_none_or(|&last| last < number)
        {
            let path = file_path(folder, number);
            return Err(damaged(&path, 0, "no file", "the log, which was synced"));
        }
        if numbers.is_empty() && from == 0 {
            return Ok((Self::create(folder, settings, from)?, 0));
        }
        let mut last = None;
        for (place, number) in numbers.iter().enumerate() {
            let path = file_path(folder, *number);
            if *number != from + place as u64 {
                return Err(damaged(&path, 0, &format!("file {number} of the log"), "the one before it"));
            }
            let is_last = place + 1 == numbers.len();
            let synced = synced.filter(|synced| synced.number == *number).map_or(0, |synced| synced.length);
            last = Some(Self::read(folder, settings, *number, (is_last, synced), &mut apply)?);
        }
        let path = file_path(folder, from);
        last.ok_or_else(|| damaged(&path, 0, "no file", "the log after the snapshot"))
    }

    /// Passes the entries of a file to `apply`, and removes an incomplete group at the end of the last file, after the
    /// bytes that were synced.
    fn read(
        folder: &Path,
        settings: &ServerSettings,
        number: u64,
        (is_last, synced): (bool, u64),
        apply: &mut impl FnMut(Entry) -> Result<()>,
    ) -> Result<(Self, u64)> {
        let path = file_path(folder, number);
        let file = OpenOptions::new().read(true).append(true).open(&path).at(&path, "open it")?;
        let length = file.metadata().at(&path, "read its length")?.len();
        if is_last && synced == 0 && length < header(settings)?.len() as u64 {
            // A crash interrupted the creation of the file.
            fs::remove_file(&path).at(&path, "delete it")?;
            return Ok((Self::create(folder, settings, number)?, length));
        }
        let mut reader = Reader { path: &path, file: &file, at: 0, length };
        reader.settings(settings)?;
        let begin = reader.at;
        while let Some(group) = reader.group()? {
            for entry in group {
                apply(entry)?;
            }
        }
        let torn = length - reader.at;
        if torn > 0 || length < synced {
            reader.check_torn(!is_last || reader.at < synced)?;
            file.set_len(reader.at).at(&path, "truncate it")?;
        }
        if is_last {
            // A kill may have come between a write and its sync. Clients repeat these pushes, which are then acknowledged.
            file.sync_all().at(&path, "write it")?;
        }
        let (n_bytes, mark) = (reader.at - begin, Mark::open(folder)?);
        let (folder, settings) = (folder.to_owned(), settings.clone());
        let log = Self { folder, settings, number, path, file, n_bytes, begin, mark, is_synced: true };
        if is_last {
            log.mark_synced()?;
        }
        Ok((log, torn))
    }
}

/// Refuses a folder of a server with other settings.
pub(crate) fn check_settings(path: &Path, found: &ServerSettings, expected: &ServerSettings) -> Result<()> {
    let shard = |settings: &ServerSettings| format!("{}/{}", settings.shard, settings.servers);
    let pairs = [
        ("--shard", shard(found), shard(expected)),
        ("--workers", found.workers.to_string(), expected.workers.to_string()),
        ("--staleness", bound_text(found.staleness), bound_text(expected.staleness)),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => {
            let found = format!("{}: its server has {what} {found}, expected {expected}", path.display());
            let remedy = "pass the flags of that server, or choose another --folder";
            Err(Error::failed(Exit::Settings, format!("{found}; {remedy}")))
        }
    }
}

/// The value of `--staleness`.
pub(crate) fn bound_text(staleness: Option<u64>) -> String {
    staleness.map_or("unbounded".to_owned(), |bound| bound.to_string())
}

fn damaged(path: &Path, at: u64, found: &str, expected: &str) -> Error {
    let found = format!("{}: {found} at byte {at}, expected {expected}", path.display());
    Error::failed(
        Exit::MissingInput,
        format!("{found}; restore the folder from a copy, or start in a new one"),
    )
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

//! A run in a folder. An object is written under a hidden name, synced, and renamed in one step that does not
//! overwrite.
//!
//! A killed writer leaves a hidden file next to the object's name. It is never listed, blocks nothing, and is deleted
//! by the next put or list. A folder is created when the first object is put into it, and is never deleted.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use program::progress::Progress;
use program::temporary;

use crate::key::folder_of_prefix;
use crate::naming::{give_name, make_folder, sync_folder};
use crate::{Backend, Error, Key, Listed, LocalObject, ObjectContent, ObjectInfo, Put, run_url};

/// Number of bytes copied between two steps of progress.
const COPY_BYTES: u64 = 16 << 20;

/// A run in a local or mounted folder (NFS included).
#[derive(Debug, Clone)]
pub(crate) struct FileStore {
    folder: PathBuf,
    progress: Progress,
}

impl Backend for FileStore {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Each put checks the folder itself.
    fn probe(&self) -> Result<(), Error> {
        Ok(())
    }

    fn url(&self) -> String {
        run_url::url(&self.folder)
    }

    fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        let path = self.path(key);
        let folder = path.parent().expect("an object lies below the run's folder");
        make_folder(folder).map_err(|source| self.io_error(key, "make its folder", source))?;

        let hidden = temporary::file_in(folder).map_err(|source| self.io_error(key, "write it", source))?;
        let bytes = self.write(key, hidden.as_file(), content)?;
        let put = match give_name(hidden.path(), &path) {
            Ok(()) => Put::Stored(ObjectInfo { bytes, etag: None }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.metadata(key)?;
                Put::AlreadyThere
            }
            Err(source) if source.kind() == ErrorKind::Unsupported => {
                return Err(Error::NoExclusiveCreate { object: self.object(key), source });
            }
            Err(source) => return Err(self.io_error(key, "rename it", source)),
        };
        // A writer whose name was taken also syncs, because it may exit successfully before the other writer
        // syncs.
        self.sync_folders(key, &path)?;
        Ok(put)
    }

    fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        if self.metadata(key)?.is_none() {
            return Ok(None);
        }
        let mut content = Vec::new();
        let read = File::open(self.path(key))
            .and_then(|file| file.take(limit_bytes.saturating_add(1)).read_to_end(&mut content));
        match read {
            Ok(bytes) if bytes as u64 > limit_bytes => {
                Err(Error::TooLarge { object: self.object(key), limit_bytes })
            }
            Ok(_) => {
                // The writer may have been killed before it synced the name, and the caller relies on this
                // object.
                self.sync_folders(key, &self.path(key))?;
                Ok(Some(content))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.io_error(key, "read it", source)),
        }
    }

    fn local_copy(&self, key: &Key, _: &Path) -> Result<LocalObject, Error> {
        match self.metadata(key)? {
            Some(metadata) => Ok(LocalObject::lasting(self.path(key), metadata.len())),
            None => Err(Error::Missing { object: self.object(key) }),
        }
    }

    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        Ok(self.metadata(key)?.map(|metadata| ObjectInfo { bytes: metadata.len(), etag: None }))
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        let mut listed = Vec::new();
        let mut folders = vec![folder_of_prefix(prefix)?.to_owned()];
        while let Some(folder) = folders.pop() {
            for (key, metadata) in self.entries(&folder)? {
                if !key.as_str().starts_with(prefix) {
                    continue;
                }
                if metadata.is_dir() {
                    folders.push(format!("{key}/"));
                } else if metadata.is_file() {
                    let modified =
                        metadata.modified().map_err(|source| self.io_error(&key, "read its time", source))?;
                    listed.push(Listed { key, bytes: metadata.len(), modified });
                }
            }
        }
        // Sorted by the bytes of the whole name: `a.b` comes before `a/b`, which no traversal order gives.
        listed.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(listed)
    }

    fn delete(&self, key: &Key) -> Result<(), Error> {
        if self.metadata(key)?.is_none() {
            return Ok(());
        }
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.io_error(key, "delete it", error)),
            _ => Ok(()),
        }
    }
}

impl FileStore {
    pub(crate) fn new(folder: PathBuf) -> FileStore {
        FileStore { folder, progress: Progress::default() }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(key.as_str())
    }

    fn object(&self, key: &Key) -> String {
        format!("{}/{key}", self.url())
    }

    fn io_error(&self, key: &Key, doing: &'static str, source: io::Error) -> Error {
        Error::Io { object: self.object(key), doing, source }
    }

    /// The object's metadata; `None` if it does not exist. A folder or a pipe with this name is an error.
    fn metadata(&self, key: &Key) -> Result<Option<Metadata>, Error> {
        match fs::metadata(self.path(key)) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
            Ok(_) => Err(Error::NotAnObject { object: self.object(key) }),
            Err(error) if is_absence(&error) => Ok(None),
            Err(source) => Err(self.io_error(key, "read its metadata", source)),
        }
    }

    /// Writes and syncs the content. Returns its size in bytes.
    fn write(&self, key: &Key, mut output: &File, content: ObjectContent<'_>) -> Result<u64, Error> {
        let write_error = |source| self.io_error(key, "write it", source);
        let bytes = match content {
            ObjectContent::Bytes(bytes) => {
                output.write_all(bytes).map(|()| bytes.len() as u64).map_err(write_error)?
            }
            ObjectContent::File(file) => {
                let source_error =
                    |source| Error::Source { file: file.to_owned(), object: self.object(key), source };
                let mut input = File::open(file).map_err(source_error)?;
                self.copy(&mut input, output)
                    .map_err(|source| self.io_error(key, "copy the local file to it", source))?
            }
        };
        output.sync_all().map_err(|source| self.io_error(key, "sync it", source))?;
        Ok(bytes)
    }

    /// Copies inside the kernel if both file systems allow it, in pieces, so that a slow copy shows progress.
    fn copy(&self, input: &mut File, mut output: &File) -> io::Result<u64> {
        let mut copied = 0;
        loop {
            match io::copy(&mut input.take(COPY_BYTES), &mut output)? {
                0 => return Ok(copied),
                bytes => {
                    copied += bytes;
                    self.progress.advance(bytes);
                }
            }
        }
    }

    /// Syncs the folders from the object up to the run. Another writer may have created one and not synced it
    /// yet.
    fn sync_folders(&self, key: &Key, path: &Path) -> Result<(), Error> {
        let n_folders = key.as_str().split('/').count();
        for folder in path.ancestors().skip(1).take(n_folders) {
            sync_folder(folder).map_err(|source| self.io_error(key, "sync its folder", source))?;
        }
        Ok(())
    }

    /// The entries of a folder (`""`, `data/`) whose names are valid keys.
    fn entries(&self, folder: &str) -> Result<Vec<(Key, Metadata)>, Error> {
        let list_error = |source| Error::Io {
            object: format!("{}/{folder}", self.url()),
            doing: "list the folder",
            source,
        };
        let entries = match fs::read_dir(self.folder.join(folder)) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(source) => return Err(list_error(source)),
        };
        temporary::clear(&self.folder.join(folder));
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(list_error)?;
            let name = entry.file_name();
            let Some(Ok(key)) = name.to_str().map(|name| Key::new(&format!("{folder}{name}"))) else {
                continue;
            };
            match fs::metadata(entry.path()) {
                Ok(metadata) => found.push((key, metadata)),
                // Deleted in the meantime, or a dangling symbolic link.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(self.io_error(&key, "read its metadata", source)),
            }
        }
        Ok(found)
    }
}

/// Nothing can exist below a regular file, so the error means that the object is missing.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

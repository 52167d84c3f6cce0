//! Writes a folder of files with their digests in `SHA256SUMS`, for `sha256sum --check`.
//!
//! The folder appears completely or not at all: files are written into a folder in a temporary one beside it and made
//! durable, and the folder is then renamed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use program::place::folder_of;
use program::temporary::{self, TemporaryFolder};

use crate::error::{At, Result};
use crate::new_file::{check_free, sync_folder};
use crate::output::{self, Output};
use crate::replace::replace_folder;
use crate::sha256::Summary;
use crate::sums::SUMS;

/// The name of the new folder in the temporary one.
const NEW: &str = "new";

/// A folder that is being written. An occupied path is refused, each file is made durable, and the folder gets its name
/// last. It is deleted unless it is finished.
#[derive(Debug)]
pub struct NewFolder {
    temporary: TemporaryFolder,
    folder: PathBuf,
    /// Whether a folder at this path is replaced.
    replaces: bool,
    files: BTreeMap<String, Summary>,
}

impl NewFolder {
    /// Refuses an occupied path before anything is written.
    pub fn begin(folder: &Path) -> Result<Self> {
        check_free(folder)?;
        Self::beside(folder, false)
    }

    /// Begins a folder that replaces the one at this path, if there is one. The caller has checked that it may be replaced.
    pub fn replacing(folder: &Path) -> Result<Self> {
        Self::beside(folder, folder.exists())
    }

    fn beside(folder: &Path, replaces: bool) -> Result<Self> {
        let parent = folder_of(folder);
        match fs::create_dir(parent) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.at(parent, "make the folder")?,
        }
        let made = temporary::folder_in(parent);
        let temporary = made.at(parent, "make a folder in it")?;
        let new = Self { temporary, folder: folder.to_owned(), replaces, files: BTreeMap::new() };
        fs::create_dir(new.path()).at(parent, "make a folder in it")?;
        Ok(new)
    }

    /// The final path of a file, for messages: the temporary folder is deleted.
    pub fn named(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Its path until it is finished.
    fn path(&self) -> PathBuf {
        self.temporary.path().join(NEW)
    }

    /// Writes a file that [`NewFolder::finish`] lists.
    pub fn put(&mut self, name: &str, write: impl FnOnce(&mut Output<'_>) -> io::Result<()>) -> Result<()> {
        let summary = self.create(name, write)?;
        self.list(name, summary);
        Ok(())
    }

    /// Writes a file that [`NewFolder::finish`] lists, with a function that creates it.
    pub fn put_at(&mut self, name: &str, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
        let path = self.path().join(name);
        let named = self.named(name);
        write(&path).and_then(|()| File::open(&path)?.sync_all()).at(&named, "write it")?;
        let summary = output::summary(&path).at(&named, "read it back")?;
        self.list(name, summary);
        Ok(())
    }

    /// Writes a file, also in several threads at once. Only [`NewFolder::list`] adds it to the list.
    pub fn create(
        &self,
        name: &str,
        write: impl FnOnce(&mut Output<'_>) -> io::Result<()>,
    ) -> Result<Summary> {
        let summary = output::create(&self.path().join(name), write);
        summary.at(&self.named(name), "write it")
    }

    /// Adds a file to the list of digests.
    pub fn list(&mut self, name: &str, summary: Summary) {
        self.files.insert(name.to_owned(), summary);
    }

    /// The listed files.
    pub fn files(&self) -> &BTreeMap<String, Summary> {
        &self.files
    }

    /// Writes the list of digests and renames the folder. On return, it is durable.
    pub fn finish(mut self) -> Result<()> {
        let sums: String =
            self.files.iter().map(|(name, Summary { sha256, .. })| format!("{sha256}  {name}\n")).collect();
        self.put(SUMS, |out| out.write_all(sums.as_bytes()))?;
        let new = self.path();
        sync_folder(&new).at(&self.folder, "write it")?;
        if self.replaces {
            return replace_folder(&new, &self.folder).at(&self.folder, "replace it");
        }
        if let Err(error) = fs::rename(&new, &self.folder) {
            // Only an empty folder can exist at this path, unless another process was faster.
            if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) {
                check_free(&self.folder)?;
            }
            return Err(error).at(&self.folder, "rename it");
        }
        sync_folder(folder_of(&self.folder)).at(folder_of(&self.folder), "sync the folder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_replaced_if_there_is_one() {
        let within = tempfile::tempdir().unwrap();
        let path = within.path().join("model");
        for number in [1, 2] {
            let mut new = NewFolder::replacing(&path).unwrap();
            new.put("number", |out| out.write_all(&[number])).unwrap();
            new.finish().unwrap();
            assert_eq!(fs::read(path.join("number")).unwrap(), [number]);
            assert_eq!(fs::read_dir(within.path()).unwrap().count(), 1, "left behind");
        }
    }

    #[test]
    fn of_several_writers_of_a_folder_one_succeeds_and_the_others_find_it_occupied() {
        let within = tempfile::tempdir().unwrap();
        let path = within.path().join("model");
        let writers: Vec<NewFolder> = (0..3)
            .map(|number: u8| {
                let mut new = NewFolder::begin(&path).unwrap();
                new.put("number", |out| out.write_all(&[number])).unwrap();
                new
            })
            .collect();
        let mut ended = writers.into_iter().map(NewFolder::finish);
        ended.next().unwrap().unwrap();
        for refused in ended {
            let error = refused.unwrap_err();
            assert_eq!(error.exit() as u8, 64, "{error}");
        }
        assert_eq!(fs::read(path.join("number")).unwrap(), [0]);
        assert_eq!(fs::read_dir(within.path()).unwrap().count(), 1, "left behind");
    }
}

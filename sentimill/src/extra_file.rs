//! A file that a run writes in addition to the dataset. It gets its name when it is complete, and never
//! overwrites another file.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed};
use program::place::{check_folder, folder_of};
use program::system::Failure;
use program::temporary::{self, TemporaryPath};
use store::naming::{give_name, make_folder, sync_folder};

use crate::Result;

/// The path of such a file, and the flag that names it.
#[derive(Clone, Debug)]
pub struct ExtraFile {
    flag: &'static str,
    path: PathBuf,
}

impl ExtraFile {
    /// Checks, before any work is done, that the file can be written: its folder or the parent of the folder exists and
    /// is writable, and there is no file with this name.
    pub fn ready(flag: &'static str, path: PathBuf) -> Result<Self> {
        let file = Self { flag, path };
        if file.path.symlink_metadata().is_ok() {
            return Err(file.occupied());
        }
        let mut folder = folder_of(&file.path);
        if !folder.exists() {
            folder = folder_of(folder);
        }
        check_folder(folder, flag)?;
        temporary::clear(folder);
        tempfile::tempfile_in(folder).map_err(|source| file.failed(&source))?;
        Ok(file)
    }

    /// Returns an error if this file has the path of one of these outputs, by whatever folder names.
    pub fn check_alone<'a>(&self, others: impl IntoIterator<Item = (&'static str, &'a Path)>) -> Result<()> {
        let own = resolved(&self.path);
        match others.into_iter().find(|(_, other)| resolved(other) == own) {
            Some((other, _)) => {
                let remedy = format!("expected a path of its own; choose another {}", self.flag);
                Err(self.refused(Exit::Usage, &format!("found the path of {other}, {remedy}")))
            }
            None => Ok(()),
        }
    }

    /// The flag that names the file.
    pub fn flag(&self) -> &'static str {
        self.flag
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a temporary path in the folder. The file does not exist yet.
    pub fn temporary(&self) -> Result<TemporaryPath> {
        let folder = folder_of(&self.path);
        make_folder(folder).and_then(|()| temporary::path_in(folder)).map_err(|source| self.failed(&source))
    }

    /// Gives a complete file, which is synced, its name.
    pub fn publish(&self, file: &Path) -> Result<()> {
        give_name(file, &self.path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => self.occupied(),
            _ => self.failed(&source),
        })?;
        sync_folder(folder_of(&self.path)).map_err(|source| self.failed(&source))
    }

    /// The error of a failed write.
    pub fn failed(&self, source: &io::Error) -> Failed {
        let why = Failure::writing("write the file", source, "choose a path on another disk");
        self.refused(Exit::Io, &why)
    }

    /// The error of a file that differs from what was written.
    pub fn damaged(&self, found: &str) -> Failed {
        self.refused(Exit::Io, &format!("the file read back is damaged ({found}); check the disk"))
    }

    fn occupied(&self) -> Failed {
        let remedy = format!("move it away or choose another {}", self.flag);
        self.refused(Exit::Usage, &format!("already exists; nothing was changed: {remedy}"))
    }

    fn refused(&self, exit: Exit, why: &impl Display) -> Failed {
        Failed::new(exit, format!("{} {}: {why}", self.flag, self.path.display()))
    }
}

/// The path without links and dots in its folder, as far as the folder exists.
fn resolved(path: &Path) -> PathBuf {
    let folder = folder_of(path);
    let folder = folder.canonicalize().unwrap_or_else(|_| match folder.file_name() {
        Some(_) => resolved(folder),
        None => folder.to_owned(),
    });
    path.file_name().map_or_else(|| path.to_owned(), |name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_path_of_another_output_is_refused_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        let file = ExtraFile::ready("--extra", folder.path().join("new/extra")).unwrap();
        let check = |name: &str| file.check_alone([("the dataset", folder.path().join(name).as_path())]);
        let error = check("link/./new/extra").unwrap_err();
        let expected = format!(
            "--extra {}: found the path of the dataset, expected a path of its own; choose another --extra",
            folder.path().join("new/extra").display()
        );
        assert_eq!(error.to_string(), expected);
        for other in ["extra", "new/extra.h5", "link/new/other"] {
            check(other).unwrap();
        }
    }

    #[test]
    fn an_existing_file_is_refused_before_and_after_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("extra");
        let file = ExtraFile::ready("--extra", path.clone()).unwrap();
        let temporary = file.temporary().unwrap();
        fs::write(&temporary, "new").unwrap();

        fs::write(&path, "old").unwrap();

        let expected = format!(
            "--extra {}: already exists; nothing was changed: move it away or choose another --extra",
            path.display()
        );
        assert_eq!(file.publish(&temporary).unwrap_err().to_string(), expected);
        assert_eq!(ExtraFile::ready("--extra", path.clone()).unwrap_err().to_string(), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(temporary);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file is deleted");
        assert!(ExtraFile::ready("--extra", folder.path().join("no/such/file")).is_err());
    }
}

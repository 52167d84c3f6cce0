//! Replaces a folder by a new one, and deletes entries of a folder: completely or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use program::place::folder_of;
use program::temporary;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use crate::error::{At, Result};
use crate::new_file::sync_folder;

/// The name of a replaced folder in a temporary one.
const OLD: &str = "old";

/// Gives a new folder, in the same file system, the name of another one, which is deleted, or of none. On return, it is
/// durable. If this fails, the other one is still there.
pub fn replace_folder(new: &Path, folder: &Path) -> io::Result<()> {
    let is_exchanged = renameat_with(CWD, new, CWD, folder, RenameFlags::EXCHANGE).is_ok();
    let _aside = if is_exchanged { None } else { rename_by_moving_aside(new, folder)? };
    // The old folder is deleted only when a power failure cannot bring it back in place of the new one.
    sync_folder(folder_of(folder))?;
    if is_exchanged {
        // The new folder is complete. What is left of the old one is in a temporary folder.
        let _ = fs::remove_dir_all(new);
    }
    Ok(())
}

/// For a file system that cannot exchange names, and for a name that is free: moves the old folder, if there is one, into the
/// folder that is returned, which deletes it when it is dropped. If the process is killed in between, the old folder stays
/// there: it is the only copy.
fn rename_by_moving_aside(new: &Path, folder: &Path) -> io::Result<Option<TempDir>> {
    if !folder.exists() {
        return fs::rename(new, folder).map(|()| None);
    }
    let aside = tempfile::Builder::new().prefix(".replaced-").tempdir_in(folder_of(folder));
    let aside = aside.map_err(temporary::of_system)?;
    fs::rename(folder, aside.path().join(OLD))?;
    match fs::rename(new, folder) {
        Ok(()) => Ok(Some(aside)),
        Err(error) => {
            if fs::rename(aside.path().join(OLD), folder).is_err() {
                // Not deleted.
                let _ = aside.keep();
            }
            Err(error)
        }
    }
}

/// Deletes files and folders in a folder, all or none. They are first renamed, so that no part of them is left under the
/// known names. A missing one is skipped.
pub fn delete_together<N: AsRef<str>>(folder: &Path, names: &[N]) -> Result<()> {
    let made = temporary::folder_in(folder);
    let aside = made.at(folder, "make a folder in it")?;
    let moved_to = |name: &N| aside.path().join(name.as_ref());
    for (at, name) in names.iter().enumerate() {
        let path = folder.join(name.as_ref());
        match fs::rename(&path, moved_to(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let is_restored = names[..at].iter().all(|name| {
                    !moved_to(name).exists() || fs::rename(moved_to(name), folder.join(name.as_ref())).is_ok()
                });
                if !is_restored {
                    // Not deleted: it is the only copy.
                    aside.keep();
                }
                return Err(error).at(&path, "delete it");
            }
            _ => {}
        }
    }
    aside.close().at(folder, "delete what was in it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_that_cannot_be_replaced_stays() {
        let within = tempfile::tempdir().unwrap();
        let path = |name: &str| within.path().join(name);
        for name in ["old", "new"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("name"), name).unwrap();
        }
        replace_folder(&path("missing"), &path("old")).unwrap_err();
        assert_eq!(
            (names(within.path()), names(&path("old"))),
            (vec!["new".into(), "old".into()], vec!["name".into()])
        );
        replace_folder(&path("new"), &path("old")).unwrap();
        assert_eq!(names(within.path()), ["old"]);
        assert_eq!(fs::read(path("old").join("name")).unwrap(), b"new");
        replace_folder(&path("old"), &path("free")).unwrap();
        assert_eq!(names(within.path()), ["free"]);
    }

    #[test]
    fn a_file_system_that_cannot_exchange_names_replaces_a_folder_too() {
        let within = tempfile::tempdir().unwrap();
        let path = |name: &str| within.path().join(name);
        for name in ["old", "new"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("name"), name).unwrap();
        }
        rename_by_moving_aside(&path("missing"), &path("old")).unwrap_err();
        assert_eq!(
            (names(within.path()), names(&path("old"))),
            (vec!["new".into(), "old".into()], vec!["name".into()])
        );
        drop(rename_by_moving_aside(&path("new"), &path("old")).unwrap());
        assert_eq!(names(within.path()), ["old"]);
        assert_eq!(fs::read(path("old").join("name")).unwrap(), b"new");
    }

    #[test]
    fn why_a_folder_cannot_be_moved_aside_is_the_error_of_the_system() {
        // Nothing can be created in it.
        let error =
            rename_by_moving_aside(Path::new("/proc/self/new"), Path::new("/proc/self/fd")).unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error:?}");
    }

    #[test]
    fn if_one_file_cannot_be_deleted_all_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("fold-1")).unwrap();
        fs::write(folder.path().join("folds.json"), "{}").unwrap();
        // The system does not rename a folder by its name ".".
        delete_together(folder.path(), &["fold-1", "missing", ".", "folds.json"]).unwrap_err();
        assert_eq!(names(folder.path()), ["fold-1", "folds.json"]);
        delete_together(folder.path(), &["fold-1", "missing", "folds.json"]).unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

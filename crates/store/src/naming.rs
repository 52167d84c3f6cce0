//! Gives a written file its name, in one durable step that never overwrites.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub use durable::sync_folder;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Renames a written file. `AlreadyExists`: the name is taken. `Unsupported`: the file system has no atomic
/// operation that does not overwrite.
pub fn give_name(hidden: &Path, path: &Path) -> io::Result<()> {
    match rename_exclusively(hidden, path) {
        Err(error) if is_unsupported(&error) => {}
        renamed_or_not => return renamed_or_not,
    }
    match link_exclusively(hidden, path) {
        Err(error) if is_unsupported(&error) => Err(io::Error::new(ErrorKind::Unsupported, error)),
        linked_or_not => linked_or_not,
    }
}

fn rename_exclusively(hidden: &Path, path: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, hidden, CWD, path, RenameFlags::NOREPLACE)?)
}

/// For NFS, which has no exclusive rename. The hidden name stays and is deleted by its writer.
fn link_exclusively(hidden: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(hidden, path) {
        // If the response to a link request is lost, the client resends it and finds the name taken by its
        // own link. Only the number of links distinguishes this case (open(2), O_EXCL).
        Err(error) if error.kind() == ErrorKind::AlreadyExists && fs::metadata(hidden)?.nlink() == 2 => {
            Ok(())
        }
        linked_or_not => linked_or_not,
    }
}

/// link(2) returns EPERM on file systems without links. Older sandboxes return it for an unknown call.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM))
}

/// Creates a folder and its parents, and syncs each entry.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(ErrorKind::NotFound.into()),
    };
    make_folder(parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(ErrorKind::NotADirectory.into()),
        made_or_not => made_or_not?,
    }
    sync_folder(parent)
}

/// A random number, unique among writers.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_rename_nor_link_overwrites() {
        for give_name in [rename_exclusively, link_exclusively, give_name] {
            let folder = tempfile::tempdir().unwrap();
            let [first, second, name] = ["first", "second", "name"].map(|name| folder.path().join(name));
            fs::write(&first, "first").unwrap();
            fs::write(&second, "second").unwrap();

            give_name(&first, &name).unwrap();
            let refusal = give_name(&second, &name).unwrap_err();

            assert_eq!(refusal.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&name).unwrap(), b"first");
            assert_eq!(fs::read(&second).unwrap(), b"second");
        }
    }

    #[test]
    fn a_link_whose_first_answer_was_lost_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let [hidden, name] = ["hidden", "name"].map(|name| folder.path().join(name));
        fs::write(&hidden, "content").unwrap();
        fs::hard_link(&hidden, &name).unwrap();

        link_exclusively(&hidden, &name).unwrap();
    }
}

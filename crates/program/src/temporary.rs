//! Files and folders under a temporary name, which are deleted unless they get their final name.
//!
//! A killed process deletes nothing. So each file is locked (`flock`), and each folder has a locked file: the system
//! releases the lock when the process ends for any reason. The next process of the same user that writes into the
//! same folder deletes what nobody has locked. Nothing is deleted on a file system without locks.
//!
//! Some network file systems keep the locks local to a host. So each name contains the host (a digest of its machine id
//! and host name), and a process deletes only names of its own host. Each container with a host name of its own counts
//! as a host.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use rustix::process::geteuid;
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::system::code_of;
use crate::threads::locked;

/// Start of every temporary name. The host follows.
pub const PREFIX: &str = ".sentimill-unfinished-";
/// Number of letters and digits at the end of a temporary name.
const N_RANDOM: usize = 6;
/// The locked file in a temporary folder. It is created first and deleted last.
const LOCK: &str = ".lock";
/// A new file can be deleted by another process before it is locked. This is not repeated often.
const TRIES: usize = 100;

/// Creates a file in `folder`, and deletes the files of killed processes there. It is as readable as any new file is,
/// by the user's umask.
pub fn file_in(folder: &Path) -> io::Result<NamedTempFile> {
    clear_once(folder);
    several_times(|| {
        let file =
            names().permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(of_system)?;
        Ok(is_locked(file.as_file())?.then_some(file))
    })
}

/// A folder that is deleted with its content when this value is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    /// `None` after [`TemporaryFolder::keep`].
    folder: Option<TempDir>,
    path: PathBuf,
    /// Closing it releases the lock.
    _lock: File,
}

/// The path of a file that a writer creates. The file is deleted when this value is dropped, unless it was renamed.
#[derive(Debug)]
pub struct TemporaryPath {
    path: PathBuf,
    _within: TemporaryFolder,
}

/// Returns the path of a file that does not exist yet, in a new folder in `folder`.
pub fn path_in(folder: &Path) -> io::Result<TemporaryPath> {
    let within = folder_in(folder)?;
    Ok(TemporaryPath { path: within.path().join("new"), _within: within })
}

impl Deref for TemporaryPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for TemporaryPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// Creates a folder in `within`, and deletes the folders of killed processes there.
pub fn folder_in(within: &Path) -> io::Result<TemporaryFolder> {
    clear_once(within);
    several_times(|| {
        let folder = names().tempdir_in(within).map_err(of_system)?;
        let lock = match File::create_new(folder.path().join(LOCK)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            created => created?,
        };
        let path = folder.path().to_owned();
        Ok(is_locked(&lock)?.then_some(TemporaryFolder { folder: Some(folder), path, _lock: lock }))
    })
}

/// The error of the operating system in an error of `tempfile`, which has the temporary path in addition.
pub fn of_system(error: io::Error) -> io::Error {
    code_of(&error).map_or(error, io::Error::from_raw_os_error)
}

impl TemporaryFolder {
    /// Its path. It contains a hidden file, so a folder that gets a final name is made in it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes it. Dropping it ignores errors.
    pub fn close(mut self) -> io::Result<()> {
        // Its path does not exist after that.
        self.folder.take().map_or(Ok(()), |folder| delete(&folder.keep()))
    }

    /// Keeps it, under a name that is not deleted by the next process.
    pub fn keep(mut self) {
        let Some(folder) = self.folder.take() else { return };
        let path = folder.keep();
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace(PREFIX, ".kept-");
        // Both names are in one folder. If this fails, the only remaining error is the one that is already reported.
        let _ = fs::rename(&path, path.with_file_name(name));
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            let _ = delete(&folder.keep());
        }
    }
}

/// Start of the temporary names of this host. After an update of the standard library, the digest may be another; then
/// what the older program left stays.
fn prefix() -> &'static str {
    static PREFIX_OF_HOST: OnceLock<String> = OnceLock::new();
    PREFIX_OF_HOST.get_or_init(|| {
        let mut host = DefaultHasher::new();
        for path in ["/etc/machine-id", "/proc/sys/kernel/hostname"] {
            host.write(&fs::read(path).unwrap_or_default());
        }
        format!("{PREFIX}{:08x}-", host.finish() as u32)
    })
}

/// Makes temporary names.
fn names() -> Builder<'static, 'static> {
    let mut names = Builder::new();
    names.prefix(prefix()).rand_bytes(N_RANDOM);
    names
}

/// Whether it is the name of a temporary file or folder of this host.
fn is_temporary(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(prefix()));
    random.is_some_and(|random| {
        random.len() == N_RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Deletes the temporary files and folders of this user's killed processes in `folder`. An error is ignored: the next
/// process tries again.
pub fn clear(folder: &Path) {
    clear_those_of(geteuid().as_raw(), folder);
}

/// Clears a folder that this process has not cleared yet: it may have many entries.
fn clear_once(folder: &Path) {
    static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = locked(&CLEARED).insert(folder.to_owned());
    if is_new {
        clear(folder);
    }
}

/// Deletes the entries of this user only: another user could replace their own by a symbolic link during the deletion.
fn clear_those_of(user: u32, folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !is_temporary(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        // Of a link itself, not of its target.
        let _ = match entry.metadata() {
            Ok(found) if found.uid() != user => Ok(()),
            Ok(kind) if kind.is_file() => unlocked(&path).and_then(|_lock| fs::remove_file(&path)),
            Ok(kind) if kind.is_dir() => match unlocked(&path.join(LOCK)) {
                Ok(_lock) => delete(&path),
                // Its process is about to create the lock, and makes another folder, or was killed there.
                Err(error) if error.kind() == ErrorKind::NotFound => fs::remove_dir(&path),
                Err(error) => Err(error),
            },
            _ => Ok(()),
        };
    }
}

/// Locks a file that no process has locked.
fn unlocked(path: &Path) -> io::Result<File> {
    // Some network file systems lock only files that are open for writing.
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Locks a new file. Returns whether it still exists: another process may have locked and deleted it before.
fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
        Err(TryLockError::WouldBlock) => Ok(false),
        // No process can lock it, so none deletes it.
        Err(TryLockError::Error(_)) => Ok(true),
    }
}

fn several_times<T>(mut make: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    for _ in 0..TRIES {
        if let Some(made) = make()? {
            return Ok(made);
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

/// Deletes a temporary folder, its lock last: a folder without it could be a new one.
fn delete(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(path)?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(path)?;
        }
    }
    fs::remove_file(folder.join(LOCK))?;
    match fs::remove_dir(folder) {
        // Another process deleted it, as it had no lock any more.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_error_keeps_the_number_of_the_system() {
        let error = folder_in(Path::new("/proc/self")).unwrap_err();
        assert_eq!((error.raw_os_error(), error.get_ref().is_none()), (Some(libc::ENOENT), true), "{error}");
    }

    /// What is in a folder.
    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Leaves a file and a folder, as a process that is killed does.
    fn leave(within: &Path) {
        let mut file = file_in(within).unwrap();
        file.write_all(b"half").unwrap();
        file.keep().unwrap();
        let mut folder = folder_in(within).unwrap();
        fs::create_dir_all(folder.path().join("new/deep")).unwrap();
        fs::write(folder.path().join("new/deep/table"), "half").unwrap();
        let _ = folder.folder.take().unwrap().keep();
    }

    #[test]
    fn what_a_killed_process_left_is_deleted_by_the_next_one_in_the_same_folder() {
        let create: [fn(&Path); 2] =
            [|folder| drop(file_in(folder).unwrap()), |folder| drop(folder_in(folder).unwrap())];
        for create in create {
            let beside = tempfile::tempdir().unwrap();
            let [within, renamed] = ["first", "renamed"].map(|name| beside.path().join(name));
            fs::create_dir(&within).unwrap();
            leave(&within);
            create(&within);
            assert_eq!(names_in(&within).len(), 2, "a process looks at a folder once");
            // To this process, it is another folder.
            fs::rename(&within, &renamed).unwrap();
            create(&renamed);
            assert_eq!(names_in(&renamed), [""; 0]);
        }
    }

    #[test]
    fn what_a_process_still_writes_and_what_is_not_temporary_stays() {
        let within = tempfile::tempdir().unwrap();
        fs::write(within.path().join("reviews.h5"), "").unwrap();
        fs::write(within.path().join(".hidden"), "").unwrap();
        let not_random = format!("{}notes.txt", prefix());
        fs::write(within.path().join(&not_random), "").unwrap();
        let link = format!("{}linked", prefix());
        std::os::unix::fs::symlink("reviews.h5", within.path().join(&link)).unwrap();
        let (file, folder) = (file_in(within.path()).unwrap(), folder_in(within.path()).unwrap());
        fs::write(folder.path().join("table"), "half").unwrap();
        clear(within.path());
        assert!(file.path().exists() && folder.path().join("table").exists());
        let path = folder.path().to_owned();
        folder.keep();
        drop(file);
        let kept = path.file_name().unwrap().to_str().unwrap().replace(".sentimill-unfinished-", ".kept-");
        clear(within.path());
        let mut expected = [".hidden", &not_random, &link, &kept, "reviews.h5"];
        expected.sort_unstable();
        assert_eq!(names_in(within.path()), expected);
    }

    #[test]
    fn what_another_user_left_stays() {
        let within = tempfile::tempdir().unwrap();
        leave(within.path());
        let left = names_in(within.path());
        clear_those_of(geteuid().as_raw() + 1, within.path());
        assert_eq!(names_in(within.path()), left);
        clear(within.path());
        assert_eq!(names_in(within.path()), [""; 0]);
    }

    #[test]
    fn what_a_process_of_another_host_writes_stays() {
        let within = tempfile::tempdir().unwrap();
        leave(within.path());
        let own = names_in(within.path()).remove(0);
        let (host, random) = own.strip_prefix(".sentimill-unfinished-").unwrap().split_once('-').unwrap();
        assert_eq!((host.len(), random.len()), (8, 6), "{own}");
        let other: String = host.chars().rev().collect();
        let of_other = format!(".sentimill-unfinished-{other}-{random}");
        fs::rename(within.path().join(&own), within.path().join(&of_other)).unwrap();
        fs::write(within.path().join(".sentimill-unfinished-abcdef"), "").unwrap();
        clear(within.path());
        assert_eq!(names_in(within.path()), [&of_other, ".sentimill-unfinished-abcdef"]);
    }

    #[test]
    fn a_folder_whose_deletion_was_interrupted_is_deleted() {
        let within = tempfile::tempdir().unwrap();
        // Killed between the folder and its lock, and between the lock and the folder.
        fs::create_dir(within.path().join(format!("{}aaaaaa", prefix()))).unwrap();
        // Killed before the lock was deleted.
        let locked = within.path().join(format!("{}bbbbbb", prefix()));
        fs::create_dir(&locked).unwrap();
        fs::write(locked.join(".lock"), "").unwrap();
        clear(within.path());
        assert_eq!(names_in(within.path()), [""; 0]);
    }

    #[test]
    fn processes_that_create_and_clear_at_once_keep_what_is_theirs() {
        let within = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let (file, folder) =
                            (file_in(within.path()).unwrap(), folder_in(within.path()).unwrap());
                        fs::write(folder.path().join("table"), "").unwrap();
                        clear(within.path());
                        assert!(file.path().exists() && folder.path().join("table").exists());
                        folder.close().unwrap();
                    }
                });
            }
        });
        assert_eq!(names_in(within.path()), [""; 0]);
    }
}

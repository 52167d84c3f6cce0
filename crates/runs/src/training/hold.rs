//! Locks a training folder, so that one process at a time trains in it.
//!
//! The process locks the file `lock` in the folder (`flock`) and writes its process number into it. The lock is
//! released when the process exits for any reason. The file is deleted with the lock, unless the process was
//! killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use program::temporary;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{CHECKPOINTS, LOCK};
use crate::error::{Error, Result};

/// Maximum wait for another process to exit: restarted ranks may overlap with the previous ones.
pub const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum length of the file; a process writes less.
const HOLDER_BYTES_MAX: u64 = 1000;

/// A lock on a training folder.
#[derive(Debug)]
pub struct Hold {
    lock: PathBuf,
    /// Deleted with the lock if it is empty then.
    superfluous: Option<PathBuf>,
    /// Closing it releases the lock.
    _file: File,
}

impl Hold {
    /// Creates the folder if it is missing (its parent must exist), and waits for other processes to release it.
    /// Errors: the folder is still locked after `patience`, or it is not writable.
    pub fn take(folder: &Path, patience: Duration) -> Result<Self> {
        let deadline = Instant::now() + patience;
        let lock = folder.join(LOCK);
        let failed = |source| Error::io(&lock, source);
        loop {
            let made = make(folder)?;
            let file =
                match OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&lock) {
                    // The process that had created the folder has deleted it.
                    Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < deadline => {
                        continue;
                    }
                    opened => opened.map_err(failed)?,
                };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &lock).map_err(failed)? => {
                    let superfluous = made.then(|| folder.to_owned());
                    let hold = Self { lock: lock.clone(), superfluous, _file: file };
                    hold.sign().map_err(failed)?;
                    [folder, &folder.join(CHECKPOINTS)].into_iter().for_each(temporary::clear);
                    return Ok(hold);
                }
                // The lock is also tried again if the previous holder has deleted the file.
                Ok(()) | Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(()) | Err(Errno::WOULDBLOCK) => {
                    return Err(Error::Held { path: folder.to_owned(), holder: holder(file) });
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// Deletes the folder with the lock if it is empty then, although it was there before.
    pub fn on_a_copy(mut self) -> Self {
        self.superfluous = self.lock.parent().map(Path::to_owned);
        self
    }

    /// Writes process number and host. Fails if the disk is full or the folder is not writable.
    fn sign(&self) -> io::Result<()> {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut file = &self._file;
        file.set_len(0)?;
        writeln!(file, "process {} on {}", std::process::id(), host.trim())?;
        file.sync_data()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // While the lock is held, no other process uses the file. A remaining file does no harm.
        let _ = fs::remove_file(&self.lock);
        if let Some(folder) = &self.superfluous {
            // Fails if the folder has files, which must stay, or if a process that waited has locked it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Creates a folder in an existing one. Returns whether it was created.
fn make(folder: &Path) -> Result<bool> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(false),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Error::occupied(folder, "a file", "a new name or an empty folder", "choose another --out"))
        }
        Err(error) => Err(Error::io(folder, error)),
    }
}

/// Whether this open file is the file at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The text written by the process that holds the lock.
fn holder(file: File) -> String {
    let mut text = String::new();
    match file.take(HOLDER_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Until a program that another test starts has closed its copy of a lock.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("out");
        let hold = Hold::take(&folder, LONG).unwrap();
        let error = Hold::take(&folder, Duration::ZERO).unwrap_err();
        let holder = format!("process {} on ", std::process::id());
        assert!(matches!(&error, Error::Held { holder: found, .. } if found.starts_with(&holder)), "{error}");
        assert_eq!(error.exit() as u8, 75);
        drop(hold);
        Hold::take(&folder, LONG).unwrap();
    }

    #[test]
    fn an_unused_new_folder_is_deleted_on_release() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("out");
        drop(Hold::take(&folder, LONG).unwrap());
        assert!(!folder.exists());
        let hold = Hold::take(&folder, LONG).unwrap();
        fs::write(folder.join("model"), "").unwrap();
        drop(hold);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_file(folder.join("model")).unwrap();
        drop(Hold::take(&folder, LONG).unwrap());
        assert!(folder.exists(), "one that was there before");
        drop(Hold::take(&folder, LONG).unwrap().on_a_copy());
        assert!(!folder.exists());
    }

    #[test]
    fn a_waiting_process_locks_the_existing_folder() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("out");
        let hold = Hold::take(&folder, LONG).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| Hold::take(&folder, LOCK_WAIT).unwrap());
            drop(hold);
            let hold = waits.join().unwrap();
            assert!(folder.join(LOCK).exists());
            drop(hold);
        });
    }

    #[test]
    fn only_the_last_folder_is_created() {
        let within = tempfile::tempdir().unwrap();
        let error = Hold::take(&within.path().join("a/b"), Duration::ZERO).unwrap_err();
        assert_eq!(error.exit() as u8, 74);
        assert!(!within.path().join("a").exists());
    }
}

//! The folder of a training, held by one process at a time.
//!
//! The holder has a lock (`flock`) on the file `lock` in the folder, and its process number stands there. The lock ends with
//! its process, however that ends; the file goes with the lock, but for a process that was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::LOCK;
use crate::error::{Error, Result};

/// How long to wait for another process to end: ranks that are started again meet the end of those before.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(100);
/// No holder writes more.
const HOLDER_BYTES_MAX: u64 = 1000;

/// A folder that no other process trains in.
#[derive(Debug)]
pub struct Hold {
    lock: PathBuf,
    /// The folder, where it was made for this.
    made: Option<PathBuf>,
    /// Closing it ends the lock.
    _file: File,
}

impl Hold {
    /// Makes the folder where it is not there (its parent must be), and waits for other processes to leave it. Errors:
    /// one did not; nothing can be written there.
    pub fn take(folder: &Path, patience: Duration) -> Result<Self> {
        let deadline = Instant::now() + patience;
        let lock = folder.join(LOCK);
        let failed = |source| Error::io(&lock, source);
        loop {
            let made = make(folder)?;
            let file =
                match OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&lock) {
                    // Who had made the folder took it along.
                    Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < deadline => {
                        continue;
                    }
                    opened => opened.map_err(failed)?,
                };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &lock).map_err(failed)? => {
                    let hold =
                        Self { lock: lock.clone(), made: made.then(|| folder.to_owned()), _file: file };
                    hold.sign().map_err(failed)?;
                    return Ok(hold);
                }
                // Also where its last holder took the file along.
                Ok(()) | Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(()) | Err(Errno::WOULDBLOCK) => {
                    return Err(Error::Held { path: folder.to_owned(), holder: holder(file) });
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// A disk that is full, or a folder that may not be written to, shows here.
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
        // As long as the lock is held, the file is nobody else's. What cannot be removed does no harm.
        let _ = fs::remove_file(&self.lock);
        if let Some(folder) = &self.made {
            // Not where anything was written.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes a folder in one that is there; whether it did.
fn make(folder: &Path) -> Result<bool> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(false),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::Occupied {
            path: folder.to_owned(),
            found: "a file".to_owned(),
            expected: "a free name or an empty folder",
            remedy: "choose another --out".to_owned(),
        }),
        Err(error) => Err(Error::io(folder, error)),
    }
}

/// Whether this file is the one that has the name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the holder wrote.
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

    #[test]
    fn a_folder_has_one_holder_until_that_leaves_it() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("out");
        let hold = Hold::take(&folder, Duration::ZERO).unwrap();
        let error = Hold::take(&folder, Duration::ZERO).unwrap_err();
        let holder = format!("process {} on ", std::process::id());
        assert!(matches!(&error, Error::Held { holder: found, .. } if found.starts_with(&holder)), "{error}");
        assert_eq!(error.exit() as u8, 75);
        drop(hold);
        Hold::take(&folder, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_folder_that_was_made_and_not_used_goes_with_its_holder() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("out");
        drop(Hold::take(&folder, Duration::ZERO).unwrap());
        assert!(!folder.exists());
        let hold = Hold::take(&folder, Duration::ZERO).unwrap();
        fs::write(folder.join("model"), "").unwrap();
        drop(hold);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_file(folder.join("model")).unwrap();
        drop(Hold::take(&folder, Duration::ZERO).unwrap());
        assert!(folder.exists(), "one that was there before");
    }

    #[test]
    fn who_waited_while_the_holder_left_holds_the_folder_that_is_there() {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("out");
        let hold = Hold::take(&folder, Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| Hold::take(&folder, PATIENCE).unwrap());
            drop(hold);
            let hold = waits.join().unwrap();
            assert!(folder.join(LOCK).exists());
            drop(hold);
        });
    }

    #[test]
    fn only_the_last_folder_is_made() {
        let within = tempfile::tempdir().unwrap();
        let error = Hold::take(&within.path().join("a/b"), Duration::ZERO).unwrap_err();
        assert_eq!(error.exit() as u8, 74);
        assert!(!within.path().join("a").exists());
    }
}

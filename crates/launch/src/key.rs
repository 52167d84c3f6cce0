//! The secret by which ranks know each other: handed over by [`crate::run`] as an open descriptor, under torchrun a
//! file that only its owner can read.
//!
//! It does not stand in an argument, in the environment or in PyTorch's store, where others can read it.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error as ThisError;

/// The variable that names the file.
pub const KEY_FILE: &str = "SENTIMILL_KEY_FILE";

/// The variable with the number of the descriptor that `launch` hands over.
const KEY_DESCRIPTOR: &str = "SENTIMILL_KEY_DESCRIPTOR";

/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// A file that is longer is no file of a secret.
const SECRET_BYTES_MAX: usize = 4096;

/// What the ranks of a group know and nobody else. It is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Its bytes, 16 or more.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// Why a secret is not taken.
#[derive(Debug, ThisError)]
pub enum Error {
    /// It could not be read.
    #[error("{}: the key of the ranks cannot be read; make one by `head -c 32 /dev/urandom | base64` and name it by {KEY_FILE}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can read or change it.
    #[error("{}: the key of the ranks has mode {mode:03o} and owner {owner}, expected 600 and {user}; make a new key, which only you can read", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// The number of its owner.
        owner: u32,
        /// The number of this process's user.
        user: u32,
    },
    /// It is too short or too long.
    #[error("{}: {found} bytes, expected a key of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}; make one by `head -c 32 /dev/urandom | base64`", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its bytes, without white space at both ends.
        found: String,
    },
}

/// The secret of this process's group, if it was given one: by `launch`, otherwise as a file.
pub fn of_this_process() -> Result<Option<Secret>, Error> {
    if let Some(number) = variable(KEY_DESCRIPTOR) {
        // Opened anew: the number is the environment's word, and this process may have the descriptor for another use.
        let path = Path::new("/proc/self/fd").join(number);
        let handed = File::open(&path).map_err(|source| Error::Unreadable { path: path.clone(), source })?;
        return secret_in(handed, &path).map(Some);
    }
    variable(KEY_FILE).map(|path| of_file(Path::new(&path))).transpose()
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The key in a file, of this user's or root's, that nobody else can read or write.
fn of_file(path: &Path) -> Result<Secret, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    // Of the file that is read, whatever has its name by now.
    let about = file.metadata().map_err(unreadable)?;
    let (mode, owner, user) = (about.mode() & 0o777, about.uid(), geteuid().as_raw());
    if mode & 0o077 != 0 || (owner != user && owner != 0) {
        return Err(Error::Exposed { path: path.to_owned(), mode, owner, user });
    }
    secret_in(file, path)
}

/// The key of a file's content.
fn secret_in(file: File, path: &Path) -> Result<Secret, Error> {
    let mut secret = Vec::new();
    file.take(SECRET_BYTES_MAX as u64 + 1)
        .read_to_end(&mut secret)
        .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    let is_whole = secret.len() <= SECRET_BYTES_MAX;
    let secret = secret.trim_ascii();
    if !is_whole || secret.len() < SECRET_BYTES_MIN {
        let found = if is_whole { secret.len().to_string() } else { "more".to_owned() };
        return Err(Error::Length { path: path.to_owned(), found });
    }
    Ok(Secret(secret.to_owned()))
}

/// A secret of 256 random bits, as text.
pub(crate) fn random_secret() -> io::Result<String> {
    let mut bytes = [0u8; 32];
    // So few come whole or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Gives the process that this command starts a secret to read, once.
pub(crate) fn hand_over(command: &mut Command, secret: &str) -> io::Result<()> {
    let (reader, mut writer) = pipe()?;
    // A pipe holds 4,096 bytes at least, so this does not wait for a reader.
    writer.write_all(secret.as_bytes())?;
    let number = crate::ffi::inherit(command, OwnedFd::from(reader));
    command.env(KEY_DESCRIPTOR, number.to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(content: &[u8], mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), content).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_file_of_its_owner_alone_is_a_key() {
        let secret = b"0123456789abcdef";
        for mode in [0o600, 0o400] {
            assert_eq!(of_file(file(secret, mode).path()).unwrap(), Secret(secret.to_vec()));
        }
        assert_eq!(of_file(file(b"  0123456789abcdef\n", 0o600).path()).unwrap(), Secret(secret.to_vec()));
    }

    #[test]
    fn a_file_that_others_can_read_or_write_is_refused() {
        for mode in [0o640, 0o604, 0o660, 0o620, 0o610] {
            let file = file(b"0123456789abcdef", mode);
            let error = of_file(file.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("has mode {mode:03o}")), "{error}");
        }
    }

    #[test]
    fn a_secret_that_is_no_secret_is_refused() {
        let refused = |content: &[u8]| of_file(file(content, 0o600).path()).unwrap_err().to_string();

        assert!(refused(b"short").contains(": 5 bytes, expected a key of 16 to 4096"));
        assert!(refused(&[b' '; 100]).contains(": 0 bytes"));
        assert!(refused(&[b'x'; 5000]).contains(": more bytes"));
        let missing = of_file(Path::new("/no/such/key")).unwrap_err().to_string();
        assert!(missing.starts_with("/no/such/key: the key of the ranks cannot be read"), "{missing}");
    }
}

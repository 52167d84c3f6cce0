//! The secret with which ranks authenticate each other. [`crate::run`] passes it as an open descriptor. Under
//! torchrun, it is in a file that only its owner can read.
//!
//! It is never in an argument, in the environment or in PyTorch's store, where others could read it.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::hexadecimal;
use program::system::cause;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

/// Environment variable with the path of the file.
pub const KEY_FILE: &str = "SENTIMILL_KEY_FILE";

/// Environment variable with the number of the descriptor that `launch` passes.
const KEY_DESCRIPTOR: &str = "SENTIMILL_KEY_DESCRIPTOR";

/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// Maximum length; a longer file is not a key.
const SECRET_BYTES_MAX: usize = 4096;

/// A secret shared by the ranks of a group. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Its bytes, at least 16.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// Why a secret was refused.
#[derive(Debug, Error)]
pub enum KeyError {
    /// It could not be read.
    #[error("{}: the key cannot be read: {}; create one with `head -c 32 /dev/urandom | base64` and set {KEY_FILE} or --token-file to its path", path.display(), cause(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can read or change it.
    #[error("{}: the key has mode {mode:03o} and owner {owner}, expected 600 and {user}; make a new key, which only you can read", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// File mode.
        mode: u32,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// It is too short or too long.
    #[error("{}: {found} bytes, expected a key of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}; create one with `head -c 32 /dev/urandom | base64`", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Length without white space at both ends.
        found: String,
    },
}

/// Returns the secret of this process's group, if there is one: from `launch`, otherwise from a file.
pub fn of_this_process() -> Result<Option<Secret>, KeyError> {
    if let Some(number) = variable(KEY_DESCRIPTOR) {
        // The descriptor is opened again through /proc, because its number comes from the environment, and this
        // process may use the descriptor for something else.
        let path = Path::new("/proc/self/fd").join(number);
        let handed =
            File::open(&path).map_err(|source| KeyError::Unreadable { path: path.clone(), source })?;
        return secret_in(handed, &path).map(Some);
    }
    variable(KEY_FILE).map(|path| of_file(Path::new(&path))).transpose()
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Reads the key from a file that only its owner can access: this user or root.
pub fn of_file(path: &Path) -> Result<Secret, KeyError> {
    let unreadable = |source| KeyError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    // Checks the opened file, even if its path now names another file.
    let about = file.metadata().map_err(unreadable)?;
    let (mode, owner, user) = (about.mode() & 0o777, about.uid(), geteuid().as_raw());
    if mode & 0o077 != 0 || (owner != user && owner != 0) {
        return Err(KeyError::Exposed { path: path.to_owned(), mode, owner, user });
    }
    secret_in(file, path)
}

/// The key in a file's content.
fn secret_in(file: File, path: &Path) -> Result<Secret, KeyError> {
    let mut secret = Vec::new();
    file.take(SECRET_BYTES_MAX as u64 + 1)
        .read_to_end(&mut secret)
        .map_err(|source| KeyError::Unreadable { path: path.to_owned(), source })?;
    let is_whole = secret.len() <= SECRET_BYTES_MAX;
    let secret = secret.trim_ascii();
    if !is_whole || secret.len() < SECRET_BYTES_MIN {
        let found = if is_whole { secret.len().to_string() } else { "more".to_owned() };
        return Err(KeyError::Length { path: path.to_owned(), found });
    }
    Ok(Secret(secret.to_owned()))
}

/// A secret of 256 random bits, as text.
pub(crate) fn random_secret() -> io::Result<String> {
    let mut bytes = [0u8; 32];
    // Requests of up to 256 bytes are never partially filled.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(hexadecimal::encode(&bytes))
}

/// Passes a secret to the command's process, which can read it once.
pub(crate) fn hand_over(command: &mut Command, secret: &str) -> io::Result<()> {
    let (reader, mut writer) = pipe()?;
    // A pipe holds at least 4,096 bytes, so the write does not block.
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
    fn a_file_readable_only_by_its_owner_is_a_key() {
        let secret = b"0123456789abcdef";
        for mode in [0o600, 0o400] {
            assert_eq!(of_file(file(secret, mode).path()).unwrap(), Secret(secret.to_vec()));
        }
        assert_eq!(of_file(file(b"  0123456789abcdef\n", 0o600).path()).unwrap(), Secret(secret.to_vec()));
    }

    #[test]
    fn a_key_file_with_wider_permissions_is_refused() {
        for mode in [0o640, 0o604, 0o660, 0o620, 0o610] {
            let file = file(b"0123456789abcdef", mode);
            let error = of_file(file.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("has mode {mode:03o}")), "{error}");
        }
    }

    #[test]
    fn a_key_with_an_invalid_length_is_refused() {
        let refused = |content: &[u8]| of_file(file(content, 0o600).path()).unwrap_err().to_string();

        assert!(refused(b"short").contains(": 5 bytes, expected a key of 16 to 4096"));
        assert!(refused(&[b' '; 100]).contains(": 0 bytes"));
        assert!(refused(&[b'x'; 5000]).contains(": more bytes"));
        let missing = of_file(Path::new("/no/such/key")).unwrap_err().to_string();
        assert!(missing.starts_with("/no/such/key: the key cannot be read"), "{missing}");
    }
}

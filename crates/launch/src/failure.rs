//! Writes a rank's error file for the process that started it: torchrun, or [`crate::run`].
//!
//! Both pass the file's path in `TORCHELASTIC_ERROR_FILE`. The format is that of
//! `torch.distributed.elastic.multiprocessing.errors` in PyTorch 2.11.0, one object:
//!
//! ```json
//! {"message": {"message": "train.h5: not found", "extraInfo": {"py_callstack": "train.h5: not found", "timestamp": "1767225600"}}}
//! ```
//!
//! torchrun prints `py_callstack` as the traceback. It calls the rank with the smallest `timestamp` (whole seconds
//! since 1970, as text) the root cause. For a rank without a file, such as a killed one, it uses the second in which
//! it noticed the exit. A rank that exits because it lost a peer must therefore write a file. Without a file, it
//! could have the same second as the killed peer, and on a tie torchrun selects the first rank. The timestamp in its
//! file is [`AFTER_THE_ROOT_CAUSE`] later than its exit. Such ranks exit with [`Exit::TryAgain`]. If all ranks exit
//! with this code, their order does not matter.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use program::exit::Exit;
use serde::{Deserialize, Serialize};

/// Environment variable with the path of the file.
pub const ERROR_FILE: &str = "TORCHELASTIC_ERROR_FILE";

/// Delay of the timestamp of a rank that lost a peer. torchrun waits 30 s between SIGTERM and SIGKILL. It may therefore
/// notice the exit of a stopped rank, the root cause, that much later than the exit of its peers.
pub const AFTER_THE_ROOT_CAUSE: Duration = Duration::from_secs(60);

/// Writes the error file if the environment names one. Call it before the process exits, with the exit code and the
/// message that is printed on standard error.
pub fn report(exit: Exit, message: &str) -> io::Result<()> {
    match env::var_os(ERROR_FILE) {
        // torchrun sets the variable to an empty value if it does not require a file.
        Some(path) if !path.is_empty() => write(Path::new(&path), exit, message, SystemTime::now()),
        _ => Ok(()),
    }
}

/// Writes the error file of a rank that exited at `ended`. The file appears completely or not at all.
pub fn write(path: &Path, exit: Exit, message: &str, ended: SystemTime) -> io::Result<()> {
    let (callstack, ended) = match exit {
        Exit::TryAgain => {
            let late = AFTER_THE_ROOT_CAUSE.as_secs();
            let note =
                format!("(dated {late} s late, so that a rank that failed by itself is the root cause)");
            (format!("{message}\n{note}"), ended + AFTER_THE_ROOT_CAUSE)
        }
        _ => (message.to_owned(), ended),
    };
    // A clock before 1970 must not lose the message.
    let timestamp = ended.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    let extra_info = ExtraInfo { py_callstack: callstack, timestamp };
    let report = Report { message: Message { message: message.to_owned(), extra_info } };
    let json = serde_json::to_vec(&report)?;
    let partial = partial(path);
    fs::write(&partial, json).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        // The first error is reported, not that of the removal.
        let _ = fs::remove_file(&partial);
    })
}

/// The message in an error file. None if the file is missing or invalid.
pub(crate) fn message(path: &Path) -> Option<String> {
    let report = serde_json::from_slice::<Report>(&fs::read(path).ok()?).ok()?;
    Some(report.message.message)
}

/// In the same folder, so that a rename moves it.
fn partial(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    name.into()
}

#[derive(Serialize, Deserialize)]
struct Report {
    message: Message,
}

#[derive(Serialize, Deserialize)]
struct Message {
    message: String,
    #[serde(rename = "extraInfo")]
    extra_info: ExtraInfo,
}

#[derive(Serialize, Deserialize)]
struct ExtraInfo {
    py_callstack: String,
    timestamp: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ENDED: Duration = Duration::from_secs(1_767_225_600);

    #[test]
    fn the_error_file_has_torchruns_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.json");

        write(&path, Exit::Io, "disk \"a\" is full", UNIX_EPOCH + ENDED).unwrap();

        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            r#"{"message":{"message":"disk \"a\" is full","extraInfo":{"py_callstack":"disk \"a\" is full","timestamp":"1767225600"}}}"#
        );
        assert_eq!(message(&path).unwrap(), "disk \"a\" is full");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the partial file is gone");
    }

    #[test]
    fn a_partially_written_error_file_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.json");
        fs::create_dir(&path).unwrap();

        write(&path, Exit::Io, "disk full", UNIX_EPOCH + ENDED).unwrap_err();

        assert!(!partial(&path).exists());
        assert_eq!(message(&path), None);
    }
}

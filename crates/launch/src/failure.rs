//! What a rank that ends with an error leaves behind for who started it: torchrun, or [`crate::run`].
//!
//! Both name a file in `TORCHELASTIC_ERROR_FILE`. Its format is that of PyTorch 2.11.0's
//! `torch.distributed.elastic.multiprocessing.errors`, one object:
//!
//! ```json
//! {"message": {"message": "train.h5: not found", "extraInfo": {"py_callstack": "train.h5: not found", "timestamp": "1767225600"}}}
//! ```
//!
//! torchrun shows `py_callstack` as the traceback, and calls the rank of the smallest `timestamp` (whole seconds since
//! 1970, as text) the root cause; for a rank that wrote no file, such as a killed one, it takes the second at which it
//! saw its end. So a rank that ended because a peer was lost cannot leave the file out: it would share that second
//! with a killed peer, and of equals the first rank wins. It dates its file [`AFTER_THE_ROOT_CAUSE`] later instead.
//! Such a rank is one that ends with [`Exit::TryAgain`]; where all of them do, the order does not matter.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use program::exit::Exit;
use serde::{Deserialize, Serialize};

/// The variable that names the file.
pub const ERROR_FILE: &str = "TORCHELASTIC_ERROR_FILE";

/// How much later a rank dates its end if it lost a peer. torchrun gives ranks 30 s between SIGTERM and SIGKILL, so
/// it may see the end of a stopped rank, which is the root cause, that much after those of its peers.
pub const AFTER_THE_ROOT_CAUSE: Duration = Duration::from_secs(60);

/// Writes the error file, if the environment names one. To be called by a rank that is about to end with this exit
/// code, with what it says on standard error.
pub fn report(exit: Exit, message: &str) -> io::Result<()> {
    match env::var_os(ERROR_FILE) {
        // torchrun sets it to nothing where it wants no file.
        Some(path) if !path.is_empty() => write(Path::new(&path), exit, message, SystemTime::now()),
        _ => Ok(()),
    }
}

/// Writes the error file of a rank that ended at this time. Whoever reads it at any moment finds all of it or none.
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
    // A clock before 1970 is no reason to lose the message.
    let timestamp = ended.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    let extra_info = ExtraInfo { py_callstack: callstack, timestamp };
    let report = Report { message: Message { message: message.to_owned(), extra_info } };
    let json = serde_json::to_vec(&report)?;
    let partial = partial(path);
    fs::write(&partial, json).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&partial);
    })
}

/// The message of a rank that wrote this file. None: there is no such file, or it is no error file.
pub(crate) fn message(path: &Path) -> Option<String> {
    let report = serde_json::from_slice::<Report>(&fs::read(path).ok()?).ok()?;
    Some(report.message.message)
}

/// Beside the file, so that a rename is enough.
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
    fn the_file_has_torchruns_format() {
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
    fn a_file_that_cannot_be_written_whole_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.json");
        fs::create_dir(&path).unwrap();

        write(&path, Exit::Io, "disk full", UNIX_EPOCH + ENDED).unwrap_err();

        assert!(!partial(&path).exists());
        assert_eq!(message(&path), None);
    }
}

//! Converts an error of the operating system into its cause in words and a remedy, without error numbers and
//! library texts.
//!
//! All programs use this module, so that a full disk has the same message everywhere. A disk is reported as full only
//! if the operating system reports it.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind};

use rustix::process::{Resource, getrlimit};

/// What a refused block of memory or thread means. The system reports both by the same number.
pub(crate) const NO_MEMORY: &str = "not enough memory, or too many threads";
pub(crate) const NO_MEMORY_REMEDY: &str =
    "free memory, or raise the limits of memory and processes (ulimit -a)";

/// A failed action: `cannot read the counts: permission denied; check the permissions`. For a full disk: `disk full
/// while writing; free space there or choose another --out`.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// An infinitive with its object: `read the counts`.
    action: &'a str,
    error: &'a io::Error,
    /// How to use another disk or folder; `None` for an action that only reads.
    elsewhere: Option<&'a str>,
}

impl<'a> Failure<'a> {
    /// A failed action that writes. `elsewhere` states how to use another disk or folder: `choose another
    /// --out`.
    pub fn writing(action: &'a str, error: &'a io::Error, elsewhere: &'a str) -> Self {
        Self { action, error, elsewhere: Some(elsewhere) }
    }

    /// A failed action that only reads.
    pub fn reading(action: &'a str, error: &'a io::Error) -> Self {
        Self { action, error, elsewhere: None }
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, error, elsewhere } = *self;
        let cause = Cause::of(error);
        match cause {
            Cause::DiskFull | Cause::QuotaExceeded | Cause::FileTooLarge => {
                write!(out, "{cause} while writing; {}", cause.remedy())?;
            }
            // The error's text already ends with a remedy.
            Cause::Explained(text) => return write!(out, "cannot {action}: {text}"),
            _ => write!(out, "cannot {action}: {cause}; {}", cause.remedy())?,
        }
        match elsewhere {
            Some(elsewhere) if cause.is_of_the_place() => write!(out, " or {elsewhere}"),
            _ => Ok(()),
        }
    }
}

/// The cause in words: `no such file or folder`, `disk full`.
pub fn cause(error: &io::Error) -> String {
    Cause::of(error).to_string()
}

/// The cause in words and a remedy: `permission denied; check the permissions`.
pub fn cause_and_remedy(error: &io::Error) -> String {
    match Cause::of(error) {
        // The error's text already ends with a remedy.
        Cause::Explained(text) => text,
        cause => format!("{cause}; {}", cause.remedy()),
    }
}

/// The text of a system error without its number, in lower case: `connection refused`.
pub fn without_number(text: &str) -> String {
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Whether the limit of open files is the cause, of this process or of the machine.
pub fn is_too_many_files(error: &io::Error) -> bool {
    matches!(Cause::of(error), Cause::TooManyFiles | Cause::TooManyFilesInAll)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause<'a> {
    DiskFull,
    QuotaExceeded,
    FileTooLarge,
    ReadOnly,
    TooManyFiles,
    TooManyFilesInAll,
    NotFound,
    Denied,
    NotAFolder,
    IsAFolder,
    BrokenPipe,
    NoMemory,
    BadDisk,
    /// An error of this project inside of an [`io::Error`].
    Explained(String),
    Other(Cow<'a, str>),
}

impl Cause<'_> {
    fn of(error: &io::Error) -> Self {
        match code_of(error) {
            Some(libc::ENOSPC) => Self::DiskFull,
            Some(libc::EDQUOT) => Self::QuotaExceeded,
            Some(libc::EFBIG) => Self::FileTooLarge,
            Some(libc::EROFS) => Self::ReadOnly,
            Some(libc::EMFILE) => Self::TooManyFiles,
            Some(libc::ENFILE) => Self::TooManyFilesInAll,
            Some(libc::ENOENT) => Self::NotFound,
            Some(libc::EACCES | libc::EPERM) => Self::Denied,
            Some(libc::ENOTDIR) => Self::NotAFolder,
            Some(libc::EISDIR) => Self::IsAFolder,
            Some(libc::EPIPE) => Self::BrokenPipe,
            Some(libc::ENOMEM | libc::EAGAIN) => Self::NoMemory,
            Some(libc::EIO) => Self::BadDisk,
            Some(code) => Self::Other(without_number(&io::Error::from_raw_os_error(code).to_string()).into()),
            None => Self::of_kind(error),
        }
    }

    /// The cause of an error without the system's number.
    fn of_kind(error: &io::Error) -> Self {
        if let Some(inner) = error.get_ref() {
            return Self::Explained(inner.to_string());
        }
        match error.kind() {
            ErrorKind::StorageFull => Self::DiskFull,
            ErrorKind::QuotaExceeded => Self::QuotaExceeded,
            ErrorKind::FileTooLarge => Self::FileTooLarge,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::PermissionDenied => Self::Denied,
            ErrorKind::NotADirectory => Self::NotAFolder,
            ErrorKind::IsADirectory => Self::IsAFolder,
            ErrorKind::BrokenPipe => Self::BrokenPipe,
            ErrorKind::OutOfMemory => Self::NoMemory,
            ErrorKind::UnexpectedEof => Self::Other("the file is shorter than expected".into()),
            _ => Self::Other(error.to_string().into()),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::DiskFull | Self::QuotaExceeded => "free space there",
            Self::FileTooLarge => "raise the limit with ulimit -f",
            Self::ReadOnly => "mount it writable",
            Self::TooManyFiles => "raise the limit with ulimit -n",
            Self::TooManyFilesInAll => "raise fs.file-max or stop other programs",
            Self::NotFound | Self::NotAFolder | Self::IsAFolder | Self::Explained(_) => "check the path",
            Self::Denied => "check the permissions",
            Self::BrokenPipe => "check why that program exited",
            Self::NoMemory => NO_MEMORY_REMEDY,
            Self::BadDisk => "check the disk and the kernel log",
            Self::Other(_) => "check the path and the mount",
        }
    }

    /// Whether the use of another disk or folder can avoid the cause.
    fn is_of_the_place(&self) -> bool {
        !matches!(self, Self::TooManyFiles | Self::TooManyFilesInAll | Self::NoMemory | Self::BrokenPipe)
    }
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::DiskFull => "disk full",
            Self::QuotaExceeded => "disk quota exceeded",
            Self::FileTooLarge => "file size limit exceeded",
            Self::ReadOnly => "read-only file system",
            Self::TooManyFiles => {
                return match getrlimit(Resource::Nofile).current {
                    Some(limit) => write!(out, "too many open files (limit {limit})"),
                    None => out.write_str("too many open files"),
                };
            }
            Self::TooManyFilesInAll => "too many open files on this machine",
            Self::NotFound => "no such file or folder",
            Self::Denied => "permission denied",
            Self::NotAFolder => "a part of the path is a file, expected a folder",
            Self::IsAFolder => "it is a folder, expected a file",
            Self::BrokenPipe => "broken pipe, the program that reads it exited",
            Self::NoMemory => NO_MEMORY,
            Self::BadDisk => "input/output error of the disk",
            Self::Explained(text) => text,
            Self::Other(text) => text,
        })
    }
}

/// The operating system's error number, also of an error that wraps the system's error together with a path,
/// as in tempfile.
pub(crate) fn code_of(error: &io::Error) -> Option<i32> {
    let wrapped = || {
        let text = error.get_ref()?.to_string();
        let (_, code) = text.split_once("(os error ")?;
        code.split_once(')')?.0.parse().ok()
    };
    error.raw_os_error().or_else(wrapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(code: i32) -> String {
        let error = io::Error::from_raw_os_error(code);
        Failure::writing("write the rows", &error, "choose another --out").to_string()
    }

    #[test]
    fn a_disk_without_room_is_named_with_what_to_do() {
        for (code, expected) in [
            (libc::ENOSPC, "disk full while writing; free space there or choose another --out"),
            (libc::EDQUOT, "disk quota exceeded while writing; free space there or choose another --out"),
            (
                libc::EFBIG,
                "file size limit exceeded while writing; raise the limit with ulimit -f or choose another --out",
            ),
            (
                libc::EROFS,
                "cannot write the rows: read-only file system; mount it writable or choose another --out",
            ),
        ] {
            assert_eq!(written(code), expected);
        }
    }

    #[test]
    fn space_is_named_only_where_there_is_none() {
        // ENOBUFS is about the space of a buffer, in the words of the operating system.
        let of_space = [libc::ENOSPC, libc::EDQUOT, libc::ENOBUFS];
        for code in (1..=133).filter(|code| !of_space.contains(code)) {
            let message = written(code);
            assert!(!message.contains("space"), "{code}: {message}");
            assert!(message.contains("; "), "{code}: no remedy: {message}");
        }
    }

    #[test]
    fn too_many_open_files_name_their_limit_and_no_disk() {
        let limit = getrlimit(Resource::Nofile).current.unwrap();
        let expected = format!(
            "cannot write the rows: too many open files (limit {limit}); raise the limit with ulimit -n"
        );
        assert_eq!(written(libc::EMFILE), expected);
    }

    #[test]
    fn too_many_open_files_are_seen_through_the_path_that_tempfile_adds() {
        let inner = io::Error::from_raw_os_error(libc::EMFILE);
        let error = io::Error::other(format!("{inner} at path \"/x/.merge-a.h5\""));
        assert!(cause(&error).starts_with("too many open files (limit "), "{}", cause(&error));
    }

    #[test]
    fn no_number_of_the_system_and_no_word_of_a_library_is_shown() {
        for error in [
            io::Error::from_raw_os_error(libc::ENOENT),
            io::ErrorKind::NotFound.into(),
            tempfile::tempfile_in("/no/such/folder").unwrap_err(),
            tempfile::NamedTempFile::new_in("/no/such/folder").unwrap_err(),
        ] {
            assert_eq!(
                Failure::reading("read it", &error).to_string(),
                "cannot read it: no such file or folder; check the path",
                "{error:?}"
            );
        }
        assert!((1..=133).all(|code| !written(code).contains("os error")));
    }

    #[test]
    fn an_error_that_explains_itself_keeps_its_words() {
        let error = io::Error::other("the gzip member at byte 0 is cut off; fetch the file again");
        assert_eq!(
            Failure::reading("read lines", &error).to_string(),
            "cannot read lines: the gzip member at byte 0 is cut off; fetch the file again"
        );
    }
}

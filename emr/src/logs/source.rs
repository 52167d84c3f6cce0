//! Lists logs in local folders and in S3, and opens them.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use program::exit::Exit;
use program::system::Failure;
use store::{Object, S3Options, objects};

use super::{LogLines, LogOrigin, is_log, place_of};
use crate::Error;

/// Maximum number of logs in a listing. The newest are kept.
pub const LISTED_MAX: usize = 20_000;
/// Maximum depth of folders. EMR's logs are seven folders deep.
const DEPTH_MAX: usize = 16;
/// Number of lines in which a file shows that it is binary.
const BINARY_LINES: usize = 4;
/// Objects up to this size are read by one request.
const SMALL_BYTES: u64 = 1 << 20;

fn unreadable(path: &str, source: io::Error) -> Error {
    Error::io(format!("{path}: {}", Failure::reading("read logs", &source)), source)
}

/// A log, not yet read.
#[derive(Clone, Debug)]
pub struct Log {
    /// Its path below the folder that was listed.
    pub name: String,
    /// Its full path or URL.
    pub location: String,
    /// What wrote it, if its name shows that.
    pub place: Option<LogOrigin>,
    /// Size in bytes, compressed if it is.
    pub bytes: u64,
    /// When it was written last.
    pub modified: SystemTime,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    File(PathBuf),
    Object(Box<Object>),
    Text(String),
}

/// The logs of a listing, newest first.
#[derive(Debug, Default)]
pub struct Listing {
    /// The logs.
    pub logs: Vec<Log>,
    /// Number of logs that were omitted because there are more than [`LISTED_MAX`].
    pub n_omitted: usize,
}

impl Log {
    /// A text that is in no file, such as the reason of a cluster's state.
    pub fn of_text(name: &str, place: LogOrigin, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: name.to_owned(),
            place: Some(place),
            bytes: text.len() as u64,
            modified: SystemTime::now(),
            content: Content::Text(text.to_owned()),
        }
    }

    /// Whether it is the reason of a state.
    pub fn is_state(&self) -> bool {
        matches!(self.content, Content::Text(_))
    }

    /// Refuses a file whose first bytes contain a zero, such as a dataset. A compressed log is decompressed first.
    fn check_text(&self) -> Result<(), Error> {
        match self.lines()?.take(BINARY_LINES).any(|(_, line)| line.contains('\0')) {
            true => {
                let path = &self.location;
                let message = format!("{path}: found binary data, expected a log; check the path");
                Err(Error::new(Exit::BadInput, message))
            }
            false => Ok(()),
        }
    }

    /// Opens the log.
    pub fn lines(&self) -> Result<LogLines, Error> {
        let unreadable = |source| unreadable(&self.location, source);
        let reader: Box<dyn Read> = match &self.content {
            Content::File(path) => Box::new(File::open(path).map_err(unreadable)?),
            Content::Object(object) if object.bytes() <= SMALL_BYTES => {
                Box::new(Cursor::new(object.read_range(0, object.bytes())?))
            }
            Content::Object(object) => Box::new(object.reader().map_err(unreadable)?),
            Content::Text(text) => Box::new(Cursor::new(text.clone().into_bytes())),
        };
        LogLines::new(reader).map_err(unreadable)
    }
}

/// The logs of a cluster below the log folder of its configuration.
pub fn cluster_folder(log_folder: &str, cluster: &str) -> String {
    format!("{}/{cluster}/", log_folder.trim_end_matches('/'))
}

/// The logs at a path or an `s3://` URL: this file, or the logs below this folder. A folder in S3 without any
/// object has no logs, because S3 has no folders.
pub fn list(location: &str, s3: &S3Options) -> Result<Listing, Error> {
    // EMR reports the folder with the scheme of its older file system.
    let is_s3 = ["s3://", "s3a://", "s3n://"].iter().any(|scheme| location.starts_with(scheme));
    let mut logs = if is_s3 { in_s3(location, s3)? } else { in_folder(location)? };
    logs.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
    let n_omitted = logs.len().saturating_sub(LISTED_MAX);
    logs.truncate(LISTED_MAX);
    Ok(Listing { logs, n_omitted })
}

fn in_s3(url: &str, s3: &S3Options) -> Result<Vec<Log>, Error> {
    let found = match objects(url, s3) {
        Err(store::Error::NoObjects { .. }) => return Ok(Vec::new()),
        found => found?,
    };
    let single = found.len() == 1 && url.trim_end_matches('/').ends_with(found[0].name());
    let root = url.splitn(4, '/').nth(3).unwrap_or_default().trim_end_matches('/').to_owned();
    let log = |object: Object| {
        let below =
            object.name().strip_prefix(&root).map_or(object.name(), |rest| rest.trim_start_matches('/'));
        let name = if below.is_empty() { object.name() } else { below }.to_owned();
        (single || is_log(&name)).then(|| Log {
            location: object.url(),
            place: place_of(object.name()),
            bytes: object.bytes(),
            modified: object.modified(),
            content: Content::Object(Box::new(object)),
            name,
        })
    };
    let logs: Vec<_> = found.into_iter().filter_map(log).collect();
    match &logs[..] {
        [one] if single => one.check_text()?,
        _ => {}
    }
    Ok(logs)
}

fn in_folder(path: &str) -> Result<Vec<Log>, Error> {
    let unreadable = |source| unreadable(path, source);
    let root = Path::new(path);
    let metadata = match fs::metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("{path}: no such file or folder, expected logs; check the path");
            return Err(Error::new(Exit::MissingInput, message));
        }
        metadata => metadata.map_err(unreadable)?,
    };
    if metadata.is_file() {
        let log = of_file(root, path.to_owned(), &metadata);
        log.check_text()?;
        return Ok(vec![log]);
    }
    let mut logs = Vec::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            // Links are not followed: a folder may contain itself by a link.
            let kind = entry.file_type().map_err(unreadable)?;
            let path = entry.path();
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if kind.is_file() {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                if is_log(&name) {
                    // A node deletes old logs at any time.
                    let Ok(metadata) = entry.metadata() else { continue };
                    logs.push(of_file(&path, name, &metadata));
                }
            }
        }
    }
    Ok(logs)
}

fn of_file(path: &Path, name: String, metadata: &fs::Metadata) -> Log {
    Log {
        location: path.display().to_string(),
        place: place_of(&path.to_string_lossy()),
        bytes: metadata.len(),
        modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        content: Content::File(path.to_owned()),
        name,
    }
}

//! Downloads a file, resumes a download, and compares the file with its SHA-256.
//!
//! A file is written as `FILE.part`, and renamed when it is verified. `FILE.part.version` has the URL and the version (`ETag`
//! or `Last-Modified`) of these bytes, so that only bytes of the same version follow them. `FILE.sha256`, which `sha256sum
//! --check` reads, has the digest of the first download; later ones are compared with it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use durable::sha256;
use program::bars::ProgressBars;
use program::exit::{Exit, Failed, Fails};
use program::place::folder_of;
use program::progress::Progress;
use program::system::Failure;
use store::naming::{give_name, sync_folder};
use store::{WebFile, WebReader};

use super::corpora::Published;
use crate::Result;

/// Bytes that are written at once.
const WRITTEN_BYTES: usize = 256 << 10;

/// Downloads a file unless it is there, and verifies it. A published digest is that of the original, also of a mirror.
pub(super) fn download(
    url: &str,
    path: &Path,
    published: Option<&Published>,
    progress: &ProgressBars,
) -> Result<()> {
    if path.exists() {
        return verify(path, path, published).map(|_| ());
    }
    let part = beside(path, ".part");
    let opened = OpenOptions::new().create(true).append(true).open(&part);
    let mut out = opened.map_err(|error| unwritten(&part, &error))?;
    if let Err(TryLockError::WouldBlock) = out.try_lock() {
        let message = format!("{}: another process downloads it; wait for its end", part.display());
        return Err(Failed::new(Exit::TryAgain, message));
    }
    let transferred = match Start::of(url, path, &out)? {
        Some(start) => match transfer(url, path, published, Some(&start), &mut out, progress) {
            Err(Stopped::Changed) => {
                progress.notice(&format!(
                    "{url}: another version than that of {}; starting again",
                    part.display()
                ));
                transfer(url, path, published, None, &mut out, progress)
            }
            other => other,
        },
        None => transfer(url, path, published, None, &mut out, progress),
    };
    transferred.map_err(|stopped| match stopped {
        Stopped::Changed => {
            Failed::new(Exit::TryAgain, format!("{url}: changed during the download; run again"))
        }
        Stopped::Failed(failed) => failed,
    })?;
    out.sync_all().map_err(|error| unwritten(&part, &error))?;
    let verified = verify(&part, path, published);
    // Without its version, a file with another digest is not continued.
    remove(&beside(path, ".part.version"))?;
    verified?;
    let named = give_name(&part, path).and_then(|()| sync_folder(folder_of(path)));
    named.map_err(|error| unwritten(path, &error))?;
    remove(&part)
}

/// Removes a file, if it exists.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unwritten(path, &error)),
        _ => Ok(()),
    }
}

/// The bytes of an earlier download, and their version.
struct Start {
    at: u64,
    version: String,
}

impl Start {
    fn of(url: &str, path: &Path, part: &File) -> Result<Option<Self>> {
        let at = part.metadata().map_err(|error| unwritten(&beside(path, ".part"), &error))?.len();
        let version = fs::read_to_string(beside(path, ".part.version")).unwrap_or_default();
        let version = version.strip_suffix('\n').and_then(|version| version.split_once('\n'));
        let same = version.filter(|(of, _)| at > 0 && *of == url);
        Ok(same.map(|(_, version)| Self { at, version: version.to_owned() }))
    }
}

enum Stopped {
    /// The server has another version than that of the earlier bytes.
    Changed,
    Failed(Failed),
}

impl From<Failed> for Stopped {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// Appends the file, or the rest of it, to `out`.
fn transfer(
    url: &str,
    path: &Path,
    published: Option<&Published>,
    start: Option<&Start>,
    out: &mut File,
    progress: &ProgressBars,
) -> std::result::Result<(), Stopped> {
    let part = beside(path, ".part");
    let unwritten_part = |error: &io::Error| Stopped::Failed(unwritten(&part, error));
    let file = WebFile::at(url).map_err(Failed::from)?;
    let reader = match start {
        None => {
            remove(&beside(path, ".part.version"))?;
            out.set_len(0).map_err(|error| unwritten_part(&error))?;
            progress.notice(&format!("fetching {url}"));
            file.reader()
        }
        Some(Start { at, version }) => {
            progress.notice(&format!("fetching {url} from byte {at} on"));
            file.rest(*at, version)
        }
    };
    let mut reader = reader.map_err(|error| failed(path, error))?;
    let (mut buffer, mut stage) = (vec![0; WRITTEN_BYTES], None);
    let mut at = start.map_or(0, |start| start.at);
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(n) => n,
            Err(error) => return Err(failed(path, error)),
        };
        if stage.is_none() {
            stage = Some(progress.fetching(stated(url, path, published, start, &reader)?));
        }
        if n == 0 {
            stage.iter().for_each(program::bars::Stage::finish_and_clear);
            return Ok(());
        }
        out.write_all(&buffer[..n]).map_err(|error| unwritten_part(&error))?;
        at += n as u64;
        stage.iter().for_each(|stage| stage.set_position(at));
    }
}

/// Refuses a file of another size than the published one, and keeps the version of a new download. Returns the size.
fn stated(
    url: &str,
    path: &Path,
    published: Option<&Published>,
    start: Option<&Start>,
    reader: &WebReader,
) -> Result<Option<u64>> {
    let Some(stated) = reader.stated() else { return Ok(None) };
    if let (Some(found), Some(Published { bytes, .. })) = (stated.bytes, published)
        && found != *bytes
    {
        let why =
            format!("found a file of {found} bytes, expected {bytes}; pass another server with --from URL");
        return Err(Failed::new(Exit::MissingInput, format!("{url}: {why}")));
    }
    if let (None, Some(version)) = (start, &stated.version) {
        let file = beside(path, ".part.version");
        fs::write(&file, format!("{url}\n{version}\n")).map_err(|error| unwritten(&file, &error))?;
    }
    Ok(stated.bytes)
}

/// Compares `content` with the published digest of a file and with that of its first download, which is recorded.
fn verify(content: &Path, path: &Path, published: Option<&Published>) -> Result<()> {
    let found = sha256::summary(content, &Progress::default());
    let found = found.map_err(|error| {
        let why = Failure::reading("read it", &error);
        Failed::new(Exit::Io, format!("{}: {why}", content.display()))
    })?;
    let record = beside(path, ".sha256");
    let recorded = fs::read_to_string(&record).ok();
    let recorded = recorded.as_deref().and_then(|line| line.split_whitespace().next());
    let other = |expected: &str, by: &str, remedy: &str| {
        let found = format!("its SHA-256 is {}, expected {expected}, {by}; {remedy}", found.sha256);
        Err(Failed::new(Exit::MissingInput, format!("{}: {found}", content.display())))
    };
    if let Some(Published { sha256, .. }) = published
        && *sha256 != found.sha256
    {
        return other(
            sha256,
            "as published",
            "remove it and run again, or pass another server with --from URL",
        );
    }
    match recorded {
        Some(expected) if expected != found.sha256 => {
            let by = format!("as in {}", record.display());
            other(
                expected,
                &by,
                "remove it and run again, or remove the record if the corpus has a new version",
            )
        }
        Some(_) => Ok(()),
        None => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            fs::write(&record, format!("{}  {name}\n", found.sha256))
                .map_err(|error| unwritten(&record, &error))
        }
    }
}

/// The error of a download. Without a network, a file that was downloaded elsewhere is as good.
fn failed(path: &Path, error: io::Error) -> Stopped {
    match error.downcast::<store::Error>() {
        Ok(store::Error::Changed { .. }) => Stopped::Changed,
        Ok(error) => {
            let by_hand = format!("; or put the file from elsewhere at {}, and run again", path.display());
            Stopped::Failed(Failed::new(error.exit(), Failed::from(error).message + &by_hand))
        }
        Err(error) => {
            let why = Failure::reading("start the download", &error);
            Stopped::Failed(Failed::new(Exit::Io, format!("{}: {why}", path.display())))
        }
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failed {
    let why = Failure::writing("write the file", error, "pass a folder on another disk with --out");
    Failed::new(Exit::Io, format!("{}: {why}", path.display()))
}

/// The path with these letters behind its name.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

//! Downloads a file, resumes a download, and compares the file with its SHA-256.
//!
//! The bytes are written to `.FILE.part`, which gets the name `FILE` when it is verified. `.FILE.json` ([`Record`]) has
//! their URL and version, so that only bytes of the same version follow them, and the SHA-256 of the first download,
//! with which later ones are compared. Both names are hidden: a folder with corpora can be an input.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use durable::replace_file;
use durable::sha256::Hashing;
use flate2::bufread::MultiGzDecoder;
use program::bars::ProgressBars;
use program::exit::{Exit, Failed, Fails, chain};
use program::place::folder_of;
use program::system::Failure;
use program::temporary;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use store::naming::{give_name, sync_folder};
use store::{WebFailure, WebFile, WebReader};

use super::corpora::Published;
use crate::Result;

/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Number of times that the part is opened, if other processes give it its name meanwhile.
const OPENED_MAX: usize = 10;

/// What is known of a file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// SHA-256 of the first download, unless a digest is published.
    sha256: Option<String>,
    /// The download that is not finished.
    part: Option<Part>,
}

/// The version of the bytes in `.FILE.part`, as its server states it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    url: String,
    /// `ETag` or `Last-Modified`. Without one, the download starts again.
    version: Option<String>,
    /// Size of the whole file.
    bytes: Option<u64>,
    sha256: Option<String>,
}

/// A file that is downloaded unless it exists.
pub(super) struct Download<'a> {
    source: WebFile,
    path: &'a Path,
    part: PathBuf,
    record: PathBuf,
    /// The digest of the original, also of a mirror.
    published: Option<&'a Published>,
    progress: &'a ProgressBars,
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

impl<'a> Download<'a> {
    /// Nothing is requested yet.
    pub fn new(
        source: WebFile,
        path: &'a Path,
        published: Option<&'a Published>,
        progress: &'a ProgressBars,
    ) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = |extension: &str| path.with_file_name(format!(".{name}.{extension}"));
        Self { source, path, part: beside("part"), record: beside("json"), published, progress }
    }

    /// Downloads the file unless it exists, and verifies it.
    pub fn run(&self) -> Result<()> {
        if exists(self.path) {
            return self.keep();
        }
        self.check_naming()?;
        let mut out = self.locked()?;
        // Another process may have finished it.
        let done = if exists(self.path) { self.keep() } else { self.fetch(&mut out) };
        let left = out.metadata().map_err(|error| unwritten(&self.part, &error))?;
        if left.len() == 0 && is_at(&left, &self.part) {
            remove(&self.part)?;
        }
        done
    }

    /// Verifies a file that was there before.
    fn keep(&self) -> Result<()> {
        let mut record = self.read_record()?;
        let is_first = self.published.is_none() && record.sha256.is_none();
        self.verify(self.path, &mut record)?;
        let compared = if is_first { "its SHA-256 was recorded as the first one" } else { "it is verified" };
        self.progress.notice(&format!("{} exists and is kept; {compared}", self.path.display()));
        Ok(())
    }

    /// Refuses a folder in which a file cannot get a name without overwriting, before its first byte is fetched.
    fn check_naming(&self) -> Result<()> {
        let folder = folder_of(self.path);
        let named = || {
            let (hidden, path) = (temporary::path_in(folder)?, temporary::path_in(folder)?);
            File::create_new(&hidden)?;
            give_name(&hidden, &path)
        };
        named().map_err(|error| match error.kind() {
            ErrorKind::Unsupported => {
                let found = "its file system can neither rename without overwriting nor link";
                let remedy = "pass a folder of another file system with --out";
                Failed::new(Exit::Io, format!("{}: {found}; {remedy}", folder.display()))
            }
            _ => unwritten(folder, &error),
        })
    }

    /// Opens and locks the part. Another process may have given the file its name before it was locked: then the part is
    /// opened again.
    fn locked(&self) -> Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        for _ in 0..OPENED_MAX {
            let out = options.open(&self.part).map_err(|error| unwritten(&self.part, &error))?;
            match out.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => {
                    let why = Failure::writing("lock it", &error, "pass a folder on another disk with --out");
                    return Err(Failed::new(Exit::Io, format!("{}: {why}", self.part.display())));
                }
            }
            let opened = out.metadata().map_err(|error| unwritten(&self.part, &error))?;
            if is_at(&opened, &self.part) {
                return Ok(out);
            }
        }
        let message = format!("{}: another process downloads it; wait for its end", self.path.display());
        Err(Failed::new(Exit::TryAgain, message))
    }

    /// Fetches what is missing of the file, verifies it and gives it its name.
    fn fetch(&self, out: &mut File) -> Result<()> {
        let mut record = self.read_record()?;
        let at = out.metadata().map_err(|error| unwritten(&self.part, &error))?.len();
        if at > 0 && record.part.is_none() {
            let found = format!("found bytes whose version is not in {}", self.record.display());
            let why = format!("{found}, expected those of an interrupted download; move it away");
            return Err(Failed::new(Exit::Usage, format!("{}: {why}", self.part.display())));
        }
        let earlier = record.part.as_ref().filter(|part| at > 0 && part.url == self.source.id());
        if earlier.is_none_or(|part| part.bytes != Some(at)) {
            let version = earlier.and_then(|part| part.version.clone());
            self.transfer_all(version.as_deref(), &mut record, out)?;
        }
        out.sync_all().map_err(|error| unwritten(&self.part, &error))?;
        if let Err(failed) = self.verify(&self.part, &mut record) {
            // A file of another content is not continued.
            if failed.exit == Exit::MissingInput {
                out.set_len(0).map_err(|error| unwritten(&self.part, &error))?;
                self.forget_part(record)?;
            }
            return Err(failed);
        }
        self.name()?;
        self.forget_part(record)
    }

    fn transfer_all(&self, version: Option<&str>, record: &mut Record, out: &mut File) -> Result<()> {
        let mut transferred = self.transfer(version, record, out);
        if let (Some(_), Err(Stopped::Changed)) = (version, &transferred) {
            let found = format!("another version than that of {}", self.part.display());
            self.progress.notice(&format!("{}: {found}; starting again", self.source.name()));
            transferred = self.transfer(None, record, out);
        }
        transferred.map_err(|stopped| match stopped {
            Stopped::Changed => {
                let found = "changed during the download; run again";
                Failed::new(Exit::TryAgain, format!("{}: {found}", self.source.name()))
            }
            Stopped::Failed(failed) => failed,
        })
    }

    /// Writes the file; with a version, appends the rest of it.
    fn transfer(
        &self,
        version: Option<&str>,
        record: &mut Record,
        out: &mut File,
    ) -> std::result::Result<(), Stopped> {
        let unwritten_part = |error: io::Error| unwritten(&self.part, &error);
        let mut at = 0;
        let reader = match version {
            None => {
                self.progress.notice(&format!("fetching {}", self.source.name()));
                self.source.reader()
            }
            Some(version) => {
                at = out.metadata().map_err(unwritten_part)?.len();
                self.progress.notice(&format!("fetching {} from byte {at} on", self.source.name()));
                self.source.rest(at, version)
            }
        };
        let mut reader = reader.map_err(|error| self.stopped(error))?;
        let (mut buffer, mut stage) = (vec![0; BUFFER_BYTES], None);
        loop {
            let n = reader.read(&mut buffer).map_err(|error| self.stopped(error))?;
            let stage = match &mut stage {
                Some(stage) => stage,
                None => {
                    let part = self.stated(&reader)?;
                    let bytes = part.bytes;
                    if version.is_none() {
                        // Bytes of another version are gone before this one is recorded.
                        out.set_len(0).and_then(|()| out.sync_all()).map_err(unwritten_part)?;
                        record.part = Some(part);
                        self.write_record(record)?;
                    }
                    stage.insert(self.progress.fetching(bytes))
                }
            };
            if n == 0 {
                // A complete part is not requested again.
                if let Some(part) = record.part.as_mut().filter(|part| part.bytes.is_none()) {
                    part.bytes = Some(at);
                    self.write_record(record)?;
                }
                return Ok(());
            }
            out.write_all(&buffer[..n]).map_err(unwritten_part)?;
            at += n as u64;
            stage.set_position(at);
        }
    }

    /// The version that the server states. Refuses a file of another size than the published one.
    fn stated(&self, reader: &WebReader) -> Result<Part> {
        let stated = reader.stated().ok_or_else(|| Failed::defect("the first read follows the response"))?;
        if let (Some(found), Some(Published { bytes, .. })) = (stated.bytes, self.published)
            && found != *bytes
        {
            let found = format!("found a file of {found} bytes, expected {bytes}");
            let message = format!("{}: {found}; pass another mirror with --from URL", self.source.name());
            return Err(Failed::new(Exit::MissingInput, message));
        }
        Ok(Part {
            url: self.source.id(),
            version: stated.version.clone(),
            bytes: stated.bytes,
            sha256: stated.sha256.clone(),
        })
    }

    /// Compares `content`, the file or its part, with all known digests. The first one is recorded.
    fn verify(&self, content: &Path, record: &mut Record) -> Result<()> {
        let is_part = content != self.path;
        let (name, again) = match is_part {
            true => (self.source.name(), "run again"),
            false => (self.path.display().to_string(), "remove it and run again"),
        };
        let refused = |why: String| Err(Failed::new(Exit::MissingInput, format!("{name}: {why}")));
        let mirror = format!("{again}, or pass another mirror with --from URL");
        let is_first = self.published.is_none() && record.sha256.is_none();
        let found = match self.digest(content, is_first) {
            Ok(found) => found,
            Err(error) if error.raw_os_error().is_none() => {
                return refused(format!("found no whole gzip file ({error}), expected one; {mirror}"));
            }
            Err(error) => {
                let why = Failure::reading("read it", &error);
                return Err(Failed::new(Exit::Io, format!("{}: {why}", content.display())));
            }
        };
        let published = self.published.map(|published| (published.sha256, "as published", mirror.clone()));
        let stated = record.part.as_ref().filter(|_| is_part).and_then(|part| part.sha256.as_deref());
        let stated = stated.map(|stated| (stated, "as its server states", mirror));
        let as_recorded = format!("as in {}", self.record.display());
        let recorded = record.sha256.as_deref().map(|recorded| {
            let remedy = format!("{again}, or remove the record if the corpus has a new version");
            (recorded, &as_recorded[..], remedy)
        });
        let mut known = published.into_iter().chain(stated).chain(recorded);
        if let Some((expected, by, remedy)) = known.find(|(expected, ..)| *expected != found) {
            return refused(format!("its SHA-256 is {found}, expected {expected}, {by}; {remedy}"));
        }
        if is_first {
            record.sha256 = Some(found);
            self.write_record(record)?;
        }
        Ok(())
    }

    /// The SHA-256 of a file. The first time, the file is also decompressed: nothing else tells whether it is whole.
    fn digest(&self, content: &Path, is_first: bool) -> io::Result<String> {
        let mut bytes = Hashing::new(self.progress.counting(File::open(content)?));
        if is_first {
            let buffered = BufReader::with_capacity(BUFFER_BYTES, &mut bytes);
            io::copy(&mut MultiGzDecoder::new(buffered), &mut io::sink())?;
        }
        io::copy(&mut BufReader::with_capacity(BUFFER_BYTES, &mut bytes), &mut io::sink())?;
        Ok(bytes.summary().sha256)
    }

    /// Gives the part the name of the file.
    fn name(&self) -> Result<()> {
        let folder = folder_of(self.path);
        let named = give_name(&self.part, self.path).and_then(|()| sync_folder(folder));
        named.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                let found = "appeared during the download, which is complete; move it away and run again";
                Failed::new(Exit::Usage, format!("{}: {found}", self.path.display()))
            }
            _ => unwritten(self.path, &error),
        })?;
        // On a file system without exclusive renames, the name is a link.
        match fs::symlink_metadata(self.path) {
            Ok(file) if is_at(&file, &self.part) => remove(&self.part),
            _ => Ok(()),
        }
    }

    fn read_record(&self) -> Result<Record> {
        let refused = |exit, why: String| Failed::new(exit, format!("{}: {why}", self.record.display()));
        match fs::read(&self.record) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Record::default()),
            Err(error) => Err(refused(Exit::Io, Failure::reading("read the record", &error).to_string())),
            Ok(json) => serde_json::from_slice(&json).map_err(|error| {
                let expected =
                    "expected the record of a download; remove it if the corpus may be fetched anew";
                refused(Exit::MissingInput, format!("found {error}, {expected}"))
            }),
        }
    }

    /// Removes the part from the record, and a record without a digest.
    fn forget_part(&self, record: Record) -> Result<()> {
        match record.sha256 {
            Some(_) => self.write_record(&Record { part: None, ..record }),
            None => remove(&self.record),
        }
    }

    fn write_record(&self, record: &Record) -> Result<()> {
        let written = replace_file(&self.record, |mut file| {
            serde_json::to_writer(file, record)?;
            file.write_all(b"\n")
        });
        written.map_err(|error| Failed::new(error.exit(), chain(&error)))
    }

    /// The error of a download. A file that was downloaded elsewhere is as good.
    fn stopped(&self, error: io::Error) -> Stopped {
        let by_hand = format!(
            "pass a mirror with --from URL, or put the file at {} and run again",
            self.path.display()
        );
        let (exit, why) = match error.downcast::<store::Error>() {
            Ok(store::Error::Changed { .. }) => return Stopped::Changed,
            Ok(error) => {
                let exit = error.exit();
                match error {
                    store::Error::Web { found, why: WebFailure::Unavailable, .. } => {
                        (exit, format!("{found}; check the network and HTTPS_PROXY, {by_hand}"))
                    }
                    store::Error::Web { found, why: WebFailure::Unauthenticated, .. } => {
                        let certificates = "set SSL_CERT_FILE to the certificates of your network";
                        (exit, format!("{found}; {certificates}, {by_hand}"))
                    }
                    store::Error::Web { found, .. } => (exit, format!("{found}; {by_hand}")),
                    other => return Stopped::Failed(other.into()),
                }
            }
            Err(error) => (Exit::Io, Failure::reading("start the download", &error).to_string()),
        };
        Stopped::Failed(Failed::new(exit, format!("{}: {why}", self.source.name())))
    }
}

/// Whether anything has this name, also a link to nothing.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether this is the name of the file.
fn is_at(file: &Metadata, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
}

/// Removes a file, if it exists.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unwritten(path, &error)),
        _ => Ok(()),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failed {
    let why = Failure::writing("write the file", error, "pass a folder on another disk with --out");
    Failed::new(Exit::Io, format!("{}: {why}", path.display()))
}

//! Objects of S3 as local files that are fetched once.
//!
//! An entry is stored under its SHA-256, `objects/DIGEST`, and read only after its content was compared with this
//! digest. If the caller does not know the digest of an object, its URL, ETag and size identify a version, and
//! `versions/` maps a version to the digest of its content. A damaged or deleted entry is fetched again.
//!
//! Processes that need the same entry fetch it once: the first one holds a lock, and the others wait. The operating
//! system releases the lock when its process exits. Entries are never deleted; the whole folder may be, at any time.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use durable::Summary;
use durable::output::summary;
use durable::sha256;
use program::location::S3Url;
use program::progress::Progress;
use program::temporary;

use crate::naming::make_folder;
use crate::s3::{Found, S3Store};
use crate::{Error, S3Options};

/// Variables that name the folder of the cache, with what is appended to each.
const FOLDER_VARIABLES: [(&str, &str); 3] =
    [("SENTIMILL_CACHE", ""), ("XDG_CACHE_HOME", "sentimill"), ("HOME", ".cache/sentimill")];
/// Interval at which a waiting process tries the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time that another process holds the lock without progress. It exceeds the time limits of its requests.
const LOCK_LIMIT: Duration = Duration::from_secs(600);
/// Length of a SHA-256 in hexadecimal digits.
const SHA256_DIGITS: usize = 64;

/// Options of a fetch.
#[derive(Debug, Clone, Default)]
pub struct CacheOptions {
    /// Options for S3.
    pub s3: S3Options,
    /// The SHA-256 of the object in lower-case hexadecimal digits, if it is known. An entry with this digest is used
    /// without any request.
    pub sha256: Option<String>,
    /// The folder of the cache. The default is `$SENTIMILL_CACHE`, else `$XDG_CACHE_HOME/sentimill`, else
    /// `~/.cache/sentimill`.
    pub folder: Option<PathBuf>,
    /// Each byte fetched is a step.
    pub progress: Progress,
}

/// An object in the cache, to be opened for reading only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFile {
    /// Its path.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Its SHA-256, which was computed from the file by this call.
    pub sha256: String,
    /// Whether this call fetched it.
    pub is_fetched: bool,
}

/// Returns an object as a local file, and fetches it if the cache does not contain it.
///
/// ```no_run
/// use program::location::S3Url;
/// use store::{CacheOptions, cached};
///
/// let url = S3Url::parse("s3://bucket/reviews.h5").expect("a valid URL");
/// let file = cached(&url, &CacheOptions::default())?;
/// println!("{} is in {}", url, file.path.display());
/// # Ok::<(), store::Error>(())
/// ```
pub fn cached(url: &S3Url, options: &CacheOptions) -> Result<CachedFile, Error> {
    let cache = Cache::open(options.folder.clone())?;
    match &options.sha256 {
        Some(sha256) => {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            if sha256.len() != SHA256_DIGITS || !sha256.bytes().all(is_digit) {
                return Err(Error::NotASha256 { object: url.to_string(), found: sha256.clone() });
            }
            cache.of_digest(url, sha256, options)
        }
        None => cache.of_version(url, options),
    }
}

/// The folder of a cache.
struct Cache {
    folder: PathBuf,
}

/// The folder of the cache. It may not exist yet. Other programs may keep folders of other names in it.
pub fn cache_folder() -> Result<PathBuf, Error> {
    let named = |(variable, below): (&str, &str)| {
        let folder = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())?;
        Some(folder.join(below))
    };
    FOLDER_VARIABLES.into_iter().find_map(named).ok_or(Error::NoCache)
}

impl Cache {
    fn open(folder: Option<PathBuf>) -> Result<Cache, Error> {
        let cache = Cache { folder: folder.map_or_else(cache_folder, Ok)? };
        for below in ["objects", "versions", "locks", "partial"] {
            make_folder(&cache.folder.join(below)).map_err(|source| cache.failed("create it", source))?;
        }
        Ok(cache)
    }

    fn of_digest(&self, url: &S3Url, sha256: &str, options: &CacheOptions) -> Result<CachedFile, Error> {
        if let Some(entry) = self.entry(sha256)? {
            return Ok(entry);
        }
        let _lock = self.lock(sha256, url, LOCK_LIMIT)?;
        // Another process may have fetched it in the meantime.
        if let Some(entry) = self.entry(sha256)? {
            return Ok(entry);
        }
        let store = S3Store::of_object(url, &options.s3, &options.progress)?;
        let found = found(&store, url)?;
        self.fetch(sha256, &store, url, &found, Some(sha256))
    }

    fn of_version(&self, url: &S3Url, options: &CacheOptions) -> Result<CachedFile, Error> {
        let store = S3Store::of_object(url, &options.s3, &options.progress)?;
        let found = found(&store, url)?;
        // Without an ETag, versions cannot be distinguished, and each call fetches the object.
        let etag = found.info.etag.clone().unwrap_or_default();
        let entry = sha256::of_bytes(format!("{url}\n{etag}\n{}", found.info.bytes).as_bytes());
        let _lock = self.lock(&entry, url, LOCK_LIMIT)?;
        let version = self.folder.join("versions").join(&entry);
        let known = if etag.is_empty() { None } else { read_digest(&version) };
        if let Some(entry) = known.map_or(Ok(None), |sha256| self.entry(&sha256))? {
            return Ok(entry);
        }
        let fetched = self.fetch(&entry, &store, url, &found, None)?;
        let written = temporary::file_in(&self.folder.join("versions")).and_then(|mut hidden| {
            hidden.write_all(fetched.sha256.as_bytes())?;
            fs::rename(hidden.path(), &version)
        });
        written.map_err(|source| self.failed("write to it", source))?;
        Ok(fetched)
    }

    /// The entry with this digest, if its content matches the digest.
    fn entry(&self, sha256: &str) -> Result<Option<CachedFile>, Error> {
        let path = self.object(sha256);
        match summary(&path) {
            Ok(Summary { bytes, sha256: found }) if found == sha256 => {
                Ok(Some(CachedFile { path, bytes, sha256: found, is_fetched: false }))
            }
            // Fetched again, over this file.
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.failed("read an entry", source)),
        }
    }

    /// Fetches an object and names it by its digest. The caller holds the lock of the entry.
    fn fetch(
        &self,
        entry: &str,
        store: &S3Store,
        url: &S3Url,
        version: &Found,
        expected: Option<&str>,
    ) -> Result<CachedFile, Error> {
        self.check_space(url, version.info.bytes)?;
        let partial = self.partial(entry);
        make_folder(&partial).map_err(|source| self.failed("write to it", source))?;
        let fetched = self.fetch_into(&partial, store, url, version, expected);
        // Also deletes what killed processes left there. Other processes do not use the folder without the lock.
        let _ = fs::remove_dir_all(&partial);
        fetched
    }

    fn fetch_into(
        &self,
        partial: &Path,
        store: &S3Store,
        url: &S3Url,
        version: &Found,
        expected: Option<&str>,
    ) -> Result<CachedFile, Error> {
        let copy = store.fetch_version(url.name(), version, partial).map_err(|error| match error {
            Error::Io { source, .. } => self.failed("write to it", source),
            other => other,
        })?;
        let failed = |source| self.failed("write to it", source);
        let Summary { bytes, sha256 } = summary(copy.path()).map_err(failed)?;
        if let Some(expected) = expected
            && sha256 != expected
        {
            let (object, expected) = (url.to_string(), expected.to_owned());
            return Err(Error::OtherSha256 { object, found: sha256, expected });
        }
        let path = self.object(&sha256);
        let named = fs::set_permissions(copy.path(), Permissions::from_mode(0o444))
            .and_then(|()| File::open(copy.path())?.sync_all())
            .and_then(|()| fs::rename(copy.path(), &path));
        named.map_err(failed)?;
        Ok(CachedFile { path, bytes, sha256, is_fetched: true })
    }

    fn check_space(&self, url: &S3Url, needed_bytes: u64) -> Result<(), Error> {
        let space = rustix::fs::statvfs(&self.folder)
            .map_err(|error| self.failed("read its free space", error.into()))?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if needed_bytes <= free_bytes {
            return Ok(());
        }
        let (folder, object) = (self.folder.clone(), url.to_string());
        Err(Error::CacheFull { folder, object, needed_bytes, free_bytes })
    }

    /// Waits for the lock of an entry. It is released when the file is closed.
    fn lock(&self, entry: &str, url: &S3Url, limit: Duration) -> Result<File, Error> {
        let failed = |source| self.failed("lock an entry", source);
        let path = self.folder.join("locks").join(entry);
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            let progress = newest(&self.partial(entry));
            if progress != seen {
                (seen, since) = (progress, Instant::now());
            }
            if since.elapsed() > limit {
                return Err(Error::CacheBusy { lock: path, object: url.to_string(), limit });
            }
            thread::sleep(LOCK_PAUSE);
        }
    }

    fn object(&self, sha256: &str) -> PathBuf {
        self.folder.join("objects").join(sha256)
    }

    /// The folder in which an entry is fetched.
    fn partial(&self, entry: &str) -> PathBuf {
        self.folder.join("partial").join(entry)
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> Error {
        Error::Cache { folder: self.folder.clone(), doing, source }
    }
}

fn found(store: &S3Store, url: &S3Url) -> Result<Found, Error> {
    store.version(url.name())?.ok_or_else(|| Error::NoObject { object: url.to_string() })
}

/// Size and time of the newest file in a folder.
fn newest(folder: &Path) -> Option<(i64, i64, u64)> {
    let metadata = |entry: io::Result<fs::DirEntry>| entry.ok()?.metadata().ok();
    let time_and_size = |file: fs::Metadata| (file.mtime(), file.mtime_nsec(), file.len());
    fs::read_dir(folder).ok()?.filter_map(metadata).map(time_and_size).max()
}

/// The digest of a version; `None` if it is unknown.
fn read_digest(path: &Path) -> Option<String> {
    let digest = fs::read_to_string(path).ok()?;
    (digest.len() == SHA256_DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> S3Url {
        S3Url::parse("s3://bucket/reviews.h5").unwrap()
    }

    #[test]
    fn an_object_that_does_not_fit_is_refused_before_it_is_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(folder.path().to_owned())).unwrap();
        cache.check_space(&url(), 1).unwrap();
        let refused = cache.check_space(&url(), u64::MAX).unwrap_err().to_string();
        assert!(
            refused.contains("bytes are free, expected 18446744073709551615 for s3://bucket/reviews.h5;"),
            "{refused}"
        );
    }

    #[test]
    fn a_lock_whose_holder_does_not_advance_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(folder.path().to_owned())).unwrap();
        let held = cache.lock("entry", &url(), LOCK_LIMIT).unwrap();
        let refused = cache.lock("entry", &url(), Duration::from_millis(1)).unwrap_err();
        assert!(matches!(refused, Error::CacheBusy { .. }), "{refused}");
        cache.lock("other", &url(), Duration::from_millis(1)).unwrap();
        drop(held);
        cache.lock("entry", &url(), Duration::from_millis(1)).unwrap();
    }

    #[test]
    fn a_digest_that_is_a_path_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for digest in ["", "../../etc/passwd", &"A".repeat(64), &"0".repeat(63)] {
            let options = CacheOptions {
                sha256: Some(digest.to_owned()),
                folder: Some(folder.path().to_owned()),
                ..CacheOptions::default()
            };
            let refused = cached(&url(), &options).unwrap_err();
            assert!(matches!(refused, Error::NotASha256 { .. }), "{refused}");
        }
    }
}

//! Where a dataset is written: a path, or the URL of an object in S3.

use std::fmt;
use std::path::PathBuf;

use program::exit::{Exit, Failed};
use program::location::{Location, S3Url};
use store::S3Options;

use crate::error::Result;
use crate::input_file::DatasetFile;

/// The path or the URL of a dataset.
#[derive(Clone, Debug)]
pub enum Output {
    /// A path.
    Folder(PathBuf),
    /// An object.
    Bucket {
        /// Its URL.
        url: S3Url,
        /// How S3 is reached.
        s3: S3Options,
        /// Folder of the files until they are put.
        tmpdir: PathBuf,
    },
}

/// What happens to an existing dataset that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and the new one is refused.
    Keep,
    /// It is replaced, if its SHA-256 is the one in the manifest beside it.
    Replace,
}

impl Existing {
    /// By `--force`.
    pub fn of_force(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
    }
}

impl Output {
    /// The output at a location. Objects are never overwritten, so [`Existing::Replace`] is refused for them.
    pub fn of(location: Location, s3: &S3Options, existing: Existing) -> Result<Self> {
        match location {
            Location::Local(path) => Ok(Self::Folder(path)),
            Location::S3(url) if existing == Existing::Replace => {
                let why = format!(
                    "--force: nothing in S3 is overwritten, expected no --force with --out {url}; omit it, and choose another \
                     --out if a dataset exists there"
                );
                Err(Failed::new(Exit::Usage, why).into())
            }
            Location::S3(url) => Ok(Self::Bucket { url, s3: s3.clone(), tmpdir: std::env::temp_dir() }),
        }
    }

    /// The dataset, to be read.
    pub fn file(&self) -> Result<DatasetFile> {
        match self {
            Self::Folder(path) => Ok(path.clone().into()),
            Self::Bucket { url, s3, .. } => DatasetFile::of(&Location::S3(url.clone()), s3),
        }
    }
}

impl From<PathBuf> for Output {
    fn from(path: PathBuf) -> Self {
        Self::Folder(path)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(out),
            Self::Bucket { url, .. } => url.fmt(out),
        }
    }
}

//! Checks of paths: distinguishes a local path from a URL, and finds the folder of an output.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::exit::{Exit, Fails};
use crate::url::scheme_of;

/// A URL was passed where the path of a local file or folder was expected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{scheme}:// is not supported here, expected the path of a local file or folder; {}",
    self.remedy()
)]
pub struct NotLocal {
    scheme: String,
}

impl NotLocal {
    /// The scheme of the URL.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    fn remedy(&self) -> &'static str {
        if self.scheme.eq_ignore_ascii_case("file") {
            "pass the path after file://"
        } else {
            "write it locally, then copy it"
        }
    }
}

/// Refuses a URL as an output path. A file system would accept `s3://bucket/x` as a path in the folder `s3:`;
/// such a folder can be passed as `./s3:`. For arguments: `PathBufValueParser::new().try_map(local_path)`.
pub fn local_path(path: PathBuf) -> Result<PathBuf, NotLocal> {
    match path.to_str().and_then(scheme_of) {
        None => Ok(path),
        Some(scheme) => Err(NotLocal { scheme: scheme.to_owned() }),
    }
}

/// The folder of an output does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}: no such folder, expected one to write into; create it with mkdir -p, or check {flag}", path.display())]
pub struct NoFolder {
    path: PathBuf,
    /// The flag that set the output.
    flag: &'static str,
}

impl Fails for NoFolder {
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Refuses an output folder that does not exist. `flag` is the flag that set the output.
pub fn check_folder(folder: &Path, flag: &'static str) -> Result<(), NoFolder> {
    if folder.is_dir() { Ok(()) } else { Err(NoFolder { path: folder.to_owned(), flag }) }
}

/// The folder that contains this path, which need not exist.
pub fn folder_of(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_refused_as_a_local_path() {
        for url in ["s3://bucket/x.h5", "S3A://bucket", "https://host/x", "file:///x", "git+ssh://host"] {
            let refused = local_path(PathBuf::from(url)).unwrap_err().to_string();
            assert!(refused.starts_with(url.split('/').next().unwrap()), "{refused}");
        }
        for path in ["x.h5", "/x.h5", "./s3://bucket", "s3:/x", "a b://c", "1://x", "://x", "", "x/s3://y"] {
            assert_eq!(local_path(PathBuf::from(path)), Ok(PathBuf::from(path)));
        }
    }

    #[test]
    fn a_missing_output_folder_is_refused() {
        for (place, folder) in [("a/b", "a"), ("a/b/", "a"), ("a", "."), ("/a", "/"), ("/", "."), ("", ".")] {
            assert_eq!(folder_of(Path::new(place)), Path::new(folder), "{place:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check_folder(folder.path(), "--out"), Ok(()));
        let missing = check_folder(&folder.path().join("a"), "--out").unwrap_err().to_string();
        assert!(missing.ends_with(
            "a: no such folder, expected one to write into; create it with mkdir -p, or check --out"
        ));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(check_folder(&file, "--out").is_err());
    }
}

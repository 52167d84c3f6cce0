//! Resolves the values of `--input` into sources, in an order that depends only on their names.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use glob::MatchOptions;
use serde::{Deserialize, Serialize};
use store::{Object, S3Options, WebFile};

use super::Error;

/// A source of reviews.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name for messages; `-` is standard input.
    pub name: String,
    /// Size in bytes, if it is known in advance. For a compressed source, the compressed size.
    pub bytes: Option<u64>,
    pub(super) kind: Kind,
    pub(super) stamp: Stamp,
}

/// What changes if the content of a source changes, as far as it is known without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub bytes: Option<u64>,
    pub inode: u64,
    /// Seconds and nanoseconds.
    modified: [i64; 2],
}

/// Which list of inputs that are followed is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// The first one. Wrong inputs are refused.
    First,
    /// A later one. A file that is missing, has two names or is beside its compressed copy is left out: its writer renames,
    /// links or compresses files.
    Later,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    StandardInput,
    /// A regular file, which can be read at any offset.
    File(PathBuf),
    /// A named pipe or a device, which can be read once, sequentially.
    Pipe(PathBuf),
    Object(Box<Object>),
    Web(WebFile),
}

impl Source {
    /// Whether its bytes can be read once only: standard input, a named pipe or a device.
    pub fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::StandardInput | Kind::Pipe(_))
    }
}

/// Extensions of compressed files.
const PACKED: [&str; 5] = ["gz", "bz2", "zst", "bgz", "zip"];

/// Patterns match as in shells: a star does not match a slash or a leading dot.
const AS_SHELLS_DO: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Finds the sources of inputs, in their order. Each input is one of these:
/// - a file, also if its name looks like a pattern;
/// - a pattern of `*`, `?`, `[...]` and `**`: all matches, sorted by name;
/// - a folder: all regular files in it and in its subfolders, sorted by name, except those whose name, or
///   whose folder's name, starts with `.` or `_`, and except the JSON files that the library `datasets` writes beside
///   Arrow files (metadata files of other programs);
/// - `-`, standard input;
/// - `s3://bucket/name`: the object with this name, or all objects below it as in a folder, with the same
///   exceptions;
/// - `https://host/path`, a file on a web server, to which no request is sent yet.
///
/// The same file, folder, object or URL under two names is an error, and so is a compressed file in a folder or a pattern
/// beside the file without its extension.
pub fn find(inputs: &[String], s3: &S3Options) -> Result<Vec<Source>, Error> {
    find_into(Found::default(), inputs, s3)
}

/// As [`find`], for inputs that are listed again later: what vanishes while it is listed is left out.
pub(super) fn find_followed(
    inputs: &[String],
    s3: &S3Options,
    listing: Listing,
) -> Result<Vec<Source>, Error> {
    find_into(Found { followed: Some(listing), ..Found::default() }, inputs, s3)
}

fn find_into(mut found: Found, inputs: &[String], s3: &S3Options) -> Result<Vec<Source>, Error> {
    for input in inputs {
        if input == "-" {
            found.standard_input()?;
        } else if found.named(Path::new(input))? {
            // A file with this exact name exists.
        } else if let Some((scheme, _)) = input.split_once("://") {
            if ["s3", "s3a", "s3n"].contains(&scheme) {
                found.objects(input, s3)?;
                continue;
            }
            if ["https", "http"].contains(&scheme) {
                found.web_file(input)?;
                continue;
            }
            return Err(Error::NoSuchPlace { input: input.clone(), scheme: scheme.to_owned() });
        } else if input.contains(['*', '?', '[']) {
            found.pattern(input)?;
        } else if found.followed != Some(Listing::Later) {
            return Err(Error::Missing { input: input.clone() });
        }
    }
    Ok(found.sources)
}

/// Sources found so far.
#[derive(Default)]
struct Found {
    sources: Vec<Source>,
    /// Device and inode of files and folders, with the name under which each was found.
    names: HashMap<(u64, u64), String>,
    /// The URLs of objects and of files on web servers.
    objects: HashSet<String>,
    /// Set if files may vanish, such as one that its writer renames.
    followed: Option<Listing>,
}

impl Found {
    fn web_file(&mut self, url: &str) -> Result<(), Error> {
        let file = WebFile::at(url)?;
        let name = file.name();
        if !self.objects.insert(file.id()) {
            return Err(Error::Twice { first: name.clone(), second: name });
        }
        self.sources.push(Source { name, bytes: None, kind: Kind::Web(file), stamp: Stamp::default() });
        Ok(())
    }

    fn standard_input(&mut self) -> Result<(), Error> {
        let name = "-".to_owned();
        if self.sources.iter().any(|source| matches!(source.kind, Kind::StandardInput)) {
            return Err(Error::Twice { first: name.clone(), second: name });
        }
        let kind = Kind::StandardInput;
        self.sources.push(Source { name, bytes: None, kind, stamp: Stamp::default() });
        Ok(())
    }

    fn objects(&mut self, input: &str, s3: &S3Options) -> Result<(), Error> {
        let n_sources = self.sources.len();
        let listed = store::objects(input, s3)?;
        let (_, asked) =
            input.split_once("://").and_then(|(_, rest)| rest.split_once('/')).unwrap_or_default();
        let below = |object: &Object| object.name().strip_prefix(asked).unwrap_or_default().to_owned();
        for object in listed.into_iter().filter(|object| !below(object).split('/').any(is_hidden_name)) {
            let name = object.url();
            if !self.objects.insert(name.clone()) {
                return Err(Error::Twice { first: name.clone(), second: name });
            }
            let bytes = Some(object.bytes());
            let stamp = Stamp { bytes, ..Stamp::default() };
            self.sources.push(Source { name, bytes, kind: Kind::Object(Box::new(object)), stamp });
        }
        if self.sources.len() == n_sources {
            return Err(Error::Empty { folder: input.to_owned() });
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), Error> {
        let bad = |error: glob::PatternError| Error::BadPattern {
            pattern: pattern.to_owned(),
            at: error.pos,
            found: error.msg,
        };
        let fitting = glob::glob_with(pattern, AS_SHELLS_DO).map_err(bad)?;
        let fitting = fitting.map(|path| {
            path.map_err(|error| {
                let folder = error.path().to_owned();
                cannot("list the folder", &folder, error.into())
            })
        });
        let mut fitting = fitting.collect::<Result<Vec<_>, _>>()?;
        if fitting.is_empty() {
            return Err(Error::NoMatch { pattern: pattern.to_owned() });
        }
        sort(&mut fitting);
        self.check_copies(&mut fitting)?;
        for path in fitting {
            if !self.named(&path)? && self.followed.is_none() {
                return Err(Error::Missing { input: path.display().to_string() });
            }
        }
        Ok(())
    }

    /// Adds the file or folder at this path. Returns whether it exists.
    fn named(&mut self, path: &Path) -> Result<bool, Error> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_absence(&error) => return Ok(false),
            Err(error) => return Err(cannot("read its metadata", path, error)),
        };
        let n_sources = self.sources.len();
        if !self.meet(path, &metadata)? {
            return Ok(true);
        }
        if metadata.is_dir() {
            self.folder(path)?;
            if self.sources.len() == n_sources {
                return Err(Error::Empty { folder: path.display().to_string() });
            }
        } else {
            self.file(path, &metadata);
        }
        Ok(true)
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) {
        let (bytes, kind) = if metadata.is_file() {
            (Some(metadata.len()), Kind::File(path.to_owned()))
        } else {
            (None, Kind::Pipe(path.to_owned()))
        };
        let modified = [metadata.mtime(), metadata.mtime_nsec()];
        let stamp = Stamp { bytes, inode: metadata.ino(), modified };
        self.sources.push(Source { name: path.display().to_string(), bytes, kind, stamp });
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Error> {
        let unlisted = |error| cannot("list the folder", folder, error);
        let entries = match fs::read_dir(folder) {
            Err(error) if self.followed.is_some() && is_absence(&error) => return Ok(()),
            listed => listed.map_err(unlisted)?,
        };
        let mut paths =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(unlisted)?;
        paths.retain(|path| !is_hidden(path));
        let has_arrow =
            paths.iter().any(|path| path.extension().is_some_and(|extension| extension == "arrow"));
        paths.retain(|path| !has_arrow || !is_of_datasets(path));
        sort(&mut paths);
        self.check_copies(&mut paths)?;
        for path in paths {
            let metadata = match fs::metadata(&path) {
                Err(error) if self.followed.is_some() && is_absence(&error) => continue,
                read => read.map_err(|error| cannot("read its metadata", &path, error))?,
            };
            if metadata.is_dir() {
                // A link to a parent folder is found here as a duplicate, so the recursion ends.
                if self.meet(&path, &metadata)? {
                    self.folder(&path)?;
                }
            } else if metadata.is_file() && self.meet(&path, &metadata)? {
                self.file(&path, &metadata);
            }
        }
        Ok(())
    }

    /// Records a file or folder. A duplicate is an error, or left out. Returns whether it is new.
    fn meet(&mut self, path: &Path, metadata: &Metadata) -> Result<bool, Error> {
        let name = path.display().to_string();
        match self.names.insert((metadata.dev(), metadata.ino()), name.clone()) {
            None => Ok(true),
            Some(_) if self.followed == Some(Listing::Later) => Ok(false),
            Some(first) => Err(Error::Twice { first, second: name }),
        }
    }

    /// Refuses or leaves out the compressed copy of a file in the same list, which `gzip` leaves in the same folder.
    fn check_copies(&self, paths: &mut Vec<PathBuf>) -> Result<(), Error> {
        let names: HashSet<PathBuf> = paths.iter().cloned().collect();
        let of_copy = |path: &Path| unpacked(path).filter(|plain| names.contains(plain));
        if self.followed == Some(Listing::Later) {
            paths.retain(|path| of_copy(path).is_none());
            return Ok(());
        }
        for path in paths {
            if let Some(plain) = of_copy(path) {
                let (first, second) = (plain.display().to_string(), path.display().to_string());
                return Err(Error::Copy { first, second });
            }
        }
        Ok(())
    }
}

/// By bytes, independent of the locale.
fn sort(paths: &mut [PathBuf]) {
    paths.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
}

/// The name of a compressed file without the extension that says so.
pub fn unpacked(path: &Path) -> Option<PathBuf> {
    let is_packed =
        path.extension().is_some_and(|extension| PACKED.iter().any(|packed| extension == *packed));
    is_packed.then(|| path.with_extension(""))
}

/// Whether the library `datasets` writes this file beside its Arrow files.
fn is_of_datasets(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "dataset_info.json" || name == "state.json")
}

fn is_hidden(path: &Path) -> bool {
    is_hidden_name(&path.file_name().unwrap_or_default().to_string_lossy())
}

fn is_hidden_name(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

/// Nothing can exist below a regular file, so the error means that the input is missing.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn cannot(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Read { input: path.display().to_string(), doing, source }
}

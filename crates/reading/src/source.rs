//! Resolves the values of `--input` into sources, in an order that depends only on their names.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use corpus::format::Format;
use glob::MatchOptions;
use input::ContentError;
use program::exit::{Exit, Failed};
use serde::{Deserialize, Serialize};
use store::{Object, S3Options, WebFile};

use crate::error::Error;

/// A source of reviews.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name for messages; `-` is standard input.
    pub name: String,
    /// Size in bytes, if it is known in advance. For a compressed source, the compressed size.
    pub bytes: Option<u64>,
    pub(crate) kind: Kind,
    pub(crate) stamp: Stamp,
}

/// What changes if the content of a source changes, as far as it is known without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub bytes: Option<u64>,
    pub inode: u64,
    /// Seconds and nanoseconds.
    modified: [i64; 2],
}

/// Which list of inputs that are followed is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// The first one. Wrong inputs are refused.
    First,
    /// A later one. A file that is missing, has two names or is beside its compressed copy is left out: its writer renames,
    /// links or compresses files.
    Later,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    StandardInput,
    /// A regular file, which can be read at any offset.
    File(PathBuf),
    /// A named pipe or a device, which can be read once, sequentially.
    Pipe(PathBuf),
    Object(Box<Object>),
    Web(WebFile),
}

impl Source {
    /// The error for an action that failed.
    pub(crate) fn unreadable(&self, doing: &'static str, source: io::Error) -> Error {
        match source.downcast::<store::Error>() {
            Ok(error) => error.into(),
            Err(source) if let Some(kind) = needs_file(&source) => self.no_file(kind),
            Err(source) => Error::Read {
                input: self.name.clone(),
                doing,
                source: input::named(source, Path::new(&self.name)),
            },
        }
    }

    /// The error for content that could not be read further.
    pub fn failed(&self, error: io::Error) -> Error {
        self.unreadable("read it", error)
    }

    /// An error with the name of this source.
    pub(crate) fn refused(&self, exit: Exit, why: impl Display) -> Error {
        Failed::new(exit, format!("{}: {why}", self.name)).into()
    }

    /// The error for a file of this kind with a format of lines.
    pub(crate) fn not_lines(&self, kind: &str, format: &Format) -> Error {
        let format = format.name();
        let expected = format!("expected lines of the format {format}; omit --format {format}");
        self.refused(Exit::Usage, format!("found {kind} file, {expected}"))
    }

    /// The error for a file of this kind that is passed as a stream.
    pub(crate) fn no_file(&self, kind: &str) -> Error {
        let remedy = "write it to a file on this machine";
        let why =
            format!("found {kind}, which can only be read from a file that is not compressed; {remedy}");
        self.refused(Exit::Usage, why)
    }

    /// The error for a damaged file of this kind.
    pub(crate) fn damaged(&self, kind: &str, found: &str) -> Error {
        self.refused(Exit::BadInput, format!("the {kind} file is damaged ({found}); fetch the file again"))
    }

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
    find_into(FoundSources::default(), inputs, s3)
}

/// As [`find`], for inputs that are listed again later: what vanishes while it is listed is left out.
pub(crate) fn find_followed(
    inputs: &[String],
    s3: &S3Options,
    listing: Listing,
) -> Result<Vec<Source>, Error> {
    find_into(FoundSources { followed: Some(listing), ..FoundSources::default() }, inputs, s3)
}

fn find_into(mut found: FoundSources, inputs: &[String], s3: &S3Options) -> Result<Vec<Source>, Error> {
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
            let remedy = match scheme {
                "file" => "pass the path after file://",
                _ => "copy the data to this machine",
            };
            let expected = format!("expected a file, a folder, a pattern, -, s3:// or https://; {remedy}");
            let why = format!("{input}: found the scheme {scheme}, {expected}");
            return Err(Failed::new(Exit::Usage, why).into());
        } else if input.contains(['*', '?', '[']) {
            found.pattern(input)?;
        } else if found.followed != Some(Listing::Later) {
            return Err(missing(input));
        }
    }
    Ok(found.sources)
}

/// Sources found so far.
#[derive(Default)]
struct FoundSources {
    sources: Vec<Source>,
    /// Device and inode of files and folders, with the name under which each was found.
    names: HashMap<(u64, u64), String>,
    /// The URLs of objects and of files on web servers.
    objects: HashSet<String>,
    /// Set if files may vanish, such as one that its writer renames.
    followed: Option<Listing>,
}

impl FoundSources {
    fn web_file(&mut self, url: &str) -> Result<(), Error> {
        let file = WebFile::at(url)?;
        let name = file.name();
        if !self.objects.insert(file.id()) {
            return Err(twice(&name, &name));
        }
        self.sources.push(Source { name, bytes: None, kind: Kind::Web(file), stamp: Stamp::default() });
        Ok(())
    }

    fn standard_input(&mut self) -> Result<(), Error> {
        let name = "-".to_owned();
        if self.sources.iter().any(|source| matches!(source.kind, Kind::StandardInput)) {
            return Err(twice(&name, &name));
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
                return Err(twice(&name, &name));
            }
            let bytes = Some(object.bytes());
            let stamp = Stamp { bytes, ..Stamp::default() };
            self.sources.push(Source { name, bytes, kind: Kind::Object(Box::new(object)), stamp });
        }
        if self.sources.len() == n_sources {
            return Err(empty(input));
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), Error> {
        let bad = |error: glob::PatternError| {
            let expected = "expected a pattern of *, ?, [...] and **; correct it";
            let found = format!("found {} at character {}", error.msg, error.pos);
            Failed::new(Exit::Usage, format!("{pattern}: {found}, {expected}"))
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
            let remedy = "check it, and quote it so that the shell does not expand it";
            return Err(Error::NoFiles(format!(
                "{pattern}: found no file that matches the pattern; {remedy}"
            )));
        }
        sort(&mut fitting);
        self.check_copies(&mut fitting)?;
        for path in fitting {
            if !self.named(&path)? && self.followed.is_none() {
                return Err(missing(&path.display().to_string()));
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
                return Err(empty(&path.display().to_string()));
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
            Some(first) => Err(twice(&first, &name)),
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
                let why = format!(
                    "{}: found beside {}, and their reviews would count twice if one is a compressed copy of the other; \
                     remove one, or name each file",
                    path.display(),
                    plain.display()
                );
                return Err(Failed::new(Exit::Usage, why).into());
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

fn missing(input: &str) -> Error {
    Failed::new(Exit::MissingInput, format!("{input}: no such file or folder; check the path")).into()
}

fn empty(folder: &str) -> Error {
    let expected = "expected at least one whose name does not begin with . or _; check the name";
    Error::NoFiles(format!("{folder}: found no file in the folder, {expected}"))
}

/// The error of an input with two names.
fn twice(first: &str, second: &str) -> Error {
    let found = format!("found the same file or folder as {first}");
    let why = format!("{second}: {found}, and its reviews would count twice; name it once");
    Failed::new(Exit::Usage, why).into()
}

/// The kind of file that a stream contains, if it can only be read from a file.
fn needs_file(error: &io::Error) -> Option<&'static str> {
    match input::content_error(error) {
        Some(ContentError::Packed { packed, .. }) => packed.table,
        _ => None,
    }
}

fn cannot(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Read { input: path.display().to_string(), doing, source }
}

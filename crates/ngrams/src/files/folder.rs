//! The folder of a model of this crate.
//!
//! ```text
//! model/
//!   config.json         family, kind, settings, labels with their counts, and the digests of the next two files
//!   words.txt           the words in order of their numbers, one per line, each with its count
//!   model.safetensors   the weights; rows that no text has are zero and are not stored
//!   SHA256SUMS          digests of these three files, for `sha256sum --check`
//! ```
//!
//! The folder appears completely or not at all: files are written into a temporary folder beside it and made durable,
//! and the folder is then renamed. A killed process leaves at most a folder `.saving-…`. An existing path is refused.
//! A file is used only if it matches its digest.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use program::place::folder_of;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::error::{At, Error, Result};
use super::new_file::{check_free, sync_folder};
use super::output::{self, Output, Summary};
use super::tensors::{self, Tensor, Tensors};
use crate::{Dictionary, Names};

/// Incremented if older programs would misread newer folders.
const FORMAT_VERSION: u32 = 1;
const FAMILY: &str = "ngrams";
const CONFIG: &str = "config.json";
const WORDS: &str = "words.txt";
const WEIGHTS: &str = "model.safetensors";
const SUMS: &str = "SHA256SUMS";
/// Labels take most of the file: a million of them.
const CONFIG_BYTES_MAX: u64 = 128 << 20;
const SUMS_BYTES_MAX: u64 = 1 << 20;
const REMEDY: &str = "copy or train the model again";

/// The kind of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The mean of embeddings with a linear layer.
    FastText,
    /// Weighted n-grams.
    Linear,
}

/// The content of `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format_version: u32,
    /// The version of the program that wrote the model.
    sentimill: String,
    family: String,
    kind: Kind,
    /// Settings of the model and of its training.
    settings: Value,
    labels: Vec<Label>,
    /// Number of words.
    words: u64,
    files: BTreeMap<String, Summary>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    name: Name,
    texts: u64,
}

/// The name of a label: text, or bytes that are not UTF-8.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// The files of a model, of which the weights are not read yet.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pub(super) kind: Kind,
    pub(super) settings: Value,
    pub(super) dictionary: Dictionary,
    weights: Summary,
}

/// Whether a folder has a model of this crate, by the family in its `config.json`.
pub fn is_folder(folder: &Path) -> bool {
    #[derive(Deserialize)]
    struct Family {
        family: String,
    }
    let json = read_bounded(&folder.join(CONFIG), CONFIG_BYTES_MAX);
    json.is_ok_and(|json| serde_json::from_slice(&json).is_ok_and(|found: Family| found.family == FAMILY))
}

/// Refuses a path at which no model can be written: it is occupied, or its parent folder is not writable.
pub fn check_place(folder: &Path) -> Result<()> {
    Unfinished::begin(folder).map(drop)
}

/// Writes the folder of a model. On return, it is durable.
pub(super) fn write(
    folder: &Path,
    kind: Kind,
    settings: Value,
    dictionary: &Dictionary,
    weights: Vec<Tensor<'_>>,
) -> Result<()> {
    let mut unfinished = Unfinished::begin(folder)?;
    let (words, weights) = std::thread::scope(|scope| {
        let words = scope.spawn(|| unfinished.create(WORDS, |out| write_words(dictionary, out)));
        let weights = unfinished.create(WEIGHTS, |out| tensors::write(weights, out));
        (words.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), weights)
    });
    unfinished.files = [(WORDS.to_owned(), words?), (WEIGHTS.to_owned(), weights?)].into();
    let labels = dictionary.labels().iter().zip(0..).map(|(name, number)| Label {
        name: match std::str::from_utf8(name) {
            Ok(text) => Name::Text(text.to_owned()),
            Err(_) => Name::Bytes(name.to_vec()),
        },
        texts: dictionary.label_count(number),
    });
    let document = Document {
        format_version: FORMAT_VERSION,
        sentimill: env!("CARGO_PKG_VERSION").to_owned(),
        family: FAMILY.to_owned(),
        kind,
        settings,
        labels: labels.collect(),
        words: dictionary.n_words() as u64,
        files: unfinished.files.clone(),
    };
    unfinished.put(CONFIG, |out| {
        serde_json::to_writer_pretty(&mut *out, &document)?;
        out.write_all(b"\n")
    })?;
    unfinished.finish()
}

impl Folder {
    /// Reads everything except the weights, after verifying the digests of the files read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let sums = read_sums(path)?;
        let config = path.join(CONFIG);
        let json = read_bounded(&config, CONFIG_BYTES_MAX)?;
        let listed = sums.get(CONFIG).ok_or_else(|| missing(path, CONFIG))?;
        check_digest(&config, &output::summary_of(&json).sha256, listed)?;
        let document = parse_document(&config, &json)?;
        let file = |name: &str| document.files.get(name).cloned().ok_or_else(|| missing(path, name));
        let (words, weights) = (file(WORDS)?, file(WEIGHTS)?);
        for (name, expected) in [(WORDS, &words), (WEIGHTS, &weights)] {
            let found = sums.get(name).ok_or_else(|| missing(path, name))?;
            if *found != expected.sha256 {
                let field = format!("the SHA-256 of {name}");
                return Err(Error::unexpected(&path.join(SUMS), field, found, &expected.sha256, REMEDY));
            }
        }
        let dictionary = read_words(&path.join(WORDS), &words, &document)?;
        let Document { kind, settings, .. } = document;
        Ok(Self { path: path.to_owned(), kind, settings, dictionary, weights })
    }

    /// Reads the weights with `read` while another thread verifies their digest.
    pub(super) fn weights<T: Send>(&self, read: impl FnOnce(&Tensors) -> Result<T> + Send) -> Result<T> {
        let path = self.path.join(WEIGHTS);
        check_regular(&path)?;
        let (read, found) = std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let tensors = Tensors::open(&path)?;
                if tensors.n_bytes() != self.weights.bytes {
                    let (found, expected) = (tensors.n_bytes(), self.weights.bytes);
                    return Err(tensors.refused("the number of bytes", found, expected));
                }
                read(&tensors)
            });
            let found = output::summary(&path);
            (read.join(), found)
        });
        check_digest(&path, &found.at(&path, "read it")?.sha256, &self.weights.sha256)?;
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// An error of a setting.
    pub(super) fn refused(&self, field: &str, found: impl Display, expected: impl Display) -> Error {
        Error::unexpected(&self.path.join(CONFIG), field, found, expected, REMEDY)
    }

    /// The settings as a type.
    pub(super) fn settings<T: for<'a> Deserialize<'a>>(&self) -> Result<T> {
        T::deserialize(&self.settings)
            .map_err(|error| self.refused("settings", error, "the settings of a model"))
    }
}

/// A folder that is being written. It is deleted unless it is finished.
struct Unfinished {
    temporary: TempDir,
    folder: PathBuf,
    files: BTreeMap<String, Summary>,
}

impl Unfinished {
    /// Refuses an occupied path before anything is written.
    fn begin(folder: &Path) -> Result<Self> {
        check_free(folder)?;
        let parent = folder_of(folder);
        match fs::create_dir(parent) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.at(parent, "make the folder")?,
        }
        // As readable as any new folder is, by the user's umask.
        let readable = Permissions::from_mode(0o777);
        let made = tempfile::Builder::new().prefix(".saving-").permissions(readable).tempdir_in(parent);
        // tempfile's error contains the name of a random folder; the kind of the error is sufficient.
        let temporary = made.map_err(|error| error.kind().into()).at(parent, "make a folder in it")?;
        Ok(Self { temporary, folder: folder.to_owned(), files: BTreeMap::new() })
    }

    fn put(&mut self, name: &str, write: impl FnOnce(&mut Output<'_>) -> io::Result<()>) -> Result<()> {
        let summary = self.create(name, write)?;
        self.files.insert(name.to_owned(), summary);
        Ok(())
    }

    fn create(&self, name: &str, write: impl FnOnce(&mut Output<'_>) -> io::Result<()>) -> Result<Summary> {
        // Messages name the final path, because the temporary folder is deleted.
        let summary = output::create(&self.temporary.path().join(name), write);
        summary.at(&self.folder.join(name), "write it")
    }

    fn finish(mut self) -> Result<()> {
        let sums: String =
            self.files.iter().map(|(name, Summary { sha256, .. })| format!("{sha256}  {name}\n")).collect();
        self.put(SUMS, |out| out.write_all(sums.as_bytes()))?;
        sync_folder(self.temporary.path()).at(&self.folder, "write it")?;
        // Only an empty folder, created in the meantime, would be replaced.
        fs::rename(self.temporary.path(), &self.folder).at(&self.folder, "rename it")?;
        // There is nothing to remove under its former name.
        let _ = self.temporary.keep();
        sync_folder(folder_of(&self.folder)).at(folder_of(&self.folder), "sync the folder")
    }
}

fn write_words(dictionary: &Dictionary, out: &mut Output<'_>) -> io::Result<()> {
    let mut line = Vec::new();
    for (word, number) in dictionary.words().iter().zip(0..) {
        line.clear();
        line.extend_from_slice(word);
        writeln!(line, " {}", dictionary.count(number))?;
        out.write_all(&line)?;
    }
    Ok(())
}

fn read_words(path: &Path, expected: &Summary, document: &Document) -> Result<Dictionary> {
    let bytes = read_bounded(path, expected.bytes)?;
    check_digest(path, &output::summary_of(&bytes).sha256, &expected.sha256)?;
    let (mut words, mut counts) = (Names::default(), Vec::new());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let refused = || {
            let field = format!("line {}", counts.len() + 1);
            let found = format!("{:?}", String::from_utf8_lossy(line));
            Error::unexpected(path, field, found, "a word, a space and its count", REMEDY)
        };
        let line = line.strip_suffix(b"\n").ok_or_else(refused)?;
        let space = line.iter().rposition(|&byte| byte == b' ').filter(|&at| at > 0).ok_or_else(refused)?;
        let count = std::str::from_utf8(&line[space + 1..]).ok().and_then(|digits| digits.parse().ok());
        words.push(&line[..space]);
        counts.push(count.ok_or_else(refused)?);
    }
    if counts.len() as u64 != document.words {
        return Err(Error::unexpected(path, "the number of words", counts.len(), document.words, REMEDY));
    }
    let name = |label: &Label| match &label.name {
        Name::Text(text) => text.as_bytes().to_vec(),
        Name::Bytes(bytes) => bytes.clone(),
    };
    let mut labels = Names::default();
    document.labels.iter().for_each(|label| labels.push(&name(label)));
    let label_counts = document.labels.iter().map(|label| label.texts).collect();
    Ok(Dictionary::new(words, counts, labels, label_counts))
}

fn parse_document(path: &Path, json: &[u8]) -> Result<Document> {
    #[derive(Deserialize)]
    struct Head {
        format_version: u32,
        family: String,
    }
    let unexpected = |field: &str, found: String, expected: String| {
        Error::unexpected(path, field, found, expected, REMEDY)
    };
    let no_config = |error: serde_json::Error| {
        unexpected(
            "its content",
            error.to_string(),
            format!("the configuration of a model of the family {FAMILY}"),
        )
    };
    let head: Head = serde_json::from_slice(json).map_err(no_config)?;
    if head.family != FAMILY {
        return Err(unexpected("family", head.family, FAMILY.to_owned()));
    }
    if head.format_version != FORMAT_VERSION {
        let found = head.format_version.to_string();
        return Err(unexpected("format_version", found, FORMAT_VERSION.to_string()));
    }
    serde_json::from_slice(json).map_err(no_config)
}

fn read_sums(folder: &Path) -> Result<BTreeMap<String, String>> {
    let path = folder.join(SUMS);
    let bytes = read_bounded(&path, SUMS_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    let parsed = text.lines().map(|line| {
        let (sha256, name) = line.split_once("  ").ok_or_else(|| {
            Error::unexpected(
                &path,
                "a line",
                format!("{line:?}"),
                "a SHA-256, two spaces and a name",
                REMEDY,
            )
        })?;
        Ok((name.to_owned(), sha256.to_owned()))
    });
    parsed.collect()
}

fn check_digest(path: &Path, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Damaged { path: path.to_owned(), found: found.to_owned(), expected: expected.to_owned() })
}

/// Reads a file of at most `bytes_max` bytes.
fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    check_regular(path)?;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes))
        .at(path, "read it")?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::unexpected(
            path,
            "the number of bytes",
            "greater",
            format!("at most {bytes_max}"),
            REMEDY,
        ));
    }
    Ok(bytes)
}

/// Refuses a missing file, and a file that is not regular, because reading it might never end.
fn check_regular(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Error::unexpected(path, "it", "no regular file", "one", REMEDY)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Error::Missing { path: path.to_owned(), expected: "a file of a model" })
        }
        Err(error) => Err(error).at(path, "read its metadata"),
    }
}

fn missing(folder: &Path, name: &str) -> Error {
    Error::unexpected(&folder.join(SUMS), format!("the SHA-256 of {name}"), "missing", "one", REMEDY)
}

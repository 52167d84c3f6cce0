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
//! It is written as a [`durable::NewFolder`] and verified by [`durable::sums`]. A model may also be a part of another
//! model, whose folder then has its files under other names, such as `ngrams.json`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use durable::sums::{Sums, verified};
use durable::{Error, NewFolder, REMEDY, Result, Summary, read_bounded};
use program::threads::spawn;
use scoring::{Calibrator, Choice};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tensors::{self, Tensor, Tensors};
use super::{COUNT_MAX, words_file};
use crate::Dictionary;

/// Incremented if older programs would misread newer folders.
const FORMAT_VERSION: u32 = 1;
const FAMILY: &str = "ngrams";

/// The names of a model's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileNames {
    config: &'static str,
    words: &'static str,
    weights: &'static str,
}

/// In a folder of its own.
const OF_A_FOLDER: FileNames =
    FileNames { config: "config.json", words: "words.txt", weights: "model.safetensors" };
/// In the folder of a model that it is a part of.
pub(super) const OF_A_PART: FileNames =
    FileNames { config: "ngrams.json", words: "ngrams-words.txt", weights: "ngrams.safetensors" };

/// Labels take most of the file: a million of them.
const CONFIG_BYTES_MAX: u64 = 128 << 20;

/// The kind of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// The mean of embeddings with a linear layer.
    FastText,
    /// Weighted n-grams.
    Linear,
}

/// The content of `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    format_version: u32,
    /// The version of the program that wrote the model.
    sentimill: String,
    family: String,
    kind: ModelKind,
    /// Settings of the model and of its training.
    settings: Value,
    labels: Vec<Label>,
    /// The names of labels in the order in which users see them; omitted if it is the order of their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Name>,
    /// Calibration and threshold; omitted if there is neither.
    #[serde(default, skip_serializing_if = "Choice::is_none")]
    choice: Choice,
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

impl From<&[u8]> for Name {
    fn from(name: &[u8]) -> Self {
        match std::str::from_utf8(name) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(name.to_vec()),
        }
    }
}

impl Name {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The files of a model, of which the weights are not read yet.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    names: FileNames,
    pub(super) kind: ModelKind,
    pub(super) settings: Value,
    pub(super) dictionary: Dictionary,
    pub(super) choice: Choice,
    weights: Summary,
}

/// Whether a folder has a model of this crate.
pub fn is_folder(folder: &Path) -> bool {
    family(folder).is_some_and(|family| family == FAMILY)
}

/// The family in the `config.json` of a folder.
pub fn family(folder: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Family {
        family: String,
    }
    config(folder).map(|found: Family| found.family)
}

/// The kind of the model of this crate in a folder.
pub fn kind(folder: &Path) -> Option<ModelKind> {
    #[derive(Deserialize)]
    struct OfKind {
        kind: ModelKind,
    }
    config(folder).filter(|_| is_folder(folder)).map(|found: OfKind| found.kind)
}

fn config<T: DeserializeOwned>(folder: &Path) -> Option<T> {
    let json = read_bounded(&folder.join(OF_A_FOLDER.config), CONFIG_BYTES_MAX).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Refuses a path at which no model can be written: it is occupied, or its parent folder is not writable.
pub fn check_place(folder: &Path) -> Result<()> {
    NewFolder::begin(folder).map(drop)
}

/// A model to be written.
pub(super) struct Written<'a> {
    pub(super) kind: ModelKind,
    pub(super) settings: Value,
    pub(super) dictionary: &'a Dictionary,
    pub(super) choice: Choice,
    pub(super) weights: Vec<Tensor<'a>>,
}

/// Writes the folder of a model. On return, it is durable.
pub(super) fn write(folder: &Path, model: Written<'_>) -> Result<()> {
    let mut unfinished = NewFolder::begin(folder)?;
    add(&mut unfinished, OF_A_FOLDER, model)?;
    unfinished.finish()
}

/// Writes the files of a model into a folder.
pub(super) fn add(unfinished: &mut NewFolder, names: FileNames, model: Written<'_>) -> Result<()> {
    let document = Document::of(&model);
    let Written { dictionary, weights, .. } = model;
    let (words, weights) = std::thread::scope(|scope| {
        let words = spawn(scope, || unfinished.create(names.words, |out| words_file::write(dictionary, out)));
        let weights = unfinished.create(names.weights, |out| tensors::write(weights, out));
        (words.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), weights)
    });
    let files = BTreeMap::from([(names.words.to_owned(), words?), (names.weights.to_owned(), weights?)]);
    files.iter().for_each(|(name, summary)| unfinished.list(name, summary.clone()));
    let document = Document { files, ..document };
    unfinished.put(names.config, |out| {
        serde_json::to_writer_pretty(&mut *out, &document)?;
        out.write_all(b"\n")
    })
}

impl Document {
    /// The document without the digests of files.
    pub(super) fn of(model: &Written<'_>) -> Self {
        let Written { kind, ref settings, dictionary, choice, .. } = *model;
        let labels = dictionary.labels().iter().zip(0..);
        let labels =
            labels.map(|(name, number)| Label { name: name.into(), texts: dictionary.label_count(number) });
        let classes = dictionary.classes();
        Self {
            format_version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            family: FAMILY.to_owned(),
            kind,
            settings: settings.clone(),
            labels: labels.collect(),
            classes: if classes.iter().is_sorted() {
                Vec::new()
            } else {
                classes.iter().map(Name::from).collect()
            },
            choice,
            words: dictionary.n_words() as u64,
            files: BTreeMap::new(),
        }
    }
}

impl Folder {
    /// Reads everything except the weights, after verifying the digests of the files read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Self::of(&Sums::read(path)?, path, OF_A_FOLDER)
    }

    /// Reads a model that is a part of the model in this folder; `None` if there is none.
    pub(super) fn open_part(path: &Path) -> Result<Option<Self>> {
        let sums = Sums::read(path)?;
        sums.has(OF_A_PART.config).then(|| Self::of(&sums, path, OF_A_PART)).transpose()
    }

    fn of(sums: &Sums, path: &Path, names: FileNames) -> Result<Self> {
        let config = path.join(names.config);
        let json = sums.content(names.config, CONFIG_BYTES_MAX)?;
        let document: Document = parse_document(&config, &json, (FAMILY, FORMAT_VERSION))?;
        let file = |name: &str| document.files.get(name).cloned().ok_or_else(|| sums.missing(name));
        let (words, weights) = (file(names.words)?, file(names.weights)?);
        sums.check(names.words, &words)?;
        sums.check(names.weights, &weights)?;
        if let Some(label) = document.labels.iter().find(|label| label.texts > COUNT_MAX) {
            let expected = format_args!("at most {COUNT_MAX}");
            return Err(Error::unexpected(&config, "labels.texts", label.texts, expected, REMEDY));
        }
        let dictionary = read_dictionary(&path.join(names.words), &words, &document)?;
        let Document { kind, settings, choice, .. } = document;
        let folder = Self { path: path.to_owned(), names, kind, settings, dictionary, choice, weights };
        folder.check_choice()?;
        Ok(folder)
    }

    /// Refuses a choice that no training makes.
    fn check_choice(&self) -> Result<()> {
        let Choice { calibration, threshold } = self.choice;
        if let Err((name, found, expected)) = self.choice.check() {
            return Err(self.refused(&format!("choice.{name}"), found, expected));
        }
        let is_of_two = matches!(calibration, Some(Calibrator::Platt { .. })) || threshold.is_some();
        match self.dictionary.labels().len() {
            n if is_of_two && n != 2 => {
                Err(self.refused("choice", "one of two labels", format!("one of {n} labels: a temperature")))
            }
            _ => Ok(()),
        }
    }

    /// Reads the weights with `read` while another thread verifies their digest.
    pub(super) fn weights<T: Send>(&self, read: impl FnOnce(&Tensors) -> Result<T> + Send) -> Result<T> {
        let path = self.path.join(self.names.weights);
        verified(&path, &self.weights, || {
            let tensors = Tensors::open(&path)?;
            if tensors.n_bytes() != self.weights.bytes {
                let (found, expected) = (tensors.n_bytes(), self.weights.bytes);
                return Err(tensors.refused("the number of bytes", found, expected));
            }
            read(&tensors)
        })
    }

    /// An error of a setting.
    pub(super) fn refused(&self, field: &str, found: impl Display, expected: impl Display) -> Error {
        Error::unexpected(&self.path.join(self.names.config), field, found, expected, REMEDY)
    }

    /// The settings as a type.
    pub(super) fn settings<T: for<'a> Deserialize<'a>>(&self) -> Result<T> {
        T::deserialize(&self.settings)
            .map_err(|error| self.refused("settings", error, "the settings of a model"))
    }
}

fn read_dictionary(path: &Path, expected: &Summary, document: &Document) -> Result<Dictionary> {
    let (words, counts) = words_file::read(path, expected)?;
    if counts.len() as u64 != document.words {
        return Err(Error::unexpected(path, "the number of words", counts.len(), document.words, REMEDY));
    }
    let labels = document.labels.iter().map(|label| label.name.bytes()).collect();
    let label_counts = document.labels.iter().map(|label| label.texts).collect();
    let classes = document.classes.iter().map(Name::bytes).collect();
    Ok(Dictionary::new(words, counts, labels, label_counts).with_classes(classes))
}

/// Parses the document of the folder of a model, of this family and format version.
pub fn parse_document<T: DeserializeOwned>(path: &Path, json: &[u8], of: (&str, u32)) -> Result<T> {
    #[derive(Deserialize)]
    struct Head {
        format_version: u32,
        family: String,
    }
    let (family, version) = of;
    let no_config = |error: serde_json::Error| {
        let expected = format!("the configuration of a model of the family {family}");
        Error::unexpected(path, "its content", error, expected, REMEDY)
    };
    let head: Head = serde_json::from_slice(json).map_err(no_config)?;
    if head.family != family {
        return Err(Error::unexpected(path, "family", head.family, family, REMEDY));
    }
    if head.format_version != version {
        return Err(Error::unexpected(path, "format_version", head.format_version, version, REMEDY));
    }
    serde_json::from_slice(json).map_err(no_config)
}

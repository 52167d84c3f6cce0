//! The folder of a saved model, for any model.
//!
//! ```text
//! model/
//!   config.json         text settings, and the meaning of the outputs
//!   model.safetensors   the weights, under PyTorch's names
//!   vocabulary.txt      the vocabulary, one word per line; the first word has id 2
//!   trained_on.json     the smallest hashes of the training split, and the fractions of the splits
//!   SHA256SUMS          digests of these four files, for `sha256sum --check`
//! ```
//!
//! Models of older versions have no `trained_on.json`. `SHA256SUMS` also lists the files for other programs
//! (`interchange`), and the three files of a model's n-grams (`classifiers::files`).
//!
//! The folder appears completely or not at all. It is read only if every file matches its digest. This module reads
//! neither the weights nor the model's own settings.

mod interchange;
#[cfg(test)]
mod tests;
mod trained_on;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use corpus::digest::Digest;
use corpus::settings::{Settings, Unsound};
use dataset::{WordList, WordViolation};
use durable::sums::{SUMS, Sums};
use durable::{NewFolder, REMEDY, output, read_bounded};
use program::exit::Failed;
use scoring::{Calibrator, Decision, Scoring, Threshold};
use serde::{Deserialize, Serialize};

pub use self::interchange::{File, PREDICT_NGRAMS, files as files_for_others};
pub use self::trained_on::TrainedOn;
use crate::error::{Error, Result};
use crate::json;

/// Incremented if older programs would misread newer folders.
pub const FORMAT_VERSION: u32 = 2;
/// The version of a model without calibration and threshold, which programs of version 1 can read.
const VERSION_WITHOUT_CHOICES: u32 = 1;

/// Text settings, and the meaning of the outputs.
pub const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const VOCABULARY: &str = "vocabulary.txt";
const TRAINED_ON: &str = "trained_on.json";

/// Stop words take most of the file, as in a commit record, which has the same limit.
const CONFIG_BYTES_MAX: u64 = dataset::commit::RECORD_BYTES_MAX;
/// About 100 million words.
const VOCABULARY_BYTES_MAX: u64 = 1 << 30;

/// Settings of a model, without weights and vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The settings with which reviews were made into rows. Texts to predict are prepared with the same settings.
    pub preparation: Settings,
    /// Maximum tokens per row; 0 means no limit.
    pub tokens_max: u32,
    /// The meaning of a row's outputs, if the model has some.
    pub scoring: Option<Scoring>,
    /// The calibration of probabilities, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrator>,
    /// The chosen threshold between label 0 and label 1, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// The id digest of the dataset that the model was trained on.
    pub dataset: Digest,
    /// Kind and sizes of the model; only the model's own code reads them.
    pub model: serde_json::Value,
}

impl Config {
    /// How scores become probabilities and labels, with this scoring.
    pub fn decision(&self, scoring: Scoring) -> Decision {
        Decision::new(scoring, self.calibration, self.threshold)
    }
}

/// The content of `config.json`.
#[derive(Serialize, Deserialize)]
struct Document {
    format_version: u32,
    /// The version of the program that wrote the model.
    sentimill: String,
    vocabulary: Words,
    #[serde(flatten)]
    config: Config,
}

/// Identifies the content of `vocabulary.txt`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    words: u64,
    /// Digest of the file.
    sha256: String,
}

/// A saved model without its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Settings of the model.
    pub config: Config,
    /// The vocabulary in id order, from [`dataset::vocabulary::FIRST_WORD`] on.
    pub vocabulary: WordList,
    /// Path of the weights.
    pub weights: PathBuf,
    /// The rows that the model was trained on, if the folder lists them.
    pub trained_on: Option<TrainedOn>,
}

/// Whether a folder has the files of a saved model.
pub fn is_listed(folder: &Path) -> bool {
    [CONFIG, SUMS].iter().all(|name| folder.join(name).is_file())
}

/// Refuses a path at which no model can be written: it is occupied, or its parent folder is not writable.
pub fn check_place(folder: &Path) -> Result<()> {
    begin(folder).map(drop)
}

/// Begins the folder of a model. An occupied path is refused.
pub fn begin(folder: &Path) -> Result<NewFolder> {
    Ok(NewFolder::begin(folder)?)
}

/// Begins a folder that replaces the model at this path, if there is one. Only a model folder is replaced, and only if
/// its files are unchanged and it contains no others.
pub fn replacing(folder: &Path) -> Result<NewFolder> {
    match NewFolder::begin(folder) {
        Err(durable::Error::Occupied { .. }) => {}
        begun => return Ok(begun?),
    }
    let unlisted = |sums: Sums| sums.require(CONFIG).and_then(|()| sums.unlisted());
    let found = match Sums::verify(folder).and_then(unlisted) {
        Ok(None) => return Ok(NewFolder::replacing(folder)?),
        Ok(Some(name)) => format!("a folder with {name}"),
        Err(_) if folder.is_file() => "a file".to_owned(),
        Err(durable::Error::Missing { path, .. }) => {
            format!("a folder without {}", path.file_name().unwrap_or_default().display())
        }
        Err(error) => error.to_string(),
    };
    let expected = "a model folder with unchanged files, which --force replaces";
    let remedy = "nothing was changed; move it away, or choose another folder";
    Err(Error::occupied(folder, &found, expected, remedy))
}

/// Saves a model; `weights` writes its weights as safetensors to a path. The folder gets its name last, so a failure
/// leaves an existing folder unchanged. On return, the model is durable.
pub fn write(
    folder: &Path,
    config: &Config,
    vocabulary: &WordList,
    weights: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<()> {
    write_with(begin(folder)?, config, vocabulary, weights, &[])
}

/// Saves a model as [`write()`] does, into a folder that was begun, with further files.
pub fn write_with(
    mut new: NewFolder,
    config: &Config,
    vocabulary: &WordList,
    weights: impl FnOnce(&Path) -> io::Result<()>,
    others: &[File],
) -> Result<()> {
    if let Some((found, expected)) = fault(config) {
        return Err(Failed::defect(format!("positive_from is {found}, not {expected}")).into());
    }
    let vocabulary_lines = lines(vocabulary)?;
    let written = new.create(VOCABULARY, |out| out.write_all(&vocabulary_lines))?;
    let has_choices = config.calibration.is_some() || config.threshold.is_some();
    let document = Document {
        format_version: if has_choices { FORMAT_VERSION } else { VERSION_WITHOUT_CHOICES },
        sentimill: env!("CARGO_PKG_VERSION").to_owned(),
        vocabulary: Words { words: vocabulary.len() as u64, sha256: written.sha256.clone() },
        config: config.clone(),
    };
    new.list(VOCABULARY, written);
    let json = json::document(&document).expect("a document of plain values is JSON");
    new.put(CONFIG, |out| out.write_all(&json))?;
    new.put_at(WEIGHTS, weights)?;
    for (name, content) in others {
        new.put(name, |out| out.write_all(content))?;
    }
    Ok(new.finish()?)
}

/// Reads a saved model after verifying every file's SHA-256. The caller reads the weights.
pub fn read(folder: &Path) -> Result<Saved> {
    let sums = Sums::verify(folder)?;
    sums.require(CONFIG)?;
    let document = read_document(&folder.join(CONFIG))?;
    sums.require(VOCABULARY)?;
    let vocabulary = read_vocabulary(&folder.join(VOCABULARY), &document.vocabulary)?;
    check_words(folder, &document.config.preparation, &vocabulary)?;
    sums.require(WEIGHTS)?;
    let trained_on = sums.has(TRAINED_ON).then(|| TrainedOn::read(&folder.join(TRAINED_ON))).transpose()?;
    Ok(Saved { config: document.config, vocabulary, weights: folder.join(WEIGHTS), trained_on })
}

/// The content of `vocabulary.txt`. A word consists of letters, marks and `'`. A word with a line end is refused,
/// because it would shift the ids of all following words.
pub fn lines(vocabulary: &WordList) -> Result<Vec<u8>> {
    let mut lines = Vec::with_capacity(vocabulary.n_bytes() as usize + vocabulary.len());
    for (at, word) in vocabulary.iter().enumerate() {
        let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_control);
        if !std::str::from_utf8(word).is_ok_and(is_word) {
            let promise = format!("word {at} of the vocabulary contains a control character or is empty");
            return Err(Failed::defect(promise).into());
        }
        lines.extend_from_slice(word);
        lines.push(b'\n');
    }
    Ok(lines)
}

fn read_vocabulary(path: &Path, expected: &Words) -> Result<WordList> {
    let bytes = read_bounded(path, VOCABULARY_BYTES_MAX)?;
    let mut vocabulary = WordList::default();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        vocabulary.push(line.strip_suffix(b"\n").unwrap_or(line));
    }
    let found = Words { words: vocabulary.len() as u64, sha256: output::summary_of(&bytes).sha256 };
    if found == *expected {
        return Ok(vocabulary);
    }
    let described = |words: &Words| format!("{} words (SHA-256 {:.8})", words.words, words.sha256);
    let expected = format!("the model's {}", described(expected));
    let remedy = "vocabulary and weights must come from the same model: copy or train the whole model again";
    Err(durable::Error::unexpected(path, "the vocabulary", described(&found), expected, remedy).into())
}

/// Refuses settings that no dataset has, and words that no cleaned text contains.
fn check_words(folder: &Path, settings: &Settings, vocabulary: &WordList) -> Result<()> {
    let refused = |name: &str, field: String, found: String, expected: &str| {
        Err(durable::Error::unexpected(&folder.join(name), field, found, expected, REMEDY).into())
    };
    if let Err(Unsound { setting, found, expected }) = settings.check() {
        return refused(CONFIG, setting.to_owned(), found, expected);
    }
    if let Err(WordViolation { at, found, expected, .. }) = vocabulary.check(settings) {
        return refused(VOCABULARY, format!("word {at}"), found, expected);
    }
    Ok(())
}

fn read_document(path: &Path) -> Result<Document> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
        sentimill: String,
    }
    let json = read_bounded(path, CONFIG_BYTES_MAX)?;
    let no_config = |error: serde_json::Error| {
        let expected = format!("the configuration of a saved model, format version 1 to {FORMAT_VERSION}");
        durable::Error::unexpected(path, "its content", error, expected, REMEDY)
    };
    let version: Version = serde_json::from_slice(&json).map_err(no_config)?;
    if !(VERSION_WITHOUT_CHOICES..=FORMAT_VERSION).contains(&version.format_version) {
        let (found, expected) = (version.format_version, format!("1 to {FORMAT_VERSION}"));
        let remedy = format!("use sentimill {}, which wrote it", version.sentimill);
        return Err(durable::Error::unexpected(path, "the format version", found, expected, remedy).into());
    }
    let document: Document = serde_json::from_slice(&json).map_err(no_config)?;
    let fault = fault(&document.config).map(|(found, expected)| ("positive_from", found, expected));
    match fault.or_else(|| fault_of_choices(&document.config)) {
        Some((field, found, expected)) => {
            Err(durable::Error::unexpected(path, field, found, expected, REMEDY).into())
        }
        None => Ok(document),
    }
}

/// Checks the calibration and the threshold. Returns the wrong one, the value found and the valid values.
fn fault_of_choices(config: &Config) -> Option<(&'static str, String, String)> {
    let Config { scoring, calibration, threshold, .. } = config;
    let has_probability = scoring.is_some_and(|scoring| match scoring {
        // A temperature calibrates the probabilities of three or more classes.
        Scoring::Classes { .. } => !matches!(calibration, Some(Calibrator::Platt { .. })),
        scoring => scoring.probability(0.0).is_some(),
    });
    if calibration.is_some() && !has_probability {
        return Some((
            "calibration",
            "set".to_owned(),
            "none, because the model predicts no probability".to_owned(),
        ));
    }
    if threshold.is_some() && !scoring.is_some_and(Scoring::is_of_label) {
        let expected = "none, because the model has no score for label 1";
        return Some(("threshold", "set".to_owned(), expected.to_owned()));
    }
    let calibration = calibration.and_then(|calibration| calibration.check().err());
    let threshold = threshold.and_then(|threshold| threshold.check().err());
    let (name, found, expected) = calibration.or(threshold)?;
    Some((name, found.to_string(), expected.to_owned()))
}

/// Checks that `positive_from` of the scores is a valid rating and equals `positive_from` of the labels. Otherwise
/// returns the value found and the expected one.
fn fault(config: &Config) -> Option<(String, String)> {
    let of_labels = config.preparation.labels.positive_from();
    if let Some(of_labels) = of_labels.filter(|rating| !(1..=5).contains(rating)) {
        return Some((of_labels.to_string(), "1 to 5".to_owned()));
    }
    match config.scoring {
        Some(Scoring::Rating { positive_from } | Scoring::FiveRatings { positive_from })
            if Some(positive_from) != of_labels =>
        {
            let expected = of_labels.map_or("none".to_owned(), |of_labels| of_labels.to_string());
            Some((positive_from.to_string(), format!("{expected}, as for the labels")))
        }
        _ => None,
    }
}

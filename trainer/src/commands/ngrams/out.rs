//! The training folder of an n-gram model: its settings, checkpoint and logs.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use ::ngrams::{Texts, fasttext};
use report::whole;
use runs::recipe::first_difference;
use runs::training::{
    self, CHECKPOINTS, DatasetRecord, FORMAT_VERSION, Hold, METRICS, MODEL, PATIENCE, RunSettings, SETTINGS,
    STATE, put, put_json,
};

use super::progress::Progress;
use super::settings::Settings;
use crate::arguments::Ngrams;
use crate::commands::out::{Existing, check_occupant, check_place, default_of_path};
use crate::commands::progress::Log;
use crate::error::{Error, Result};
use crate::tell::tell;

/// The training folder.
pub struct Out {
    folder: PathBuf,
    existing: Existing,
    _hold: Hold,
}

impl Out {
    /// Locks the folder, which must be new, empty or, as the flags allow, a training.
    pub fn take(arguments: &Ngrams) -> Result<Self> {
        let folder = arguments.out.clone().unwrap_or_else(|| {
            let first = arguments.input.first().map_or("-", String::as_str);
            default_of_path(Path::new(first.trim_start_matches("-")), "ngrams")
        });
        let existing = match (arguments.resume, arguments.force) {
            (true, _) => Existing::Resume,
            (false, true) => Existing::Replace,
            (false, false) => Existing::Refuse,
        };
        check_place(&folder)?;
        let hold = Hold::take(&folder, PATIENCE)?;
        check_occupant(&folder, existing)?;
        Ok(Self { folder, existing, _hold: hold })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The model folder.
    pub fn model(&self) -> PathBuf {
        self.folder.join(MODEL)
    }

    /// The checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.folder.join(CHECKPOINTS)
    }

    /// Deletes the training that is replaced, if any.
    pub fn clear(&self) -> Result<()> {
        if self.existing == Existing::Replace {
            training::clear(&self.folder)?;
        }
        Ok(())
    }

    /// Whether the training is complete. Errors: the existing training has other settings.
    pub fn is_complete(&self, recipe: &serde_json::Value) -> Result<bool> {
        let path = self.folder.join(SETTINGS);
        if self.existing != Existing::Resume || !path.exists() {
            return Ok(false);
        }
        let json = fs::read(&path).map_err(|source| Error::io(&path, source))?;
        let settings: RunSettings = serde_json::from_slice(&json).map_err(|error| Error::Weights {
            path: path.clone(),
            found: error.to_string(),
            expected: "the settings of a training; choose another --out".to_owned(),
        })?;
        // Numbers are compared in their written form.
        let text = serde_json::to_vec(recipe).map_err(|error| Error::internal(&error))?;
        let recipe = serde_json::from_slice(&text).map_err(|error| Error::internal(&error))?;
        match first_difference(&settings.recipe, &recipe) {
            None => Ok(self.model().is_dir()),
            Some((what, found, expected)) => {
                Err(runs::Error::OtherTraining { path, what, found, expected }.into())
            }
        }
    }

    /// Writes the settings and the description of the texts.
    pub fn describe(
        &self,
        arguments: &Ngrams,
        texts: &Texts,
        recipe: serde_json::Value,
        settings: &Settings,
    ) -> Result<()> {
        let counts = texts.counts();
        let dictionary = &texts.dictionary;
        let labels = dictionary.labels();
        let mut classes: Vec<(String, [u64; 3])> = (0..labels.len() as u32)
            .map(|label| {
                let name = String::from_utf8_lossy(labels.get(label)).into_owned();
                (name, [dictionary.label_count(label), 0, 0])
            })
            .collect();
        classes.sort();
        let card = [
            ("texts", counts.n_texts),
            ("texts without words", counts.n_empty),
            ("lines without a label", counts.n_unlabelled),
            ("tokens", counts.n_tokens),
            ("words", dictionary.n_words() as u64),
            ("labels", labels.len() as u64),
        ];
        let path = match &arguments.input[..] {
            [place] => {
                std::path::absolute(place).map_or_else(|_| place.clone(), |path| path.display().to_string())
            }
            places => places.join(" "),
        };
        let settings = RunSettings {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: None,
            dataset: DatasetRecord {
                path,
                rows: [counts.n_texts, 0, 0],
                positive: [0; 3],
                classes,
                card: card.map(|(name, n)| (name.to_owned(), whole(n))).into(),
            },
            validation: None,
            unlabelled: None,
            soft_labels: Vec::new(),
            test: None,
            init_from: None,
            recipe,
            parameters: settings.parameters(dictionary.n_words() as u64, labels.len() as u64),
            steps_of_epoch: 1,
            world_size: 1,
            device: "CPU".to_owned(),
        };
        Ok(put_json(&self.folder.join(SETTINGS), &settings)?)
    }

    /// Shows and logs the training. The log continues that of the checkpoint, if there is one.
    pub fn progress(&self, texts: &Texts, settings: &Settings) -> Result<Progress> {
        if self.existing != Existing::Resume || !self.checkpoints().join(STATE).exists() {
            // The lines of an earlier process, which has left no checkpoint.
            let _ = fs::remove_file(self.folder.join(METRICS));
        }
        let log = Log::begin(&self.folder, 0, 1, "CPU".to_owned())?;
        Progress::new(log, settings.epochs(), texts.n_texts())
    }

    /// A new training, or one that is resumed from the checkpoint.
    pub fn begin<'a>(
        &self,
        texts: &'a Texts,
        settings: &fasttext::Settings,
        progress: &mut Progress,
    ) -> Result<fasttext::Training<'a>> {
        let state = self.checkpoints().join(STATE);
        if self.existing != Existing::Resume {
            return Ok(fasttext::Training::new(texts, settings.clone())?);
        }
        match File::open(&state) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tell("no checkpoint to resume from: starting from the first text");
                Ok(fasttext::Training::new(texts, settings.clone())?)
            }
            opened => {
                let file = opened.map_err(|source| Error::io(&state, source))?;
                let training =
                    fasttext::Training::resume(texts, settings.clone(), &mut BufReader::new(file))?;
                progress.resume();
                tell("resuming from the checkpoint");
                Ok(training)
            }
        }
    }

    /// Replaces the checkpoint.
    pub fn save(&self, training: &fasttext::Training<'_>) -> Result<()> {
        let folder = self.checkpoints();
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(&folder, error));
            }
            _ => {}
        }
        Ok(put(&folder.join(STATE), |file| training.save(file).map_err(io::Error::other))?)
    }

    /// Deletes the checkpoint of a complete training.
    pub fn finish(&self) -> Result<()> {
        let folder = self.checkpoints();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&folder, error)),
            _ => Ok(()),
        }
    }
}

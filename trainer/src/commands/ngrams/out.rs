//! The training folder of an n-gram model: its settings, checkpoints and logs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ::ngrams::{Texts, fasttext};
use batches::Part;
use report::whole;
use runs::checkpoints::number_of;
use runs::recipe::first_difference;
use runs::training::{
    CHECKPOINTS, DatasetRecord, FORMAT_VERSION, METRICS, MODEL, NGRAMS, RunSettings, SETTINGS, STATE,
    TopNgrams, put_json,
};

use super::progress::Progress;
use super::settings::Settings;
use crate::arguments::Ngrams;
use crate::commands::out::{self, Existing, default_of_path};
use crate::commands::progress::Log;
use crate::error::{Error, Result};
use crate::families::ngrams::Classifier;
use crate::tell::tell;

/// Checkpoints that are kept. A state may be as large as the memory.
const KEPT: usize = 1;

/// The training folder.
pub struct Out {
    out: out::Out,
    /// The number of the last checkpoint.
    n_saved: u64,
}

impl Out {
    /// Locks the folder, or claims the prefix in S3. It must be new, empty or, as the flags allow, a training.
    pub fn take(arguments: &Ngrams) -> Result<Self> {
        let place = arguments.out.clone().unwrap_or_else(|| {
            let first = arguments.input.first().map_or("-", String::as_str);
            default_of_path(Path::new(first.trim_start_matches("-")), "ngrams").into()
        });
        let existing = match (arguments.resume, arguments.force) {
            (true, _) => Existing::Resume,
            (false, true) => Existing::Replace,
            (false, false) => Existing::Refuse,
        };
        let out = out::Out::take_alone(&place, &arguments.storage.options(), KEPT, existing)?;
        Ok(Self { out, n_saved: 0 })
    }

    /// The path or URL of the training, for messages.
    pub fn shown(&self) -> &Path {
        self.out.shown()
    }

    /// The path or URL of the model, for messages.
    pub fn shown_model(&self) -> PathBuf {
        self.shown().join(MODEL)
    }

    /// The path or URL of the checkpoints, for messages.
    pub fn shown_checkpoints(&self) -> PathBuf {
        self.shown().join(CHECKPOINTS)
    }

    /// Deletes the training that is replaced, if any.
    pub fn clear(&self) -> Result<()> {
        self.out.clear()
    }

    /// Whether the training is complete. Errors: the existing training has other settings.
    pub fn is_complete(&self, recipe: &serde_json::Value) -> Result<bool> {
        let path = self.out.folder().join(SETTINGS);
        if self.out.existing() != Existing::Resume || !path.exists() {
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
            None => Ok(self.out.model().is_dir()),
            Some((what, found, expected)) => {
                let path = self.shown().join(SETTINGS);
                Err(runs::Error::OtherTraining { path, what, found, expected }.into())
            }
        }
    }

    /// Writes the settings and the description of the texts.
    pub fn describe(
        &self,
        arguments: &Ngrams,
        texts: &Texts,
        held_out: Option<&(Part, Texts)>,
        recipe: serde_json::Value,
        settings: &Settings,
        world_size: usize,
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
        let mut rows = [counts.n_texts, 0, 0];
        if let Some((part, held_out)) = held_out {
            rows[*part as usize] = held_out.n_texts();
            let labels = held_out.dictionary.labels();
            for (name, counts) in &mut classes {
                let label = (0..labels.len() as u32).find(|&label| labels.get(label) == name.as_bytes());
                counts[*part as usize] = label.map_or(0, |label| held_out.dictionary.label_count(label));
            }
        }
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
            [place] => absolute(place),
            places => places.join(" "),
        };
        let settings = RunSettings {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: None,
            dataset: DatasetRecord {
                path,
                rows,
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
            world_size,
            device: "CPU".to_owned(),
        };
        Ok(put_json(&self.out.folder().join(SETTINGS), &settings)?)
    }

    /// Shows and logs the training. The log continues that of the checkpoint, if there is one.
    pub fn progress(&self, texts: &Texts, settings: &Settings, world_size: usize) -> Result<Progress> {
        let folder = self.out.folder();
        if self.newest()?.is_none() {
            if self.out.existing() == Existing::Resume {
                tell("no checkpoint to resume from: starting from the first text");
            }
            // The lines of an earlier process, which has left no checkpoint.
            let _ = fs::remove_file(folder.join(METRICS));
        }
        let log = Log::begin(folder, 0, world_size, "CPU".to_owned())?;
        Progress::new(log, settings.epochs(), texts.n_texts())
    }

    /// The state of the newest checkpoint of a training that is resumed, if there is one.
    pub fn state(&mut self) -> Result<Option<(PathBuf, File)>> {
        let Some(checkpoint) = self.newest()? else { return Ok(None) };
        self.n_saved = number_of(&checkpoint).unwrap_or_default();
        let path = checkpoint.join(STATE);
        let file = File::open(&path).map_err(|source| Error::io(&path, source))?;
        tell("resuming from the checkpoint");
        Ok(Some((path, file)))
    }

    /// Whether there is a checkpoint to resume from.
    pub fn has_checkpoint(&self) -> Result<bool> {
        Ok(self.newest()?.is_some())
    }

    /// The newest checkpoint that is intact, if the training is resumed.
    fn newest(&self) -> Result<Option<PathBuf>> {
        match self.out.existing() {
            Existing::Resume => Ok(self.out.checkpoints().newest(|_| ())?),
            Existing::Refuse | Existing::Replace => Ok(None),
        }
    }

    /// Saves a checkpoint. One of a training in S3 is put there while the training continues.
    pub fn save(&mut self, training: &fasttext::Training<'_>) -> Result<()> {
        self.n_saved += 1;
        let write = |mut file: &mut dyn io::Write| training.save(&mut file).map_err(io::Error::other);
        let saved = self.out.checkpoints().save_ngrams(self.n_saved, write)?;
        self.out.checkpoint_saved(&saved)
    }

    /// Waits until the last checkpoint is in S3, if the training is there.
    pub fn checkpoints_saved(&self) -> Result<()> {
        self.out.checkpoints_saved()
    }

    /// Writes the n-grams with the largest weights.
    pub fn keep_top(&self, top: &TopNgrams) -> Result<()> {
        Ok(put_json(&self.out.folder().join(NGRAMS), top)?)
    }

    /// Writes the model, and deletes the checkpoints.
    pub fn finish(&self, classifier: &Classifier) -> Result<()> {
        classifier.write(&self.out.model())?;
        let checkpoints = self.out.checkpoints().folder();
        match fs::remove_dir_all(checkpoints) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(checkpoints, error));
            }
            _ => {}
        }
        self.out.model_saved()
    }

    /// Puts the model into S3 if an earlier process could not.
    pub fn finish_again(&self) -> Result<()> {
        self.out.model_saved()
    }
}

/// The absolute path or the URL of an input.
pub fn absolute(place: &str) -> String {
    let is_path = !place.contains("://") && place != "-";
    let absolute = is_path.then(|| std::path::absolute(place).ok()).flatten();
    absolute.map_or_else(|| place.to_owned(), |path| path.display().to_string())
}

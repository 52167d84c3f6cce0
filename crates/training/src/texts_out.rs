//! The training folder of a model of texts that are read in order: n-grams or word vectors. It keeps one checkpoint, since
//! a state may be as large as the memory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use program::location::Location;
use runs::checkpoints::{differing, number_of};
use runs::training::{
    CHECKPOINTS, DatasetRecord, EvaluationRecord, METRICS, MODEL, RunSettings, SETTINGS, STATE, put_json,
};
use scoring::Scores;
use serde_json::Value;
use store::S3Options;

use crate::error::{Error, Result};
use crate::log::Log;
use crate::out::{Existing, Out, default_of_path};
use crate::tell::tell;

/// Number of checkpoints that are kept.
const KEPT: usize = 1;
/// The device, as the report shows it.
const DEVICE: &str = "CPU";

/// The training folder.
pub struct TextsOut {
    out: Out,
    /// The number of the last checkpoint.
    n_saved: u64,
}

impl TextsOut {
    /// Locks the folder, or claims the prefix in S3. It must be new, empty or, as `existing` allows, a training. Without
    /// `place`, it is named after the first input.
    pub fn take(
        place: Option<&Location>,
        inputs: &[String],
        extension: &str,
        s3: &S3Options,
        existing: Existing,
    ) -> Result<Self> {
        let default = || {
            let first = inputs.first().map_or("-", String::as_str);
            default_of_path(Path::new(first.trim_start_matches("-")), extension).into()
        };
        let out = Out::take(&place.cloned().unwrap_or_else(default), s3, KEPT, existing)?;
        Ok(Self { out, n_saved: 0 })
    }

    /// The local folder.
    pub fn folder(&self) -> &Path {
        self.out.folder()
    }

    /// The local folder of the model.
    pub fn model(&self) -> PathBuf {
        self.out.model()
    }

    /// The local folder of the checkpoints.
    pub fn checkpoints(&self) -> &Path {
        self.out.checkpoints().folder()
    }

    /// Whether the training is in S3.
    pub fn is_in_s3(&self) -> bool {
        self.out.is_in_s3()
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

    /// Whether a training is resumed, if there is one.
    pub fn is_resumed(&self) -> bool {
        self.out.existing() == Existing::Resume
    }

    /// Deletes the training that is replaced, if any.
    pub fn clear(&self) -> Result<()> {
        self.out.clear()
    }

    /// Whether there is a model of the training that is resumed. Errors: this training has other settings.
    pub fn has_model(&self, recipe: &Value) -> Result<bool> {
        if !self.is_resumed() {
            return Ok(false);
        }
        let Some(settings) = self.out.settings()? else { return Ok(false) };
        match differing(&settings.recipe, recipe)? {
            None => Ok(self.model().is_dir()),
            Some((what, found, expected)) => {
                let path = self.shown().join(SETTINGS);
                Err(runs::Error::other_training(&path, &what, &found, &expected).into())
            }
        }
    }

    /// Writes the settings. `parameters` is 0 if their number is unknown.
    pub fn write_settings(&self, dataset: DatasetRecord, recipe: Value, parameters: u64) -> Result<()> {
        let settings =
            RunSettings { parameters, ..RunSettings::of_texts(dataset, recipe, DEVICE.to_owned()) };
        Ok(put_json(&self.folder().join(SETTINGS), &settings)?)
    }

    /// Deletes the metrics of an earlier process, which has left no checkpoint.
    pub fn delete_metrics(&self) {
        let _ = fs::remove_file(self.folder().join(METRICS));
    }

    /// The metrics of the training, from this number of steps on.
    pub fn log(&self, from_step: u64) -> Result<Log> {
        Log::begin(self.folder(), from_step, 1, DEVICE.to_owned())
    }

    /// Writes the evaluation of the model.
    pub fn keep_evaluation(&self, record: EvaluationRecord, scores: &Scores) -> Result<()> {
        self.out.keep_evaluation(record, scores)
    }

    /// Whether there is a checkpoint to resume from.
    pub fn has_checkpoint(&self) -> Result<bool> {
        Ok(self.newest()?.is_some())
    }

    /// The state of the newest checkpoint of a training that is resumed, if there is one.
    pub fn state(&mut self) -> Result<Option<(PathBuf, File)>> {
        let Some(checkpoint) = self.newest()? else { return Ok(None) };
        self.n_saved = number_of(&checkpoint).unwrap_or_default();
        let path = checkpoint.join(STATE);
        let file = File::open(&path).map_err(|source| Error::io(&path, source))?;
        Ok(Some((path, file)))
    }

    /// The newest checkpoint that is intact, if the training is resumed.
    fn newest(&self) -> Result<Option<PathBuf>> {
        if self.is_resumed() { Ok(self.out.checkpoints().newest(|_| ())?) } else { Ok(None) }
    }

    /// Saves a checkpoint whose state `write` writes. One of a training in S3 is put there while the training continues.
    pub fn save<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        &mut self,
        write: impl FnOnce(&mut &mut dyn Write) -> std::result::Result<(), E>,
    ) -> Result<()> {
        self.n_saved += 1;
        let write = |mut file: &mut dyn Write| write(&mut file).map_err(io::Error::other);
        let saved = self.out.checkpoints().save_state(self.n_saved, write)?;
        self.out.checkpoint_saved(&saved)
    }

    /// Waits until the last checkpoint is in S3, if the training is there.
    pub fn checkpoints_saved(&self) -> Result<()> {
        self.out.checkpoints_saved()
    }

    /// Puts the model into S3 in place of the checkpoints, if the training is there.
    pub fn model_saved(&self) -> Result<()> {
        self.out.model_saved()?;
        self.out.forget_checkpoints()
    }

    /// Reports a training that is complete. An earlier process may have failed to put its model into S3.
    pub fn finish_again(&self) -> Result<()> {
        self.model_saved()?;
        tell(&format!("already complete: the model is in {}", self.shown_model().display()));
        Ok(())
    }
}

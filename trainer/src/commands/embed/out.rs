//! The training folder of word vectors: its settings, checkpoints, logs and model.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use embeddings::folder::{self, Characters, Parts};
use ngrams::{Dictionary, Names};
use runs::checkpoints::number_of;
use runs::recipe::first_difference;
use runs::training::{
    CHECKPOINTS, DatasetRecord, FORMAT_VERSION, METRICS, MODEL, RunSettings, SETTINGS, STATE, put_json,
};
use serde_json::Value;
use skipgram::{Training, Vocabulary};

use super::Vectors;
use crate::arguments::Embed;
use crate::commands::out::{self, Existing, default_of_path};
use crate::commands::progress::Log;
use crate::error::{Error, Result};
use crate::tell::tell;

/// Size of a chunk of lines, and maximum length of a line.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Checkpoints that are kept. A state may be as large as the memory.
const KEPT: usize = 1;
/// The model of a stream before it takes the place of the older one.
const NEXT_MODEL: &str = ".next-model";
const OLDER_MODEL: &str = ".older-model";
const OLDER_CHECKPOINTS: &str = ".older-checkpoints";
/// The number of lines that were read of a stream, as text: what a checkpoint does not know yet.
const LINES_READ: &str = ".lines-read";

/// The training folder.
pub(super) struct Out {
    out: out::Out,
    /// The number of the last checkpoint.
    n_saved: u64,
}

impl Out {
    /// Locks the folder, or claims the prefix in S3. It must be new, empty or, as the flags allow, a training.
    pub(super) fn take(arguments: &Embed) -> Result<Self> {
        let place = arguments.out.clone().unwrap_or_else(|| {
            let first = arguments.input.first().map_or("-", String::as_str);
            default_of_path(Path::new(first.trim_start_matches("-")), "vectors").into()
        });
        let existing = match (arguments.resume, arguments.force) {
            (true, _) => Existing::Resume,
            (false, true) => Existing::Replace,
            (false, false) => Existing::Refuse,
        };
        let out = out::Out::take_alone(&place, &arguments.storage.options(), KEPT, existing)?;
        Ok(Self { out, n_saved: 0 })
    }

    pub(super) fn shown(&self) -> &Path {
        self.out.shown()
    }

    pub(super) fn shown_model(&self) -> PathBuf {
        self.shown().join(MODEL)
    }

    pub(super) fn shown_checkpoints(&self) -> PathBuf {
        self.shown().join(CHECKPOINTS)
    }

    /// Whether the training is complete. Errors: the existing training has other settings.
    pub(super) fn is_complete(&self, recipe: &Value) -> Result<bool> {
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
            None => Ok(self.out.model().is_dir() && self.newest()?.is_none()),
            Some((what, found, expected)) => {
                let path = self.shown().join(SETTINGS);
                Err(runs::Error::OtherTraining { path, what, found, expected }.into())
            }
        }
    }

    /// Writes the settings, and deletes the training that is replaced.
    pub(super) fn begin(&self, arguments: &Embed, recipe: &Value) -> Result<()> {
        self.out.clear()?;
        if self.newest()?.is_some() {
            tell("resuming from the checkpoint");
            return Ok(());
        }
        if self.out.existing() == Existing::Resume {
            tell("no checkpoint to resume from: starting from the first line");
        }
        self.write_settings(arguments, recipe)
    }

    /// Writes the settings of a training on parameter servers, which has no checkpoints here.
    pub(super) fn begin_served(&self, arguments: &Embed, recipe: &Value) -> Result<()> {
        self.out.clear()?;
        self.write_settings(arguments, recipe)
    }

    fn write_settings(&self, arguments: &Embed, recipe: &Value) -> Result<()> {
        // The lines of an earlier process, which has left no checkpoint.
        let _ = fs::remove_file(self.out.folder().join(METRICS));
        let settings = RunSettings {
            version: FORMAT_VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: None,
            dataset: DatasetRecord {
                path: arguments.input.join(" "),
                rows: [0; 3],
                positive: [0; 3],
                classes: Vec::new(),
                card: Vec::new(),
            },
            validation: None,
            unlabelled: None,
            soft_labels: Vec::new(),
            test: None,
            init_from: None,
            recipe: recipe.clone(),
            parameters: 0,
            steps_of_epoch: 1,
            world_size: 1,
            device: "CPU".to_owned(),
        };
        Ok(put_json(&self.out.folder().join(SETTINGS), &settings)?)
    }

    /// The metrics of the training, from this number of tokens on.
    pub(super) fn log(&self, n_tokens: u64) -> Result<Log> {
        Log::begin(self.out.folder(), n_tokens, 1, "CPU".to_owned())
    }

    /// The state of the newest checkpoint of a training that is resumed, if there is one.
    pub(super) fn state(&mut self) -> Result<Option<(PathBuf, BufReader<File>)>> {
        let Some(checkpoint) = self.newest()? else { return Ok(None) };
        self.n_saved = number_of(&checkpoint).unwrap_or_default();
        let path = checkpoint.join(STATE);
        let file = File::open(&path).map_err(|source| Error::io(&path, source))?;
        Ok(Some((path, BufReader::with_capacity(1 << 20, file))))
    }

    fn newest(&self) -> Result<Option<PathBuf>> {
        match self.out.existing() {
            Existing::Resume => Ok(self.out.checkpoints().newest(|_| ())?),
            Existing::Refuse | Existing::Replace => Ok(None),
        }
    }

    /// Saves a checkpoint. One of a training in S3 is put there while the training continues.
    pub(super) fn save(&mut self, training: &Training, vocabulary: &Vocabulary, place: &[u8]) -> Result<()> {
        self.save_with(|file| training.save(vocabulary, place, file))
    }

    /// Saves a checkpoint whose state `write` writes.
    pub(super) fn save_with<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        &mut self,
        write: impl FnOnce(&mut &mut dyn Write) -> std::result::Result<(), E>,
    ) -> Result<()> {
        self.n_saved += 1;
        let write = |mut file: &mut dyn Write| write(&mut file).map_err(io::Error::other);
        let saved = self.out.checkpoints().save_ngrams(self.n_saved, write)?;
        self.out.checkpoint_saved(&saved)
    }

    /// Waits until the last checkpoint is in S3, if the training is there.
    pub(super) fn checkpoints_saved(&self) -> Result<()> {
        self.out.checkpoints_saved()
    }

    /// Writes the model of a stream in place of the older one.
    pub(super) fn replace_model(
        &self,
        training: &Training,
        vocabulary: &Vocabulary,
        recipe: &Value,
    ) -> Result<()> {
        self.replace_with(|next| write_model(next, training, vocabulary, recipe))
    }

    fn replace_with(&self, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let next = self.out.folder().join(NEXT_MODEL);
        remove(&next)?;
        write(&next)?;
        let model = self.out.model();
        let older = self.out.folder().join(OLDER_MODEL);
        remove(&older)?;
        // A reader that opens the model in between finds none, and can try again.
        match fs::rename(&model, &older) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(&model, error)),
            _ => {}
        }
        fs::rename(&next, &model).map_err(|error| Error::io(&model, error))?;
        remove(&older)
    }

    /// Writes the model, and deletes the checkpoints.
    pub(super) fn finish(
        &self,
        vectors: &mut Vectors,
        vocabulary: &Vocabulary,
        recipe: &Value,
    ) -> Result<()> {
        self.replace_with(|next| match vectors {
            Vectors::Table(training) => write_model(next, training, vocabulary, recipe),
            Vectors::Spelled(training) => write_spelled(next, training, vocabulary, recipe),
        })?;
        // A process that is killed while it deletes them leaves no damaged ones.
        let (checkpoints, older) =
            (self.out.checkpoints().folder(), self.out.folder().join(OLDER_CHECKPOINTS));
        remove(&older)?;
        match fs::rename(checkpoints, &older) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(checkpoints, error));
            }
            _ => remove(&older)?,
        }
        let _ = fs::remove_file(self.out.folder().join(LINES_READ));
        self.out.model_saved()
    }

    /// Puts the model into S3 if an earlier process could not.
    pub(super) fn finish_again(&self) -> Result<()> {
        self.out.model_saved()
    }

    /// The file with the number of lines that were read of a stream.
    pub(super) fn lines_read(&self) -> PathBuf {
        self.out.folder().join(LINES_READ)
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(folder, error)),
        _ => Ok(()),
    }
}

/// Writes the words that occur often enough, the most frequent first.
fn write_model(path: &Path, training: &Training, vocabulary: &Vocabulary, recipe: &Value) -> Result<()> {
    let (ranked, numbers) = vocabulary.ranked(training.settings().min_count);
    let mut rows = vec![0; ranked.n_words()];
    for (old, new) in (0..).zip(&numbers) {
        if let Some(new) = new {
            rows[*new as usize] = old;
        }
    }
    let words: Names = ranked.iter().map(|(word, _)| word).collect();
    let words = Dictionary::new(words, ranked.counts(), Names::default(), Vec::new());
    let vectors = |word: usize, values: &mut [f32]| {
        let mut characters = Vec::new();
        training.characters_of(words.name(word as u32), &mut characters);
        training.read_vector(rows[word], &characters, values);
    };
    let of_rows = |row: usize, values: &mut [f32]| match row.checked_sub(rows.len()) {
        None => training.input().read(rows[row], 0, values),
        Some(bucket) => training.read_bucket(bucket as u32, values),
    };
    let parts = Parts {
        words: &words,
        dim: training.settings().dim,
        vectors: &vectors,
        outputs: Some(&|word, values: &mut [f32]| training.output().read(rows[word], 0, values)),
        characters: training.settings().characters.map(|of| Characters {
            min: of.min as usize,
            max: of.max as usize,
            buckets: of.buckets as usize,
            rows: &of_rows,
        }),
        generator: None,
        settings: recipe.clone(),
    };
    Ok(folder::write(path, &parts)?)
}

/// Writes the words, their vectors and the generator of these.
fn write_spelled(
    path: &Path,
    training: &mut spelling::Training,
    vocabulary: &Vocabulary,
    recipe: &Value,
) -> Result<()> {
    let words: Names = vocabulary.iter().map(|(word, _)| word).collect();
    let words = Dictionary::new(words, vocabulary.counts(), Names::default(), Vec::new());
    let (vectors, outputs, dim) = (training.vectors(), training.outputs(), training.settings().dim);
    let parts = Parts {
        words: &words,
        dim,
        vectors: &|word, values: &mut [f32]| values.copy_from_slice(&vectors[word * dim..][..dim]),
        outputs: Some(&|word, values: &mut [f32]| values.copy_from_slice(&outputs[word * dim..][..dim])),
        characters: None,
        generator: Some(&training.generator()),
        settings: recipe.clone(),
    };
    Ok(folder::write(path, &parts)?)
}

//! Checkpoints of a training. A training resumed from one has the same result as an uninterrupted one, if its shares are
//! fixed or replayed.
//!
//! ```text
//! checkpoints/
//!   step-000000400/
//!     model.safetensors       the weights
//!     optimizer.safetensors   the optimizer's state
//!     best.safetensors        the weights with the lowest validation loss, if any
//!     training.json           the recipe, the position, the format version
//!     vocabulary.txt          the vocabulary, in the order of the ids
//!     SHA256SUMS              digests of all files
//!   latest                    the name of the newest checkpoint
//! ```
//!
//! A checkpoint of an n-gram training has the file `ngrams.state` and its digest; its number counts checkpoints.
//!
//! A checkpoint appears completely or not at all, and `latest` is written after it. This module does not read
//! tensors.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use corpus::settings::{Difference, Settings};
use dataset::WordList;
use durable::sums::Sums;
use durable::{NewFolder, read_bounded};
use program::exit::Failed;
use program::temporary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::json;
use crate::recipe::{Position, Recipe, first_difference};
use crate::saved;
use crate::training::STATE;

const VERSION: u32 = 4;
const LATEST: &str = "latest";
/// The weights.
pub const MODEL: &str = "model.safetensors";
/// The optimizer's state.
pub const OPTIMIZER: &str = "optimizer.safetensors";
/// The weights with the lowest validation loss.
pub const BEST: &str = "best.safetensors";
const TRAINING: &str = "training.json";
const VOCABULARY: &str = "vocabulary.txt";
/// Stop words take most of the file, as in a commit record, which has the same limit.
const TRAINING_BYTES_MAX: u64 = dataset::commit::RECORD_BYTES_MAX;

/// Contents of a checkpoint except tensors and vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    version: u32,
    sentimill: String,
    /// The settings with which reviews were made into rows.
    pub preparation: Settings,
    /// The settings of the training.
    pub recipe: Recipe,
    /// The progress of the training.
    pub position: Position,
    /// Number of optimizer steps.
    pub optimizer_steps: u64,
    /// Whether the checkpoint contains weights with the lowest validation loss.
    pub has_best: bool,
    /// Number of ranks whose optimizers it contains: all of a training in rounds, else one, because they are equal.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub optimizers: usize,
}

/// Maximum number of optimizers in a checkpoint.
const RANKS_MAX: usize = 1 << 16;

fn one() -> usize {
    1
}

fn is_one(n: &usize) -> bool {
    *n == 1
}

impl State {
    /// The state of a training with this recipe, at this position.
    pub fn of(
        recipe: &Recipe,
        preparation: &Settings,
        position: &Position,
        optimizer_steps: u64,
        has_best: bool,
        optimizers: usize,
    ) -> Self {
        Self {
            version: VERSION,
            sentimill: env!("CARGO_PKG_VERSION").to_owned(),
            preparation: preparation.clone(),
            recipe: recipe.clone(),
            position: position.clone(),
            optimizer_steps,
            has_best,
            optimizers,
        }
    }
}

/// What a checkpoint must match for a training to resume from it.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The settings of the training.
    pub recipe: &'a Recipe,
    /// The settings with which reviews were made into rows.
    pub preparation: &'a Settings,
    /// The vocabulary.
    pub words: &'a WordList,
    /// Number of rows in the training split.
    pub n_rows: u64,
}

/// Name of a tensor file, and a function that writes it to a path.
pub type TensorFile<'a> = (&'static str, &'a dyn Fn(&Path) -> io::Result<()>);

/// A folder of checkpoints.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// Checkpoints in `folder`, which may not exist yet. Only the newest `keep` are kept.
    pub fn new(folder: PathBuf, keep: usize) -> Self {
        Self { folder, keep: keep.max(1) }
    }

    /// The folder of the checkpoints.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the checkpoint after this number of steps.
    pub fn folder_of(&self, steps: u64) -> PathBuf {
        self.folder.join(name_of(steps))
    }

    /// Saves a checkpoint; each function in `tensors` writes one tensor file. On return, the checkpoint is durable.
    pub fn save(&self, state: &State, words: &WordList, tensors: &[TensorFile<'_>]) -> Result<()> {
        let name = name_of(state.position.steps);
        let folder = self.folder.join(&name);
        if !folder.exists() {
            write(&folder, state, words, tensors)?;
        }
        self.name_latest(&name)?;
        self.forget_old()
    }

    /// Saves a checkpoint of n-grams or word vectors, which is one file, and returns its folder. On return, it is durable.
    pub fn save_state(
        &self,
        number: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf> {
        let name = name_of(number);
        let folder = self.folder.join(&name);
        let mut new = NewFolder::begin(&folder)?;
        new.put(STATE, |out| write(out))?;
        new.finish()?;
        self.name_latest(&name)?;
        self.forget_old()?;
        Ok(folder)
    }

    /// Returns the newest intact checkpoint. Passes the errors of newer checkpoints that are damaged to
    /// `on_damage`. Returns `None` if there is no checkpoint.
    pub fn newest(&self, mut on_damage: impl FnMut(&Error)) -> Result<Option<PathBuf>> {
        let mut last_error = None;
        for folder in self.all()?.into_iter().rev() {
            match Sums::verify(&folder) {
                Ok(_) => return Ok(Some(folder.clone())),
                Err(error) => {
                    let error = Error::from(error);
                    on_damage(&error);
                    last_error = Some(error);
                }
            }
        }
        last_error.map_or(Ok(None), Err)
    }

    /// All checkpoints, from the oldest to the newest.
    fn all(&self) -> Result<Vec<PathBuf>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&self.folder).map_err(|source| Error::io(&self.folder, source))?;
        let mut folders = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| Error::io(&self.folder, source))?.path();
            let is_checkpoint =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step-"));
            if is_checkpoint && path.is_dir() {
                folders.push(path);
            }
        }
        folders.sort();
        Ok(folders)
    }

    fn name_latest(&self, name: &str) -> Result<()> {
        let path = self.folder.join(LATEST);
        let failed = |source| Error::io(&path, source);
        let mut temporary = temporary::file_in(&self.folder).map_err(failed)?;
        temporary.write_all(name.as_bytes()).map_err(failed)?;
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(&path).map_err(|error| failed(error.error))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    fn forget_old(&self) -> Result<()> {
        let all = self.all()?;
        for folder in &all[..all.len().saturating_sub(self.keep)] {
            fs::remove_dir_all(folder).map_err(|source| Error::io(folder, source))?;
        }
        Ok(())
    }
}

/// The number in the name of a checkpoint.
pub fn number_of(folder: &Path) -> Option<u64> {
    folder.file_name()?.to_str()?.strip_prefix("step-")?.parse().ok()
}

fn name_of(steps: u64) -> String {
    format!("step-{steps:09}")
}

fn write(folder: &Path, state: &State, words: &WordList, tensors: &[TensorFile<'_>]) -> Result<()> {
    let json = json::document(state).map_err(Failed::defect)?;
    let words = saved::lines(words)?;
    let mut new = NewFolder::begin(folder)?;
    for (name, write) in tensors {
        new.put_at(name, write)?;
    }
    new.put(TRAINING, |out| out.write_all(&json))?;
    new.put(VOCABULARY, |out| out.write_all(&words))?;
    Ok(new.finish()?)
}

/// Reads a checkpoint's state after verifying all its files. Errors: a file does not match its digest, or the recipe
/// or vocabulary differs from the expected one.
pub fn read(folder: &Path, expected: &Expected<'_>) -> Result<State> {
    let sums = Sums::verify(folder)?;
    [TRAINING, VOCABULARY, OPTIMIZER, MODEL].into_iter().try_for_each(|name| sums.require(name))?;
    let state = read_state(&folder.join(TRAINING), expected)?;
    if state.has_best {
        sums.require(BEST)?;
    }
    let path = folder.join(VOCABULARY);
    let lines = saved::lines(expected.words)?;
    let found = read_bounded(&path, lines.len() as u64)?;
    if found != lines {
        let found = format!("{} words", found.iter().filter(|&&byte| byte == b'\n').count());
        let expected = format!("the {} words of the dataset", expected.words.len());
        return Err(Error::other_training(&path, "vocabulary", &found, &expected));
    }
    Ok(state)
}

/// Reads `training.json` and compares it with the recipe.
fn read_state(path: &Path, expected: &Expected<'_>) -> Result<State> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let unreadable = |found: String| Error::unreadable(path, &found);
    let json = read_bounded(path, TRAINING_BYTES_MAX)?;
    let Version { version } = serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    if version != VERSION {
        let found = format!(
            "format version {version}, expected {VERSION}; resume with the version of this program that wrote it, or train again"
        );
        return Err(unreadable(found));
    }
    let state: State = serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    if let Some(Difference { setting, ours, theirs }) = state.preparation.difference(expected.preparation) {
        return Err(Error::other_training(path, setting, &ours, &theirs));
    }
    let written = serde_json::to_value(&state.recipe).map_err(Failed::defect)?;
    if let Some((what, found, expected)) = differing(&written, expected.recipe)? {
        return Err(Error::other_training(path, &what, &found, &expected));
    }
    let State { position, optimizer_steps, has_best, optimizers, .. } = &state;
    expected
        .recipe
        .check(position, expected.n_rows)
        .map_err(|(name, found, expected)| unreadable(format!("{name} is {found} instead of {expected}")))?;
    if *optimizer_steps != position.steps {
        return Err(unreadable(format!("{optimizer_steps} optimizer steps at step {}", position.steps)));
    }
    let optimizers_max = if state.recipe.sync_every > 1 { RANKS_MAX } else { 1 };
    if !(1..=optimizers_max).contains(optimizers) {
        return Err(unreadable(format!("{optimizers} optimizers, expected 1 to {optimizers_max}")));
    }
    if *has_best != position.best.is_some() {
        return Err(unreadable(format!("has_best {has_best} with best {:?}", position.best)));
    }
    Ok(state)
}

/// The first setting in which a written recipe differs from the expected one: its flag, and both values.
pub fn differing(found: &Value, expected: &impl Serialize) -> Result<Option<(String, String, String)>> {
    // Both recipes are compared in their written form, because the last bit of a number can change when it is
    // written and read.
    let text = serde_json::to_vec(expected).map_err(Failed::defect)?;
    let expected: Value = serde_json::from_slice(&text).map_err(Failed::defect)?;
    Ok(first_difference(found, &expected))
}

//! Trainings on disk, from which they go on as if nothing had happened.
//!
//! ```text
//! checkpoints/
//!   step-000000400/
//!     model.safetensors       the weights
//!     optimizer.safetensors   what the optimizer remembers
//!     best.safetensors        the weights with the least validation loss, where there are any
//!     training.json           the recipe, the position, the format's version
//!     vocabulary.txt          the words, in the order of their ids
//!     SHA256SUMS              of all of them
//!   latest                    the name of the newest
//! ```
//!
//! A checkpoint appears whole or not at all, and `latest` is written after it. Rank 0 writes and reads; the others get
//! what it read. It knows nothing of what a recipe means.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use corpus::settings::{Difference, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::families::{read_like, write_tensors};
use crate::ranks::Ranks;
use crate::train::Training;
use batches::{Part, Rows};
use runs::recipe::{Position, Recipe};
use runs::saved::folder::{Unfinished, read_bounded, verify};
use runs::saved::{self, Existing};

const VERSION: u32 = 3;
const LATEST: &str = "latest";
const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const BEST: &str = "best.safetensors";
const TRAINING: &str = "training.json";
const VOCABULARY: &str = "vocabulary.txt";
/// The stop words are most of it, as of the records of the job.
const TRAINING_BYTES_MAX: u64 = dataset::commit::RECORD_BYTES_MAX;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    sentimill: String,
    /// How the rows were made of reviews.
    preparation: Settings,
    recipe: Recipe,
    position: Position,
    optimizer_steps: u64,
    has_best: bool,
}

/// A folder of checkpoints.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// Those in `folder`, which need not exist yet; the newest `keep` of them stay.
    pub fn new(folder: PathBuf, keep: usize) -> Self {
        Self { folder, keep: keep.max(1) }
    }

    /// The folder that they are in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Saves a training. Its checkpoint is durable when this returns.
    pub fn save(&self, recipe: &Recipe, rows: &Rows, training: &Training) -> Result<()> {
        let name = format!("step-{:09}", training.position.steps);
        let folder = self.folder.join(&name);
        if !folder.exists() {
            write(&folder, recipe, rows, training)?;
        }
        self.name_latest(&name)?;
        self.forget_old()
    }

    /// The newest checkpoint that is whole; what is wrong with newer ones is told to `on_damage`. `None` where there
    /// is no checkpoint at all.
    pub fn newest(&self, mut on_damage: impl FnMut(&Error)) -> Result<Option<PathBuf>> {
        let mut last_error = None;
        for folder in self.all()?.into_iter().rev() {
            match verify(&folder) {
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

    /// From the oldest to the newest.
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
        let mut temporary = tempfile::NamedTempFile::new_in(&self.folder).map_err(failed)?;
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

fn write(folder: &Path, recipe: &Recipe, rows: &Rows, training: &Training) -> Result<()> {
    let parameters = training.model.parameters();
    let document = Document {
        version: VERSION,
        sentimill: env!("CARGO_PKG_VERSION").to_owned(),
        preparation: rows.settings().rows.clone(),
        recipe: recipe.clone(),
        position: training.position.clone(),
        optimizer_steps: training.optimizer.steps(),
        has_best: training.best.is_some(),
    };
    let mut json = serde_json::to_vec_pretty(&document).map_err(|error| Error::internal(&error))?;
    json.push(b'\n');
    let words = saved::lines(&rows.vocabulary().words)?;
    let remembered = training.optimizer.tensors();

    let mut unfinished = Unfinished::begin(folder, Existing::Refuse)?;
    unfinished.put(MODEL, |path| parameters.write(path))?;
    unfinished.put(OPTIMIZER, |path| {
        write_tensors(&training.optimizer.names(parameters.names()), &remembered, path)
    })?;
    if let Some(best) = &training.best {
        unfinished.put(BEST, |path| write_tensors(parameters.names(), best, path))?;
    }
    unfinished.put(TRAINING, |path| fs::write(path, &json))?;
    unfinished.put(VOCABULARY, |path| fs::write(path, &words))?;
    Ok(unfinished.finish()?)
}

/// Puts a checkpoint's content in the place of a new training's. Rank 0 reads it, at a path that only it needs to
/// see. Errors: a file that is not what its digest says; a recipe or a vocabulary that is not this training's.
pub fn restore(
    folder: &Path,
    recipe: &Recipe,
    rows: &Rows,
    training: &mut Training,
    ranks: &Ranks,
) -> Result<()> {
    let document = ranks.told(|| read(folder, recipe, rows, training))?;
    if document.has_best && training.best.is_none() {
        training.best = Some(training.model.parameters().copies());
    }
    training.position = document.position;
    ranks.broadcast(training.model.parameters().tensors())?;
    let remembered = training.optimizer.tensors();
    ranks.broadcast(&remembered)?;
    training.optimizer.restore(document.optimizer_steps, &remembered)?;
    if let Some(best) = &training.best {
        ranks.broadcast(best)?;
    }
    Ok(())
}

fn read(folder: &Path, recipe: &Recipe, rows: &Rows, training: &mut Training) -> Result<Document> {
    let listed = verify(folder)?;
    [TRAINING, VOCABULARY, OPTIMIZER, MODEL].into_iter().try_for_each(|name| listed.require(name))?;
    let document = read_document(&folder.join(TRAINING), recipe, rows)?;
    let path = folder.join(VOCABULARY);
    let expected = saved::lines(&rows.vocabulary().words)?;
    let words = read_bounded(&path, expected.len() as u64)?;
    if words != expected {
        return Err(Error::OtherTraining {
            path,
            what: "vocabulary".to_owned(),
            found: format!("{} words", words.iter().filter(|&&byte| byte == b'\n').count()),
            expected: format!("the {} words of the dataset", rows.vocabulary().words.len()),
        });
    }
    let parameters = training.model.parameters();
    let names = training.optimizer.names(parameters.names());
    let remembered = read_like(&names, &training.optimizer.tensors(), &folder.join(OPTIMIZER))?;
    training.best = match document.has_best {
        true => {
            listed.require(BEST)?;
            Some(read_like(parameters.names(), parameters.tensors(), &folder.join(BEST))?)
        }
        false => None,
    };
    training.model.parameters_mut().read(&folder.join(MODEL))?;
    training.optimizer.restore(document.optimizer_steps, &remembered)?;
    Ok(document)
}

/// Reads what stands beside the numbers, and holds it against the recipe.
fn read_document(path: &Path, recipe: &Recipe, rows: &Rows) -> Result<Document> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let unreadable = |found: String| Error::Unreadable { path: path.to_owned(), found };
    let json = read_bounded(path, TRAINING_BYTES_MAX)?;
    let Version { version } = serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    if version != VERSION {
        return Err(unreadable(format!("format version {version}, and {VERSION} is this program's")));
    }
    let document: Document = serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    if let Some(Difference { setting, ours, theirs }) = document.preparation.difference(&rows.settings().rows)
    {
        let what = setting.to_owned();
        return Err(Error::OtherTraining { path: path.to_owned(), what, found: ours, expected: theirs });
    }
    let written = serde_json::to_value(&document.recipe).map_err(|error| Error::internal(&error))?;
    if let Some((what, found, expected)) = differing(&written, recipe)? {
        return Err(Error::OtherTraining { path: path.to_owned(), what, found, expected });
    }
    let Document { position, optimizer_steps, has_best, .. } = &document;
    recipe
        .check(position, rows.census(Part::Training).rows)
        .map_err(|(name, found, expected)| unreadable(format!("{name} {found} where {expected} was due")))?;
    if *optimizer_steps != position.steps {
        return Err(unreadable(format!("{optimizer_steps} steps of the optimizer after {}", position.steps)));
    }
    if *has_best != position.best.is_some() {
        return Err(unreadable(format!("has_best {has_best} beside best {:?}", position.best)));
    }
    Ok(document)
}

/// The first setting in which a recipe that was written differs from another: its name, and both values.
pub(crate) fn differing(found: &Value, expected: &Recipe) -> Result<Option<(String, String, String)>> {
    // Both were text: a number that is read is not always, to the last bit, the one that was written.
    let text = serde_json::to_vec(expected).map_err(|error| Error::internal(&error))?;
    let expected: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|error| Error::internal(&error))?;
    let differing = expected.iter().find(|(name, value)| found.get(*name) != Some(value));
    Ok(differing.map(|(name, value)| {
        let found = found.get(name).map_or_else(|| "missing".to_owned(), ToString::to_string);
        (name.clone(), found, value.to_string())
    }))
}

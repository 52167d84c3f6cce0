//! The output path of a command. It is checked before anything is read, so that no computation is wasted.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use corpus::settings::{Difference, Settings};
use dataset::sha256;
use program::place::{check_folder, folder_of};

use crate::error::{Error, Result};
use crate::ranks::Ranks;
use runs::checkpoints::{Checkpoints, differing};
use runs::recipe::Recipe;
use runs::saved;
use runs::training::{
    CHECKPOINTS, EVALUATION, EvaluationRecord, FORMAT_VERSION, Hold, LOCK, METRICS, MODEL, PATIENCE,
    RunSettings, SCORES, SETTINGS, TENSORBOARD, put_json, write_scores,
};
use scoring::RowScore;

/// The files of a training folder.
const OF_A_TRAINING: [&str; 7] = [SETTINGS, METRICS, EVALUATION, SCORES, TENSORBOARD, MODEL, CHECKPOINTS];

/// The training folder.
pub struct Out {
    folder: PathBuf,
    checkpoints: Checkpoints,
    /// The lock, on rank 0.
    _hold: Option<Hold>,
}

impl Out {
    /// Locks the folder on rank 0. The folder must be free or, if `resumes`, that of a training. The newest `keep`
    /// checkpoints are kept.
    pub fn take(folder: &Path, keep: usize, resumes: bool, ranks: &Ranks) -> Result<Self> {
        let mut hold = None;
        ranks.told(|| {
            check_place(folder)?;
            hold = Some(Hold::take(folder, PATIENCE)?);
            check_occupant(folder, resumes)
        })?;
        let checkpoints = Checkpoints::new(folder.join(CHECKPOINTS), keep);
        Ok(Self { folder: folder.to_owned(), checkpoints, _hold: hold })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The checkpoints.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// The model.
    pub fn model(&self) -> PathBuf {
        self.folder.join(MODEL)
    }

    /// Whether the training is complete. Errors: the existing training has another recipe.
    pub fn is_complete(&self, recipe: &Recipe, preparation: &Settings) -> Result<bool> {
        let is_complete = self.model().is_dir();
        let path = self.folder.join(SETTINGS);
        let json = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(is_complete),
            read => read.map_err(|source| Error::io(&path, source))?,
        };
        let settings: RunSettings = serde_json::from_slice(&json).map_err(|error| Error::Weights {
            path: path.clone(),
            found: error.to_string(),
            expected: "the settings of a training; choose another --out".to_owned(),
        })?;
        // The recipe of an older folder has other names. Its checkpoints contain their own version.
        if settings.version < FORMAT_VERSION {
            return Ok(is_complete);
        }
        let other_rows = settings.preparation.and_then(|there| there.difference(preparation));
        let difference = match other_rows {
            Some(Difference { setting, ours, theirs }) => Some((setting.to_owned(), ours, theirs)),
            None => differing(&settings.recipe, recipe)?,
        };
        let Some((what, found, expected)) = difference else {
            return Ok(is_complete);
        };
        if is_complete {
            let (path, model) = (self.folder.clone(), self.model());
            return Err(Error::Finished { path, what, found, expected, model });
        }
        Err(runs::Error::OtherTraining { path, what, found, expected }.into())
    }

    /// Writes the scores first, because the record contains their digest.
    pub fn keep_evaluation(&self, mut record: EvaluationRecord, scores: &[RowScore]) -> Result<()> {
        let path = self.folder.join(SCORES);
        write_scores(&path, scores)?;
        record.scores_sha256 = sha256::of_file(&path).map_err(|source| Error::io(&path, source))?;
        Ok(put_json(&self.folder.join(EVALUATION), &record)?)
    }
}

/// Refuses a path whose parent folder does not exist: only the last folder is created.
pub fn check_place(out: &Path) -> Result<()> {
    Ok(check_folder(folder_of(out), "--out")?)
}

/// Refuses a folder with files that a training would be mixed with.
fn check_occupant(folder: &Path, resumes: bool) -> Result<()> {
    let names = names(folder).map_err(|source| Error::io(folder, source))?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let is_training = OF_A_TRAINING.into_iter().any(has);
    let Some(first) = names.first() else { return Ok(()) };
    let refused = |found: &str, remedy: &str| {
        let (found, remedy) = (found.to_owned(), remedy.to_owned());
        Err(runs::Error::Occupied {
            path: folder.to_owned(),
            found,
            expected: "a free name or an empty folder",
            remedy,
        }
        .into())
    };
    if is_training && !resumes {
        return refused("a training", "go on with it by --resume, or choose another --out");
    }
    if saved::is_listed(folder) {
        return refused(
            "a saved model",
            "choose another --out; --init-from begins a training with its weights",
        );
    }
    if is_training { Ok(()) } else { refused(&first.clone(), "choose another --out") }
}

/// The files of a folder, without the lock, logs of `launch`, and hidden files such as those of an interrupted write.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_log = name.starts_with("rank-") && name.ends_with(".log");
        if name != LOCK && !is_log && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

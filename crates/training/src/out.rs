//! The folder or file that a command writes. It is checked before any input is read, so that a computation does
//! not fail at its end.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use corpus::settings::{Difference, Settings};
use durable::sha256;
use program::bounded;
use program::exit::{Exit, Failed};
use program::location::Location;
use program::place::{check_folder, folder_of};
use reading::unpacked;
use runs::checkpoints::{Checkpoints, differing};
use runs::recipe::Recipe;
use runs::saved;
use runs::training::{
    self, CHECKPOINTS, EVALUATION, EvaluationRecord, FORMAT_VERSION, Hold, LOCK_WAIT, MODEL, RunSettings,
    SCORES, SETTINGS, SETTINGS_BYTES_MAX, put_json, write_scores,
};
use scoring::Scores;
use store::S3Options;

use crate::error::{Error, Result};
use crate::remote::{Expected, Remote};

/// What happens to an existing training in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is refused.
    Refuse,
    /// It is resumed: `--resume`.
    Resume,
    /// It is replaced: `--force`.
    Replace,
}

impl Existing {
    /// What --resume and --force say.
    pub fn of_flags(is_resumed: bool, is_forced: bool) -> Self {
        match (is_resumed, is_forced) {
            (true, _) => Self::Resume,
            (false, true) => Self::Replace,
            (false, false) => Self::Refuse,
        }
    }
}

/// The training folder.
pub struct Out {
    folder: PathBuf,
    /// The path or URL that was passed, for messages.
    shown: PathBuf,
    checkpoints: Checkpoints,
    existing: Existing,
    /// The training in S3, if it is there; only on rank 0. It is released before the lock.
    remote: Option<Remote>,
    /// The lock; only on rank 0.
    hold: OnceLock<Hold>,
}

/// Returns the default of `--out`: the input's file name with another extension, in the current folder.
pub fn default_of(input: &Location, extension: &str) -> Location {
    let name = match input {
        Location::Local(path) => path.as_path(),
        Location::S3(url) => Path::new(url.file_name()),
    };
    default_of_path(name, extension).into()
}

/// Returns the default as [`default_of`] does.
pub fn default_of_path(input: &Path, extension: &str) -> PathBuf {
    let plain = unpacked(input);
    let stem = plain.as_deref().unwrap_or(input).file_stem().unwrap_or_default().to_string_lossy();
    // A folder with the name of a pattern would be deleted or read together with those that match it.
    let is_name = !stem.is_empty() && !stem.contains(['*', '?', '[']);
    let stem = if is_name { stem } else { "training".into() };
    PathBuf::from(format!("{stem}.{extension}"))
}

impl Out {
    /// Locks the folder or claims the prefix. It must be new, empty or, as `existing` allows, a training. The newest `keep`
    /// checkpoints are kept.
    pub fn take(place: &Location, s3: &S3Options, keep: usize, existing: Existing) -> Result<Self> {
        match place {
            Location::Local(folder) => {
                check_place(folder)?;
                let hold = Hold::take(folder, LOCK_WAIT)?;
                let existing = check_occupant(folder, existing)?;
                Ok(Self { hold: hold.into(), ..Self::of(folder.clone(), place, keep, existing) })
            }
            Location::S3(url) => {
                let expected = match existing {
                    Existing::Resume => Expected::Training,
                    Existing::Refuse | Existing::Replace => Expected::Nothing,
                };
                let (remote, hold) = Remote::take(url, s3, keep, expected)?;
                let folder = remote.folder().to_owned();
                let out = Self::of(folder, place, keep, existing);
                Ok(Self { remote: Some(remote), hold: hold.into(), ..out })
            }
        }
    }

    /// The folder that another rank has locked.
    pub fn of(folder: PathBuf, place: &Location, keep: usize, existing: Existing) -> Self {
        let shown = match place {
            Location::Local(folder) => folder.clone(),
            Location::S3(url) => url.to_string().into(),
        };
        let checkpoints = Checkpoints::new(folder.join(CHECKPOINTS), keep);
        Self { folder, shown, checkpoints, existing, remote: None, hold: OnceLock::new() }
    }

    /// Locks the folder in place of a lost rank 0, unless this rank has locked it. Waits until that rank's process has ended.
    /// Errors: the training is on another machine.
    pub fn inherit(&self) -> Result<()> {
        if self.hold.get().is_none() {
            let settings = self.folder.join(SETTINGS);
            if !settings.is_file() {
                let message = format!(
                    "{}: missing, expected the training that rank 0 wrote: its machine's ranks are lost; start again with \
                     --resume there",
                    settings.display()
                );
                return Err(Failed::new(Exit::TryAgain, message).into());
            }
            let hold = Hold::take(&self.folder, LOCK_WAIT)?;
            // Nobody else sets it.
            let _ = self.hold.set(hold);
        }
        Ok(())
    }

    /// Whether another rank can take the place of rank 0, which alone writes to S3.
    pub fn is_inheritable(&self) -> bool {
        self.shown == self.folder
    }

    /// The local folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the training is in S3.
    pub fn is_in_s3(&self) -> bool {
        self.remote.is_some()
    }

    /// The path or URL of the training, for messages.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Puts a checkpoint into S3, if the training is there, while the training continues. Only on rank 0.
    pub fn checkpoint_saved(&self, checkpoint: &Path) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), |remote| remote.queue(checkpoint))
    }

    /// Waits until the last checkpoint is in S3, if the training is there.
    pub fn checkpoints_saved(&self) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), Remote::finish_checkpoints)
    }

    /// Puts the model into S3, if the training is there.
    pub fn model_saved(&self) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), Remote::finish)
    }

    /// Deletes the checkpoints in S3, if the training is there.
    pub fn forget_checkpoints(&self) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), Remote::forget_checkpoints)
    }

    /// What happens to an existing training in the folder.
    pub fn existing(&self) -> Existing {
        self.existing
    }

    /// The checkpoints.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// The model.
    pub fn model(&self) -> PathBuf {
        self.folder.join(MODEL)
    }

    /// Deletes the training that is replaced, if any. Called on rank 0, before the first file is written.
    pub fn clear(&self) -> Result<()> {
        match self.existing {
            Existing::Replace => Ok(training::clear(&self.folder)?),
            Existing::Refuse | Existing::Resume => Ok(()),
        }
    }

    /// The settings of the training in the folder; `None` if they are not written yet.
    pub fn settings(&self) -> Result<Option<RunSettings>> {
        read_settings(&self.folder, "the settings of a training; choose another --out")
    }

    /// Returns whether the training is complete. Errors: the existing training has other settings.
    pub fn is_complete(&self, recipe: &Recipe, preparation: &Settings) -> Result<bool> {
        if self.existing == Existing::Replace {
            return Ok(false);
        }
        let is_complete = self.model().is_dir();
        let Some(settings) = self.settings()? else { return Ok(is_complete) };
        // In folders of older versions, the settings of the recipe have other names. Checkpoints contain
        // their own version.
        if settings.version < FORMAT_VERSION {
            return Ok(is_complete);
        }
        let path = self.shown.join(SETTINGS);
        let other_rows = settings.preparation.and_then(|there| there.difference(preparation));
        let difference = match other_rows {
            Some(Difference { setting, ours, theirs }) => Some((setting.to_owned(), ours, theirs)),
            None => differing(&settings.recipe, recipe)?,
        };
        let Some((what, found, expected)) = difference else {
            return Ok(is_complete);
        };
        if is_complete {
            let message = format!(
                "{}: found a complete training with {what} {found}, expected {expected}; choose another --out, and start \
                 from its weights with --init-from {}",
                path.display(),
                self.shown.join(MODEL).display()
            );
            return Err(Failed::new(Exit::Settings, message).into());
        }
        Err(runs::Error::other_training(&path, &what, &found, &expected).into())
    }

    /// Writes the scores, then the record that contains their SHA-256.
    pub fn keep_evaluation(&self, mut record: EvaluationRecord, scores: &Scores) -> Result<()> {
        let path = self.folder.join(SCORES);
        write_scores(&path, scores)?;
        record.scores_sha256 = sha256::of_file(&path).map_err(|source| Error::io(&path, source))?;
        Ok(put_json(&self.folder.join(EVALUATION), &record)?)
    }
}

/// The settings of the training in a folder, if there are any. `expected` completes the message about invalid ones.
pub fn read_settings(folder: &Path, expected: &str) -> Result<Option<RunSettings>> {
    let path = folder.join(SETTINGS);
    let json = match bounded::read(&path, SETTINGS_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|source| Error::io(&path, source))?,
    };
    serde_json::from_slice(&json)
        .map(Some)
        .map_err(|error| Error::unexpected(path.display(), error, expected))
}

/// Refuses an output in a folder that does not exist: only the last folder of a path is created.
pub fn check_place(out: &Path) -> Result<()> {
    Ok(check_folder(folder_of(out), "--out")?)
}

/// Refuses `--force` after a restart by torchrun, where it would delete the checkpoints of this training.
pub fn check_restarts(out: &Path, restarts: usize) -> Result<()> {
    if restarts == 0 {
        return Ok(());
    }
    let expected = "--resume, because --force deletes its checkpoints";
    let remedy = "nothing was changed; pass --resume in place of --force";
    Err(runs::Error::occupied(out, "a training that torchrun restarted with --force", expected, remedy)
        .into())
}

/// Refuses `--force` where it would delete the initial weights, which are those of this flag.
pub fn check_force(out: &Path, flag: &str, weights: Option<&Location>) -> Result<()> {
    let is_within = |weights: &Location| match weights {
        Location::Local(path) => {
            path.canonicalize().is_ok_and(|path| out.canonicalize().is_ok_and(|out| path.starts_with(out)))
        }
        Location::S3(_) => false,
    };
    if weights.is_some_and(is_within) {
        let found = format!("the weights of {flag}, which --force would delete");
        let remedy = "nothing was changed; choose another --out";
        return Err(runs::Error::occupied(out, &found, "them in another folder", remedy).into());
    }
    Ok(())
}

/// Refuses a folder with other content than `existing` allows. Returns what happens to the content: a training that ended
/// before it trained is replaced in place of refused.
fn check_occupant(folder: &Path, existing: Existing) -> Result<Existing> {
    if existing == Existing::Replace {
        training::check_replaceable(folder)?;
        return Ok(existing);
    }
    let names = training::names(folder)?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let is_training = training::NAMES.into_iter().any(has);
    let Some(first) = names.first() else { return Ok(existing) };
    let refused = |found: &str, remedy: &str| {
        Err(runs::Error::occupied(folder, found, "a new name or an empty folder", remedy).into())
    };
    if is_training && existing == Existing::Refuse {
        if training::has_only_settings(folder)? {
            return Ok(Existing::Replace);
        }
        return refused(
            "a training",
            "resume it with --resume, replace it with --force, or choose another --out",
        );
    }
    if saved::is_listed(folder) {
        return refused(
            "a model folder",
            "choose another --out; --init-from starts a training with its weights",
        );
    }
    if is_training { Ok(existing) } else { refused(first, "choose another --out") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_default_output_has_the_name_of_the_input_in_the_current_folder() {
        for (input, expected) in [
            ("reviews.h5", "reviews.model"),
            ("data/reviews.h5", "reviews.model"),
            ("reviews", "reviews.model"),
            ("data/reviews.2024.h5", "reviews.2024.model"),
            ("..", "training.model"),
            ("data/*.gz", "training.model"),
        ] {
            let input = Location::from(PathBuf::from(input));
            assert_eq!(default_of(&input, "model"), Location::from(PathBuf::from(expected)), "{input}");
        }
        let url = Location::of_file("s3://bucket/data/reviews.h5".into()).unwrap();
        assert_eq!(default_of(&url, "model"), Location::from(PathBuf::from("reviews.model")));
    }
}

//! A training folder below a prefix in S3.
//!
//! ```text
//! s3://bucket/sentiment/
//!   claims/                           who trains: see `mirror`
//!   checkpoints/step-000000400/       as in a local training folder; its SHA256SUMS is put last
//!   checkpoints/step-000000400/log/   settings.json, metrics.jsonl and tensorboard/ at this step
//!   settings.json, metrics.jsonl, …   as in a local training folder, put after the last step
//!   SHA256SUMS                        digests of these files
//!   model/                            the model; its SHA256SUMS is the last object of all
//! ```
//!
//! Rank 0 trains in a local folder, which is in the cache, and puts each finished checkpoint from a second thread. A
//! checkpoint counts only with its `SHA256SUMS`. So a process that is killed between two requests leaves objects that
//! are ignored, and replaced when the training reaches this step again. Nothing that is complete is replaced.

mod folds;
mod layout;
mod new;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use program::exit::Failed;
use program::location::S3Url;
use runs::checkpoints::Checkpoints;
use runs::training::{CHECKPOINTS, Hold, LOCK, LOCK_WAIT, MODEL};
use store::mirror::{self, Claim, Leftovers, SUMS, Upload, Uploads, persistently};
use store::{Key, S3Options, Store};

pub use self::folds::{FoldsPrefix, folds_below};
use self::layout::{LATEST, PrefixListing, Staged};
pub use self::new::{NewFolder, NewObject};
use crate::error::{Error, Result};
use crate::tell::tell;

/// The claim of this machine's last process, in the local folder.
const CLAIM: &str = ".claim";

/// What may exist below the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Nothing,
    /// A training, which is resumed, or nothing.
    Training,
}

/// A training in S3, while this process writes it.
pub struct Remote {
    store: Store,
    /// The local folder.
    folder: PathBuf,
    keep: usize,
    /// `None` if the training in S3 is complete.
    claim: Option<Claim>,
    uploads: Uploads,
}

impl Remote {
    /// Claims a prefix and makes the local folder, with the newest checkpoint and the logs from S3.
    pub fn take(url: &S3Url, s3: &S3Options, keep: usize, expected: Expected) -> Result<(Self, Hold)> {
        let store = Store::open_with(&url.to_string(), s3)?;
        store.probe()?;
        let content = PrefixListing::of(&store)?;
        let (claim, folder, hold) = match expected {
            Expected::Nothing => {
                content.check_unused(&store)?;
                let claim = Claim::first(&store)?;
                let (folder, hold) = hold(url, claim.training())?;
                (Some(claim), folder, hold)
            }
            Expected::Training => {
                content.check_training(&store)?;
                claim_again(url, &store)?
            }
        };
        if let Some(claim) = &claim {
            let path = folder.join(CLAIM);
            fs::write(&path, claim.claim()).map_err(|source| Error::io(&path, source))?;
        }
        let on_failure = |error: &mirror::MirrorError| {
            tell(&format!("warning: a checkpoint is not in S3 yet, and the training continues: {error}"));
        };
        // Another process may have put checkpoints, or the model, while this one waited.
        let content = PrefixListing::of(&store)?;
        let uploads = Uploads::start(on_failure).map_err(|source| Error::io(&folder, source))?;
        let remote = Self { store, folder, keep, claim, uploads };
        remote.fetch_newest(&content)?;
        Ok((remote, hold))
    }

    /// The local folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts a finished checkpoint, on another thread. Errors: another process has resumed the training.
    pub fn queue(&self, checkpoint: &Path) -> Result<()> {
        let Some(claim) = &self.claim else { return Ok(()) };
        if self.uploads.is_taken() {
            claim.check()?;
        }
        let staged = Staged::checkpoint(&self.folder, checkpoint)?;
        let (store, keep, check) = (self.store.clone(), self.keep, claim.checker());
        let upload: Upload = Box::new(move || {
            persistently(|| mirror::put(&store, staged.bundle(), Leftovers::Replace, &check))?;
            layout::forget_old(&store, keep.max(1))
        });
        self.uploads.queue(upload);
        Ok(())
    }

    /// Waits until the last checkpoint is in S3.
    pub fn finish_checkpoints(&self) -> Result<()> {
        self.uploads.finish().map_err(|error| self.not_stored(error))
    }

    /// Puts the logs, the evaluation and the model, and empties the local folder, which is deleted with its lock.
    pub fn finish(&self) -> Result<()> {
        if let Some(claim) = &self.claim {
            // A failure was reported, and the model makes checkpoints superfluous.
            let _ = self.uploads.finish();
            let staged = Staged::finished(&self.folder)?;
            persistently(|| mirror::put(&self.store, staged.bundle(), Leftovers::Replace, || claim.check()))
                .map_err(|error| self.not_stored(error))?;
        }
        self.empty_folder().map_err(|source| Error::io(&self.folder, source))
    }

    /// Deletes all but the lock, for which another process may wait.
    fn empty_folder(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false if entry.file_name() == LOCK => {}
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// Deletes the checkpoints of a complete training.
    pub fn forget_checkpoints(&self) -> Result<()> {
        Ok(layout::forget_old(&self.store, 0)?)
    }

    fn not_stored(&self, found: mirror::MirrorError) -> Error {
        match found {
            taken @ mirror::MirrorError::Taken { .. } => taken.into(),
            found => {
                let message = format!(
                    "{found}; {} has all files of the training: repeat the command with --resume on this machine",
                    self.folder.display()
                );
                Failed::new(found.exit(), message).into()
            }
        }
    }

    /// Fetches the files with which a training resumes here, unless the local folder is newer.
    fn fetch_newest(&self, content: &PrefixListing) -> Result<()> {
        if content.is_complete() {
            return fetch_finished(&self.store, content, &self.folder);
        }
        let checkpoints = Checkpoints::new(self.folder.join(CHECKPOINTS), self.keep);
        let local = checkpoints.newest(|_| ()).ok().flatten();
        let local = local.and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
        let mut damaged = None;
        for name in content.checkpoints().rev() {
            if local.as_deref() >= Some(name) {
                return Ok(());
            }
            match self.fetch_checkpoint(name) {
                Ok(()) => return layout::fetch_log(&self.store, name, &self.folder),
                Err(error @ (mirror::MirrorError::Damaged { .. } | mirror::MirrorError::BadList { .. })) => {
                    tell(&format!("skipped a damaged checkpoint: {error}"));
                    damaged = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match damaged {
            Some(error) if local.is_none() => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn fetch_checkpoint(&self, name: &str) -> mirror::Result<()> {
        let path = self.folder.join(CHECKPOINTS).join(name);
        mirror::fetch_whole(&self.store, &format!("{CHECKPOINTS}/{name}/"), &path)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let Some(claim) = &self.claim else { return };
        // A claim that is not released expires.
        let is_unused = PrefixListing::of(&self.store).is_ok_and(|content| content.has_only_first_claim());
        if is_unused && claim.withdraw().is_ok() {
            let _ = fs::remove_file(self.folder.join(CLAIM));
        } else {
            let _ = claim.release();
        }
    }
}

/// Fetches the files that a report needs into an empty folder: those of a finished training, or those at the newest
/// checkpoint of another one.
pub fn fetch_for_report(url: &S3Url, s3: &S3Options, folder: &Path) -> Result<()> {
    let store = Store::open_with(&url.to_string(), s3)?;
    let content = PrefixListing::of(&store)?;
    if content.is_complete() {
        return fetch_finished(&store, &content, folder);
    }
    let Some(name) = content.checkpoints().next_back() else {
        let found = content.described();
        let expected = "a training folder with a checkpoint".to_owned();
        return Err(Error::unexpected(url, found, expected));
    };
    layout::fetch_log(&store, name, folder)?;
    let latest = folder.join(CHECKPOINTS).join(LATEST);
    let written = fs::create_dir_all(folder.join(CHECKPOINTS)).and_then(|()| fs::write(&latest, name));
    written.map_err(|source| Error::io(&latest, source))
}

/// The model folder below a prefix, in the cache. `flag` is the argument that contained the URL.
pub fn fetch_model(url: &S3Url, s3: &S3Options, flag: &str) -> Result<PathBuf> {
    let store = Store::open_with(&url.to_string(), s3)?;
    let content = PrefixListing::of(&store)?;
    let prefix = content.model().ok_or_else(|| {
        Error::unexpected(
            url,
            format!("{flag} is {}", content.described()),
            "a model folder, or the folder of a finished training",
        )
    })?;
    Ok(mirror::fetch_cached(&store, prefix, &store::cache_folder()?)?)
}

/// A checkpoint below a prefix, in the cache.
pub fn fetch_checkpoint(url: &S3Url, s3: &S3Options) -> Result<PathBuf> {
    let store = Store::open_with(&url.to_string(), s3)?;
    Ok(mirror::fetch_cached(&store, "", &store::cache_folder()?)?)
}

fn claim_again(url: &S3Url, store: &Store) -> Result<(Option<Claim>, PathBuf, Hold)> {
    let Some(standing) = mirror::standing(store)? else {
        // A folder that was copied to S3.
        let claim = Claim::first(store)?;
        let (folder, hold) = hold(url, claim.training())?;
        return Ok((Some(claim), folder, hold));
    };
    let (folder, hold) = hold(url, standing.training())?;
    if PrefixListing::of(store)?.is_complete() {
        return Ok((None, folder, hold));
    }
    // Another process of this machine may have ended while this one waited for the folder.
    let standing = mirror::standing(store)?.unwrap_or(standing);
    // This process holds the folder, so a process of this machine that made the claim has ended.
    let is_own = fs::read_to_string(folder.join(CLAIM)).is_ok_and(|claim| claim == standing.claim());
    if !is_own && !standing.is_released() {
        tell(&format!(
            "{url}: {} has not released it; waiting {} s for a heartbeat",
            standing.holder(),
            mirror::DEAD_AFTER.as_secs()
        ));
        standing.wait_until_dead(store)?;
    }
    let claim = Claim::after(store, &standing)?;
    if PrefixListing::of(store)?.is_complete() {
        claim.withdraw()?;
        return Ok((None, folder, hold));
    }
    Ok((Some(claim), folder, hold))
}

/// Makes and locks the local folder of a training. Its name is unique, because the training's is.
fn hold(url: &S3Url, training: &str) -> Result<(PathBuf, Hold)> {
    let usual = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = url.file_name().chars().map(usual).collect();
    let trainings = store::cache_folder()?.join("trainings");
    fs::create_dir_all(&trainings).map_err(|source| Error::io(&trainings, source))?;
    let folder = trainings.join(format!("{name}-{training}"));
    let hold = Hold::take(&folder, LOCK_WAIT).map_err(|error| match error {
        runs::Error::Held { holder, .. } => runs::Error::Held { path: url.to_string().into(), holder },
        other => other,
    })?;
    Ok((folder, hold.on_a_copy()))
}

/// Fetches the logs of a finished training, and of its model only the list of digests.
fn fetch_finished(store: &Store, content: &PrefixListing, folder: &Path) -> Result<()> {
    if content.has(SUMS) {
        mirror::fetch(store, "", folder)?;
    } else {
        content.fetch_logs(store, folder)?;
    }
    mirror::fetch_named(store, &Key::new(&format!("{MODEL}/{SUMS}"))?, &folder.join(MODEL).join(SUMS))?;
    Ok(())
}

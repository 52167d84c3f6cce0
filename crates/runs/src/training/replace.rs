//! Replaces the training in a folder. Only a training of these programs is replaced, and only if its files are
//! unchanged and there are no others.

use std::fs;
use std::path::Path;

use durable::delete_together;
use durable::sums::Sums;

use super::{
    CHECKPOINTS, EVALUATION, EvaluationRecord, LOCK, METRICS, MODEL, NGRAMS, RunSettings, SCORES, SETTINGS,
    TENSORBOARD, TopNgrams, read_json,
};
use crate::error::{Error, Result};

/// Names in a training folder. They are deleted in this order. The settings are last, so that a partially deleted
/// folder is still recognized as a training folder.
pub const NAMES: [&str; 8] = [MODEL, CHECKPOINTS, EVALUATION, SCORES, METRICS, NGRAMS, TENSORBOARD, SETTINGS];

/// Names in a folder, without the lock, the logs of `launch`, and hidden files, which an interrupted write leaves.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = all_names(folder)?;
    names.retain(|name| {
        let is_log = name.starts_with("rank-") && name.ends_with(".log");
        name != LOCK && !is_log && !name.starts_with('.')
    });
    Ok(names)
}

/// Refuses to replace a folder that is neither empty nor a training folder with unchanged files and no others.
pub fn check_replaceable(folder: &Path) -> Result<()> {
    let names = names(folder)?;
    if names.is_empty() {
        return Ok(());
    }
    let refused = |found: String| {
        let expected = "a training folder with unchanged files, which --force replaces";
        let remedy = "nothing was changed; move the folder away, or choose another --out";
        Err(Error::occupied(folder, &found, expected, remedy))
    };
    if let Some(other) = names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return refused(other.clone());
    }
    if read_json::<RunSettings>(&folder.join(SETTINGS)).is_none() {
        return refused(format!("no {SETTINGS} of a training"));
    }
    let mut folders = Vec::new();
    if folder.join(MODEL).exists() {
        folders.push(folder.join(MODEL));
    }
    if folder.join(CHECKPOINTS).exists() {
        for name in all_names(&folder.join(CHECKPOINTS))? {
            let is_temporary = name.starts_with('.');
            if name.starts_with("step-") {
                folders.push(folder.join(CHECKPOINTS).join(name));
            } else if name != "latest" && !is_temporary {
                return refused(format!("{CHECKPOINTS}/{name}"));
            }
        }
    }
    for listed in &folders {
        let changed = match Sums::verify(listed) {
            Err(error) => Some(error.to_string()),
            Ok(files) => files.unlisted()?.map(|name| listed.join(name).display().to_string()),
        };
        if let Some(changed) = changed {
            return refused(changed);
        }
    }
    if let Some(other) = all_names_if_any(&folder.join(TENSORBOARD))?
        .into_iter()
        .find(|name| !name.starts_with("events.out.tfevents"))
    {
        return refused(format!("{TENSORBOARD}/{other}"));
    }
    let evaluation = folder.join(EVALUATION);
    if evaluation.exists() && read_json::<EvaluationRecord>(&evaluation).is_none() {
        return refused(format!("no {EVALUATION} of a training"));
    }
    let ngrams = folder.join(NGRAMS);
    if ngrams.exists() && read_json::<TopNgrams>(&ngrams).is_none() {
        return refused(format!("no {NGRAMS} of a training"));
    }
    Ok(())
}

/// Whether a training has nothing to lose, because it ended before it trained: for example, by an error in its input.
pub fn has_only_settings(folder: &Path) -> Result<bool> {
    for name in names(folder)? {
        let path = folder.join(&name);
        let is_empty = match &*name {
            SETTINGS => read_json::<RunSettings>(&path).is_some(),
            METRICS => fs::metadata(&path).is_ok_and(|metrics| metrics.is_file() && metrics.len() == 0),
            CHECKPOINTS => path.is_dir() && all_names(&path)?.is_empty(),
            _ => false,
        };
        if !is_empty {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes the training in a folder.
pub fn clear(folder: &Path) -> Result<()> {
    Ok(delete_together(folder, &NAMES)?)
}

fn all_names_if_any(folder: &Path) -> Result<Vec<String>> {
    if folder.exists() { all_names(folder) } else { Ok(Vec::new()) }
}

fn all_names(folder: &Path) -> Result<Vec<String>> {
    let failed = |source| Error::io(folder, source);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

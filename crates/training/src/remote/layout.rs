//! Names below the prefix of a training, and the bundles in which they are put.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use program::temporary::{self, TemporaryFolder};
use runs::saved::CONFIG;
use runs::training::{CHECKPOINTS, EVALUATION, METRICS, MODEL, NAMES, NGRAMS, SCORES, SETTINGS, TENSORBOARD};
use store::mirror::{self, Bundle, SUMS, sums_of};
use store::{Key, Store};

use crate::error::{Error, Result};

/// Below a checkpoint: the logs at its step.
const LOG: &str = "log";
const CLAIMS: &str = "claims";
/// In a local folder of checkpoints: the name of the newest one.
pub(super) const LATEST: &str = "latest";

/// The names below a prefix.
pub(super) struct PrefixListing {
    keys: Vec<Key>,
}

impl PrefixListing {
    pub(super) fn of(store: &Store) -> Result<Self> {
        Ok(Self { keys: store.list("")?.into_iter().map(|listed| listed.key).collect() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.as_str() == name)
    }

    /// Whether the training is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.has(&format!("{MODEL}/{SUMS}")) && !self.has(CONFIG)
    }

    /// The prefix of the model's files, if there is a model.
    pub(super) fn model(&self) -> Option<&'static str> {
        match self.has(CONFIG) {
            true => Some(""),
            false => self.is_complete().then_some("model/"),
        }
    }

    /// The names of the complete checkpoints, from the oldest to the newest.
    pub(super) fn checkpoints(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.keys.iter().filter_map(|key| {
            let below = key.as_str().strip_prefix(CHECKPOINTS)?.strip_prefix('/')?;
            below.strip_suffix(SUMS)?.strip_suffix('/').filter(|name| is_step(name))
        })
    }

    /// Whether a process has claimed the prefix and put nothing.
    pub(super) fn has_only_first_claim(&self) -> bool {
        self.keys.iter().all(|key| key.as_str().starts_with("claims/000001"))
    }

    pub(super) fn check_unused(&self, store: &Store) -> Result<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let remedy = match self.is_training() {
            true => "resume it with --resume, or choose another --out",
            false => "choose another --out",
        };
        self.occupied(store, "an unused prefix", remedy)
    }

    pub(super) fn check_training(&self, store: &Store) -> Result<()> {
        if self.keys.is_empty() || self.is_training() {
            return Ok(());
        }
        self.occupied(store, "a training or an unused prefix", "choose another --out")
    }

    /// Refuses a prefix with a training or a complete folder.
    pub(super) fn check_new_folder(&self, store: &Store) -> Result<()> {
        let is_complete = self.has(SUMS) || self.is_training();
        if is_complete { self.occupied(store, "an unused prefix", "choose another --out") } else { Ok(()) }
    }

    /// What there is, for a message.
    pub(super) fn described(&self) -> String {
        match self.keys.first() {
            None => "missing: no object below it".to_owned(),
            Some(_) if self.has(CONFIG) => "a model folder".to_owned(),
            Some(_) if self.is_complete() => "a training".to_owned(),
            Some(_) if self.is_training() => "a training without a model".to_owned(),
            Some(first) => first.as_str().split('/').next().unwrap_or_default().to_owned(),
        }
    }

    /// Fetches the logs of a training that has no list of digests, because another program put it there.
    pub(super) fn fetch_logs(&self, store: &Store, folder: &Path) -> Result<()> {
        for name in [SETTINGS, METRICS, EVALUATION, SCORES, NGRAMS] {
            if self.has(name) {
                mirror::fetch_named(store, &Key::new(name)?, &folder.join(name))?;
            }
        }
        Ok(())
    }

    fn is_training(&self) -> bool {
        let first = |key: &Key| key.as_str().split('/').next().unwrap_or_default().to_owned();
        let names: Vec<String> = self.keys.iter().map(first).collect();
        !self.has(CONFIG) && names.iter().any(|name| name == CLAIMS || NAMES.contains(&name.as_str()))
    }

    fn occupied(&self, store: &Store, expected: &str, remedy: &str) -> Result<()> {
        let found = match self.is_training() {
            true => "a training".to_owned(),
            false => self.described(),
        };
        Err(runs::Error::occupied(store.url().as_ref(), &found, expected, remedy).into())
    }
}

/// A bundle, and the files that were made for it.
pub(super) struct Staged {
    bundle: Bundle,
    _files: TemporaryFolder,
}

impl Staged {
    /// The bundle. (A closure that named the field would not own the files.)
    pub(super) fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// A checkpoint with the logs at its step. The checkpoint's files are linked, because older checkpoints are
    /// deleted while they are put; the logs are copied, because they grow.
    pub(super) fn checkpoint(folder: &Path, checkpoint: &Path) -> Result<Self> {
        let staged = stage(folder)?;
        let name = checkpoint.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let linked = staged.path().join(&name);
        let failed = |source| Error::io(checkpoint, source);
        fs::create_dir(&linked).map_err(failed)?;
        for name in names_in(checkpoint).map_err(failed)? {
            link_or_copy(&checkpoint.join(&name), &linked.join(&name)).map_err(failed)?;
        }
        let log = staged.path().join(LOG);
        for name in logs(folder)? {
            let (from, to) = (folder.join(&name), log.join(&name));
            let parent = program::place::folder_of(&to);
            let copied = fs::create_dir_all(parent).and_then(|()| fs::copy(&from, &to));
            copied.map_err(|source| Error::io(&from, source))?;
        }
        write_sums(&log, &logs(&log)?)?;
        let mut bundle = self::folder(&linked, &format!("{CHECKPOINTS}/{name}/"))?;
        let log = self::folder(&log, &format!("{CHECKPOINTS}/{name}/{LOG}/"))?;
        bundle.files.extend(log.files);
        bundle.files.push(log.last);
        Ok(Self { bundle, _files: staged })
    }

    /// The logs, the evaluation and the model of a finished training.
    pub(super) fn finished(folder: &Path) -> Result<Self> {
        let staged = stage(folder)?;
        let mut names = logs(folder)?;
        let others = [EVALUATION, SCORES, NGRAMS].map(str::to_owned);
        names.extend(others.into_iter().filter(|name| folder.join(name).exists()));
        let mut files = Vec::new();
        for name in &names {
            files.push((Key::new(name)?, folder.join(name)));
        }
        let listed: Vec<_> = names.into_iter().map(|name| (name.clone(), folder.join(name))).collect();
        let sums = staged.path().join(SUMS);
        fs::write(&sums, sums_of(&listed)?).map_err(|source| Error::io(&sums, source))?;
        files.push((Key::new(SUMS)?, sums));
        let model = self::folder(&folder.join(MODEL), &format!("{MODEL}/"))?;
        files.extend(model.files);
        Ok(Self { bundle: Bundle { files, last: model.last }, _files: staged })
    }
}

/// All files of a folder and its subfolders, to be put below `prefix`; its list of digests is the last.
pub(super) fn folder(folder: &Path, prefix: &str) -> Result<Bundle> {
    let mut files = Vec::new();
    let mut last = None;
    for name in names_below(folder).map_err(|source| Error::io(folder, source))? {
        let file = (Key::new(&format!("{prefix}{name}"))?, folder.join(&name));
        if name == SUMS { last = Some(file) } else { files.push(file) }
    }
    let missing = || {
        Error::unexpected(
            folder.join(SUMS).display(),
            "no such file",
            "the digests of the files of a model or a checkpoint",
        )
    };
    Ok(Bundle { files, last: last.ok_or_else(missing)? })
}

/// Fetches the logs at a checkpoint into the training folder.
pub(super) fn fetch_log(store: &Store, checkpoint: &str, folder: &Path) -> Result<()> {
    mirror::fetch(store, &format!("{CHECKPOINTS}/{checkpoint}/{LOG}/"), folder)?;
    // The list is not a file of a training folder.
    let list = folder.join(SUMS);
    fs::remove_file(&list).map_err(|source| Error::io(&list, source))
}

/// Deletes all checkpoints except the newest `keep`, the object that makes each of them count first.
pub(super) fn forget_old(store: &Store, keep: usize) -> mirror::Result<()> {
    let keys: Vec<Key> =
        store.list(&format!("{CHECKPOINTS}/"))?.into_iter().map(|listed| listed.key).collect();
    let content = PrefixListing { keys };
    let complete: Vec<&str> = content.checkpoints().collect();
    let Some(n_old) = complete.len().checked_sub(keep) else { return Ok(()) };
    let oldest = complete.get(n_old);
    let step_of = |key: &Key| key.as_str().split('/').nth(1).unwrap_or_default().to_owned();
    let mut old: Vec<&Key> = content
        .keys
        .iter()
        .filter(|key| oldest.is_none_or(|oldest| step_of(key).as_str() < *oldest))
        .collect();
    let is_last = |key: &Key| key.as_str() == format!("{CHECKPOINTS}/{}/{SUMS}", step_of(key));
    old.sort_by_key(|key| !is_last(key));
    old.into_iter().try_for_each(|key| Ok(store.delete(key)?))
}

fn stage(folder: &Path) -> Result<TemporaryFolder> {
    temporary::folder_in(folder).map_err(|error| Error::io(folder, error.kind().into()))
}

/// The names of the logs in a training folder.
fn logs(folder: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = [SETTINGS, METRICS]
        .map(str::to_owned)
        .into_iter()
        .filter(|name| folder.join(name).exists())
        .collect();
    let tensorboard = folder.join(TENSORBOARD);
    match names_in(&tensorboard) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => {
            let found = found.map_err(|source| Error::io(&tensorboard, source))?;
            names.extend(found.into_iter().map(|name| format!("{TENSORBOARD}/{name}")));
        }
    }
    Ok(names)
}

fn write_sums(folder: &Path, names: &[String]) -> Result<()> {
    let files: Vec<_> = names.iter().map(|name| (name.clone(), folder.join(name))).collect();
    let path = folder.join(SUMS);
    fs::write(&path, sums_of(&files)?).map_err(|source| Error::io(&path, source))
}

/// Links a file; file systems without links get a copy.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}

fn is_step(name: &str) -> bool {
    name.strip_prefix("step-").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The names of the files below a folder, in order.
fn names_below(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in names_in(folder)? {
        match folder.join(&name).is_dir() {
            false => names.push(name),
            true => {
                let below = names_below(&folder.join(&name))?;
                names.extend(below.into_iter().map(|below| format!("{name}/{below}")));
            }
        }
    }
    Ok(names)
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

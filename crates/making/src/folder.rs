//! A dataset in a folder: its files are renamed when they are complete, and the manifest is written last.

use dataset::manifest::DatasetManifest;

use crate::beside::{Beside, Kind};
use crate::error::{Error, Result, at};
use crate::publish::{Finished, Places, Replaceable, same_file};

/// A complete file beside the dataset, and the existing file that it may replace.
pub(crate) struct Addition {
    pub(crate) file: Beside,
    pub(crate) finished: Finished,
    pub(crate) replaceable: Replaceable,
}

impl Places {
    /// Whether all files that a manifest lists exist with its digests, and the requested ones are among them.
    pub(crate) fn is_complete(
        &self,
        manifest: &DatasetManifest,
        requested: &[Beside],
        padded: Option<u64>,
    ) -> Result<bool> {
        same_file(&self.dataset, &manifest.sha256)?;
        for file in requested {
            let path = self.beside(&file.name);
            if !at(&path, "read its metadata", path.try_exists())? {
                return Ok(false);
            }
            match file.recorded(manifest) {
                Some(expected) if file.kind != Kind::Padded || manifest.padded == padded => {
                    same_file(&path, &expected)?;
                }
                // It is replaced by a description of all files.
                _ if file.kind == Kind::Croissant => return Ok(false),
                _ => {
                    let expected = match file.kind {
                        Kind::Padded => "a copy with this number of ids per row, or no file",
                        _ => "a file that the manifest lists, or no file",
                    };
                    let (found, expected) = ("another file".to_owned(), expected.to_owned());
                    return Err(Error::OtherFile { path, found, expected });
                }
            }
        }
        self.sync()?;
        Ok(true)
    }

    /// Renames the files and writes the manifest, unless the same files already have one. Returns the manifest of the
    /// dataset. The manifest is last: until then it names the files that may be replaced, so that a program that was
    /// killed between two of them can be run again. `old` are files of a replaced dataset.
    pub(crate) fn put(
        &self,
        dataset: Finished,
        old_dataset: &Replaceable,
        additions: Vec<Addition>,
        old: &[(Beside, Replaceable)],
        manifest: DatasetManifest,
    ) -> Result<DatasetManifest> {
        dataset.publish(&self.dataset, old_dataset)?;
        let is_new = |old: &Beside| additions.iter().all(|addition| addition.file.name != old.name);
        for (file, recorded) in old.iter().filter(|(file, _)| is_new(file)) {
            recorded.remove(&self.beside(&file.name))?;
        }
        for Addition { file, finished, replaceable } in additions {
            finished.publish(&self.beside(&file.name), &replaceable)?;
        }
        let manifest = self.with_known(manifest)?;
        // An existing manifest that differs only in the run's manifest is kept if it lists the same shards, or if this
        // dataset has none.
        let is_kept = self.read_manifest()?.is_some_and(|there| {
            let has_shards = there.seal.shards == manifest.seal.shards || manifest.seal.shards.is_empty();
            has_shards && DatasetManifest { seal: manifest.seal.clone(), ..there } == manifest
        });
        if is_kept {
            self.sync()?;
        } else {
            self.write_manifest(&manifest)?;
        }
        Ok(manifest)
    }

    /// Adds to a manifest what only the existing manifest of the same dataset contains.
    pub(crate) fn with_known(&self, manifest: DatasetManifest) -> Result<DatasetManifest> {
        let exists = |file: &Beside| self.beside(&file.name).exists();
        Ok(with_known(manifest, self.read_manifest()?, &self.name(), exists))
    }
}

/// Adds to a manifest what only the existing manifest `there` of the same dataset contains: counts, and files that
/// still exist.
pub(crate) fn with_known(
    mut manifest: DatasetManifest,
    there: Option<DatasetManifest>,
    dataset: &str,
    exists: impl Fn(&Beside) -> bool,
) -> DatasetManifest {
    let Some(there) = there.filter(|there| there.sha256 == manifest.sha256) else { return manifest };
    let is_of_sentimill = there.seal.shards.is_empty();
    if is_of_sentimill {
        // Merge made the same dataset as sentimill.
        let (known, ledger) = (&there.seal.ledger, &mut manifest.seal.ledger);
        if ledger.mapper.is_none() && ledger.reducer == known.reducer {
            ledger.mapper = known.mapper;
            ledger.tables.clone_from(&known.tables);
            ledger.input.clone_from(&known.input);
        }
    }
    if is_of_sentimill || there.seal.shards == manifest.seal.shards {
        let listed = Beside::listed(&there, dataset);
        let is_kept = |kind| listed.iter().any(|(file, _)| file.kind == kind && exists(file));
        if manifest.padded.is_none() && is_kept(Kind::Padded) {
            (manifest.padded, manifest.padded_sha256) = (there.padded, there.padded_sha256.clone());
        }
        if manifest.ids.is_none() && is_kept(Kind::Ids) {
            manifest.ids = there.ids.clone();
        }
        if manifest.texts.is_none() && is_kept(Kind::Texts) {
            manifest.texts = there.texts.clone();
        }
        if manifest.croissant.is_none() && is_kept(Kind::Croissant) {
            manifest.croissant = there.croissant.clone();
        }
    }
    manifest
}

//! A dataset in a folder: its files are renamed when they are complete, and the manifest is written last.

use dataset::manifest::DatasetManifest;

use crate::error::{Error, Result, at};
use crate::publish::{Finished, Places, Replaceable, same_file};

impl Places {
    /// Whether all files that a manifest lists exist with its digests, and the padded copy is among them if one is
    /// requested.
    pub(crate) fn is_complete(&self, manifest: &DatasetManifest, padded: Option<u64>) -> Result<bool> {
        same_file(&self.dataset, &manifest.sha256)?;
        if padded.is_some() {
            let path = &self.padded;
            if !at(path, "read its metadata", path.try_exists())? {
                return Ok(false);
            }
            match &manifest.padded_sha256 {
                Some(expected) if manifest.padded == padded => same_file(path, expected)?,
                _ => {
                    let (found, expected) =
                        ("another file", "a copy with this number of ids per row, or no file");
                    let (found, expected) = (found.to_owned(), expected.to_owned());
                    return Err(Error::OtherFile { path: path.clone(), found, expected });
                }
            }
        }
        self.sync()?;
        Ok(true)
    }

    /// Renames the files and writes the manifest, unless the same files already have one. Returns the manifest of the
    /// dataset. The manifest is last: until then it names the files that may be replaced, so that a program that was
    /// killed between two of them can be run again.
    pub(crate) fn put(
        &self,
        dataset: Finished,
        padded: Option<Finished>,
        [old_dataset, old_padded]: [Replaceable; 2],
        mut manifest: DatasetManifest,
    ) -> Result<DatasetManifest> {
        dataset.publish(&self.dataset, &old_dataset)?;
        match padded {
            Some(padded) => padded.publish(&self.padded, &old_padded)?,
            None => old_padded.remove(&self.padded)?,
        }
        let is_of_sentimill =
            |there: &DatasetManifest| there.sha256 == manifest.sha256 && there.seal.shards.is_empty();
        if let Some(there) = self.read_manifest()?.filter(is_of_sentimill) {
            // Merge made the same dataset as sentimill. What only sentimill's manifest contains is kept.
            let (known, ledger) = (there.seal.ledger, &mut manifest.seal.ledger);
            if ledger.mapper.is_none() && ledger.reducer == known.reducer {
                ledger.mapper = known.mapper;
            }
            if manifest.padded.is_none() && self.padded.exists() {
                (manifest.padded, manifest.padded_sha256) = (there.padded, there.padded_sha256);
            }
        }
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
}

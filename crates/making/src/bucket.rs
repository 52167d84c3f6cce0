//! A dataset in S3: its files are written in a temporary folder, and put when they are complete.
//!
//! No object is overwritten. The dataset is put first, then the files beside it, and the manifest last: a dataset is
//! complete when its manifest exists. A program that was killed between two puts can be run again; it compares the
//! objects that exist with its own files, and puts the others.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use dataset::DatasetSettings;
use dataset::commit::RECORD_BYTES_MAX;
use dataset::manifest::{DatasetManifest, manifest_name};
use durable::sha256;
use program::bars::ProgressBars;
use program::location::{Location, S3Url};
use program::temporary::{self, TemporaryFolder};
use program::threads::spawn;
use store::{Key, ObjectContent, Put, Recorded, S3Options, Store};

use crate::beside::{Beside, Kind};
use crate::error::{Result, at, other_object, temporary_failed};
use crate::folder::{Addition, with_known};
use crate::input_file::DatasetFile;
use crate::publish::Finished;
use crate::record::parsed_manifest;

/// Interval at which the progress of an upload is shown.
const TICK: Duration = Duration::from_millis(100);

/// The objects of one dataset.
#[derive(Debug)]
pub(crate) struct Bucket {
    url: S3Url,
    s3: S3Options,
    store: Store,
    dataset: Key,
    manifest: Key,
    /// Folder of the files until they are put.
    scratch: TemporaryFolder,
}

impl Bucket {
    /// Opens the folder of the dataset in S3, and makes one in `tmpdir`.
    pub(crate) fn open(url: &S3Url, s3: &S3Options, tmpdir: &Path) -> Result<Self> {
        let (store, dataset) = Store::of_object(url, s3)?;
        Ok(Self {
            manifest: Key::new(&manifest_name(url.file_name()))?,
            scratch: temporary::folder_in(tmpdir)
                .map_err(|error| temporary_failed(tmpdir, "create a temporary folder", &error))?,
            url: url.clone(),
            s3: s3.clone(),
            store,
            dataset,
        })
    }

    /// The path of the dataset before it is put.
    pub(crate) fn local(&self) -> PathBuf {
        self.scratch.path().join(self.dataset.as_str())
    }

    /// The URL, for messages.
    pub(crate) fn name(&self) -> PathBuf {
        self.url.to_string().into()
    }

    /// Checks that the store is reachable and that it does not overwrite objects.
    pub(crate) fn check(&self) -> Result<()> {
        Ok(self.store.probe()?)
    }

    pub(crate) fn read_manifest(&self) -> Result<Option<DatasetManifest>> {
        let Some(record) = self.store.get_small(&self.manifest, RECORD_BYTES_MAX)? else { return Ok(None) };
        parsed_manifest(&self.url_of(&self.manifest), &record).map(Some)
    }

    /// Returns the manifest of the existing dataset, if there is one. A dataset that can neither be this one nor
    /// become it is refused.
    pub(crate) fn look(&self, settings: &DatasetSettings) -> Result<Option<Box<DatasetManifest>>> {
        let manifest = self.read_manifest()?;
        match (manifest, self.store.head(&self.dataset)?) {
            (Some(manifest), Some(there)) if there.bytes == manifest.bytes => Ok(Some(Box::new(manifest))),
            (Some(manifest), Some(there)) => self.refused(
                &self.dataset,
                format!("an object of {} bytes", there.bytes),
                format!("the {} bytes in its manifest", manifest.bytes),
            ),
            (Some(manifest), None) if manifest.settings != *settings => self.refused(
                &self.manifest,
                "the manifest of a dataset with other settings",
                "one with these settings",
            ),
            (None, Some(_)) => {
                // A program was killed before it put the manifest. The new dataset will be compared with this object.
                let there = DatasetFile::of(&Location::S3(self.url.clone()), &self.s3)?;
                match there.open() {
                    Ok(dataset) if dataset.settings() == settings => Ok(None),
                    Ok(_) => self.refused(
                        &self.dataset,
                        "a dataset with other settings and without a manifest",
                        "one with these settings",
                    ),
                    Err(_) => {
                        self.refused(&self.dataset, "an object that is not a dataset", "this dataset or none")
                    }
                }
            }
            (_, None) => Ok(None),
        }
    }

    /// Whether all objects that a manifest lists exist with its digests, and the requested ones are among them.
    pub(crate) fn is_complete(
        &self,
        manifest: &DatasetManifest,
        requested: &[Beside],
        padded: Option<u64>,
    ) -> Result<bool> {
        self.check_same(&self.dataset, &manifest.sha256)?;
        self.check_listed(manifest, requested, padded)?;
        for file in requested {
            let key = Key::new(&file.name)?;
            let Some(sha256) = file.recorded(manifest) else { return Ok(false) };
            if self.store.head(&key)?.is_none() {
                return Ok(false);
            }
            self.check_same(&key, &sha256)?;
        }
        Ok(true)
    }

    /// Refuses an existing object that differs from the new file. Returns whether there is one that does not differ.
    pub(crate) fn check_before_put(&self, dataset: &Finished, additions: &[Addition]) -> Result<bool> {
        let mut is_there = false;
        for (key, file) in self.files(dataset, additions)? {
            if self.store.head(&key)?.is_some() {
                self.check_same(&key, &file.sha256)?;
                is_there = true;
            }
        }
        Ok(is_there)
    }

    fn files<'f>(
        &self,
        dataset: &'f Finished,
        additions: &'f [Addition],
    ) -> Result<Vec<(Key, &'f Finished)>> {
        let mut files = vec![(self.dataset.clone(), dataset)];
        for Addition { file, finished, .. } in additions {
            files.push((Key::new(&file.name)?, finished));
        }
        Ok(files)
    }

    /// Puts the files that do not exist yet, and the manifest last. Returns the manifest that the store has.
    pub(crate) fn put(
        &self,
        dataset: &Finished,
        additions: &[Addition],
        manifest: DatasetManifest,
        requested: (&[Beside], Option<u64>),
        progress: &ProgressBars,
        go_on: impl Fn() -> Result<()>,
    ) -> Result<DatasetManifest> {
        for (key, file) in self.files(dataset, additions)? {
            go_on()?;
            if self.store.head(&key)?.is_none() {
                self.put_file(&key, file, progress)?;
            }
        }
        go_on()?;
        self.put_manifest(manifest, requested, progress)
    }

    /// Adds to a manifest what only the existing manifest of the same dataset contains. Objects that it lists were
    /// put before it.
    pub(crate) fn with_known(&self, manifest: DatasetManifest) -> Result<DatasetManifest> {
        Ok(with_known(manifest, self.read_manifest()?, self.dataset.as_str(), |_| true))
    }

    fn put_file(&self, key: &Key, file: &Finished, progress: &ProgressBars) -> Result<()> {
        let bar = progress.storing(file.bytes);
        let before = self.store.progress().steps();
        let put = thread::scope(|scope| {
            let put = spawn(scope, || self.store.put_if_absent(key, ObjectContent::File(&file.file)));
            while !put.is_finished() {
                bar.set_position(self.store.progress().steps() - before);
                thread::sleep(TICK);
            }
            put.join()
        });
        bar.finish_and_clear();
        match put.unwrap_or_else(|panic| std::panic::resume_unwind(panic))? {
            Put::Stored(_) => Ok(()),
            // Another program put it first.
            Put::AlreadyThere => self.check_same(key, &file.sha256),
        }
    }

    fn put_manifest(
        &self,
        manifest: DatasetManifest,
        (requested, padded): (&[Beside], Option<u64>),
        progress: &ProgressBars,
    ) -> Result<DatasetManifest> {
        let mut json = serde_json::to_vec_pretty(&manifest).expect("a manifest of plain values is JSON");
        json.push(b'\n');
        let record = match self.store.put_record(&self.manifest, &json, RECORD_BYTES_MAX)? {
            Recorded::AsGiven => return Ok(manifest),
            Recorded::Other(record) => record,
        };
        let there = parsed_manifest(&self.url_of(&self.manifest), &record)?;
        let is_same = (&there.sha256, &there.settings, there.digests)
            == (&manifest.sha256, &manifest.settings, manifest.digests);
        if !is_same {
            return self.refused(
                &self.manifest,
                "the manifest of another dataset",
                "the manifest of this dataset",
            );
        }
        self.check_listed(&there, requested, padded)?;
        if there.seal != manifest.seal {
            progress.notice(&format!(
                "{}: already exists for the same dataset, made in another way; it is kept",
                self.url_of(&self.manifest)
            ));
        }
        Ok(there)
    }

    /// Refuses a manifest that does not list a requested file, since the manifest cannot be replaced.
    pub(crate) fn check_listed(
        &self,
        manifest: &DatasetManifest,
        requested: &[Beside],
        padded: Option<u64>,
    ) -> Result<()> {
        for file in requested {
            let is_listed = file.recorded(manifest).is_some();
            if is_listed && (file.kind != Kind::Padded || manifest.padded == padded) {
                continue;
            }
            let (found, expected) = match (file.kind, manifest.padded) {
                (Kind::Padded, found) => {
                    let found = match found {
                        Some(other) => {
                            format!("the manifest of a dataset with {other} ids per row of its padded copy")
                        }
                        None => "the manifest of a dataset without a padded copy".to_owned(),
                    };
                    (found, format!("a padded copy with {}", padded.unwrap_or_default()))
                }
                _ => {
                    let found = format!("the manifest of a dataset without {}", file.name);
                    (found, "one that lists it".to_owned())
                }
            };
            return self.refused(&self.manifest, found, expected);
        }
        Ok(())
    }

    /// Compares the content of an object with a digest.
    fn check_same(&self, key: &Key, sha256: &str) -> Result<()> {
        let copy = self.store.local_copy(key, self.scratch.path())?;
        let there = at(copy.path(), "read the existing object", sha256::of_file(copy.path()))?;
        if there == sha256 {
            return Ok(());
        }
        self.refused(
            key,
            format!("another file (sha256 {there:.8})"),
            format!("this dataset (sha256 {sha256:.8})"),
        )
    }

    fn refused<T>(&self, key: &Key, found: impl Into<String>, expected: impl Into<String>) -> Result<T> {
        Err(other_object(&self.url_of(key), &found.into(), &expected.into()))
    }

    fn url_of(&self, key: &Key) -> String {
        self.url.with_file_name(key.as_str()).to_string()
    }
}

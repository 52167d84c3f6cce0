//! Writes words and ordered rows into a dataset. The dataset gets its name only when it is complete. Its
//! manifest is in the same folder.
//!
//! Words and rows may come from the shards of a run or from the memory of one machine.

use std::path::PathBuf;

use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use dataset::Digests;
use dataset::card::Card;
use dataset::dataset_file::{DatasetReader, DatasetSettings, DatasetWriter, write_padded};
use dataset::manifest::{DatasetManifest, Seal};
use dataset::sha256;
use progress::ProgressBars;
use tempfile::TempPath;

use crate::bucket::Bucket;
use crate::card::verified;
use crate::content::{DatasetContent, Size};
use crate::error::{Error, Result, at};
use crate::ids::Ids;
use crate::input_file::{DatasetFile, check_cleaning, check_rows};
use crate::options::{DatasetOptions, Existing, VocabularyFrom};
use crate::output::Output;
use crate::publish::{Finished, OTHER_SHA256, Places, Replaceable, not_replaced};
use crate::vocabulary::{most_frequent, recounted};

/// Number of rows between two updates of a progress bar.
const ROWS_SHOWN: u64 = 1 << 10;

/// Why an existing file without a manifest is not replaced.
const NO_MANIFEST: &str = "no manifest in its folder lists it";

/// A dataset to be made, whose path and settings are fixed.
pub struct Making<'a> {
    options: &'a DatasetOptions,
    vocabulary: Option<DatasetReader>,
    without: Option<DatasetReader>,
    settings: DatasetSettings,
    /// The files; if the output is in S3, before they are put.
    places: Places,
    /// The objects, if the output is in S3.
    bucket: Option<Bucket>,
}

impl<'a> Making<'a> {
    /// Opens the other datasets on which this one depends.
    pub fn open(options: &'a DatasetOptions, rows: &Settings) -> Result<Self> {
        let open = |file: &DatasetFile| -> Result<DatasetReader> {
            let dataset = file.open()?;
            check_cleaning(&file.name, &dataset.settings().rows, rows)?;
            Ok(dataset)
        };
        let (vocabulary, vocabulary_size) = match &options.vocabulary {
            VocabularyFrom::Frequency(size) => (None, *size),
            VocabularyFrom::Dataset(file) => {
                let other = open(file)?;
                check_rows(&file.name, &other.settings().rows, rows)?;
                let size = other.vocabulary().words.len() as u64;
                (Some(other), size)
            }
        };
        let without = options.without.as_ref().map(open).transpose()?;
        let settings = DatasetSettings {
            rows: rows.clone(),
            vocabulary_size,
            vocabulary_of: vocabulary.as_ref().map(|dataset| dataset.digests().id_digest),
            without: without.as_ref().map(|dataset| dataset.digests().id_digest),
        };
        let (places, bucket) = match &options.out {
            Output::Folder(out) => (Places::of(out), None),
            Output::Bucket { url, s3, tmpdir } => {
                let bucket = Bucket::open(url, s3, tmpdir)?;
                (Places::of(&bucket.local()), Some(bucket))
            }
        };
        Ok(Self { options, vocabulary, without, settings, places, bucket })
    }

    /// Opens the other datasets and checks the output, before any work is done. An existing dataset with other settings
    /// is refused.
    pub fn ready(options: &'a DatasetOptions, rows: &Settings) -> Result<Self> {
        let making = Self::open(options, rows)?;
        if let Some(manifest) = making.look()? {
            making.check_settings(&manifest)?;
        }
        making.check_place()?;
        Ok(making)
    }

    /// The dataset whose texts are excluded.
    pub fn without(&self) -> Option<&DatasetReader> {
        self.without.as_ref()
    }

    /// Returns the manifest of the existing dataset, if there is one. An existing file without a manifest is
    /// refused before any work is done, unless it is a complete dataset with the same settings. With
    /// [`Existing::Replace`], a file that does not match its manifest is refused, too.
    pub fn look(&self) -> Result<Option<Box<DatasetManifest>>> {
        if let Some(bucket) = &self.bucket {
            return bucket.look(&self.settings);
        }
        // Read in any case, because a file with this name that is not a manifest must not be overwritten.
        let manifest = self.places.read_manifest()?;
        let there = match std::fs::metadata(&self.places.dataset) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            found => at(&self.places.dataset, "read its metadata", found)?,
        };
        if !there.is_file() {
            return self.refused("a folder or a special file", "a dataset or no file");
        }
        if let Some(manifest) = manifest {
            self.check_recorded(&manifest)?;
            return Ok(Some(Box::new(manifest)));
        }
        // A program was killed between writing the dataset and its manifest. The new dataset will be compared
        // with this file.
        match DatasetReader::open(&self.places.dataset) {
            Ok(dataset) if dataset.settings() == &self.settings => Ok(None),
            _ if self.options.existing == Existing::Replace => {
                Err(not_replaced(&self.places.dataset, NO_MANIFEST))
            }
            Ok(_) => self.refused("a dataset with other settings", "one with these settings"),
            Err(_) => self.refused("an incomplete dataset", "this dataset or no file"),
        }
    }

    /// Checks, before any work is done, that the dataset can be written to its path.
    pub fn check_place(&self) -> Result<()> {
        match &self.bucket {
            Some(bucket) => bucket.check(),
            None => self.places.check(self.options.padded.is_some()),
        }
    }

    /// Refuses a manifest of a dataset with other settings.
    pub fn check_settings(&self, manifest: &DatasetManifest) -> Result<()> {
        if manifest.settings == self.settings {
            return match (&self.bucket, self.options.padded) {
                (Some(bucket), Some(length)) => bucket.check_padded(manifest, length),
                _ => Ok(()),
            };
        }
        self.refused_unless_replaced("a dataset with other settings", "one with these settings")
    }

    /// Refuses an existing dataset that differs, unless it is to be replaced.
    pub fn refused_unless_replaced(&self, found: &str, expected: &str) -> Result<()> {
        match self.options.existing {
            Existing::Keep => self.refused(found, expected),
            Existing::Replace => Ok(()),
        }
    }

    /// With [`Existing::Replace`], checks that the existing files match their manifest. A dataset with the same
    /// settings is accepted here and compared later: a program may have written it and may have been killed before it
    /// wrote the manifest.
    fn check_recorded(&self, manifest: &DatasetManifest) -> Result<()> {
        if self.options.existing == Existing::Keep {
            return Ok(());
        }
        let Places { dataset, padded, .. } = &self.places;
        if at(dataset, "read the existing file", sha256::of_file(dataset))? != manifest.sha256 {
            return match DatasetReader::open(dataset) {
                Ok(there) if there.settings() == &self.settings => Ok(()),
                _ => Err(not_replaced(dataset, OTHER_SHA256)),
            };
        }
        if self.options.padded.is_some() && at(padded, "read its metadata", padded.try_exists())? {
            let there = at(padded, "read the existing file", sha256::of_file(padded))?;
            if manifest.padded_sha256.as_ref() != Some(&there) {
                return Err(not_replaced(padded, OTHER_SHA256));
            }
        }
        Ok(())
    }

    /// The existing files that may be replaced: dataset and padded copy.
    fn replaceable(&self) -> Result<[Replaceable; 2]> {
        if self.options.existing == Existing::Keep {
            return Ok([Replaceable::Nothing, Replaceable::Nothing]);
        }
        let manifest = self.places.read_manifest()?;
        let padded = manifest.as_ref().and_then(|manifest| manifest.padded_sha256.clone());
        let dataset = manifest.map(|manifest| manifest.sha256);
        Ok([dataset, padded].map(Replaceable::Recorded))
    }

    /// The error for an existing file that differs from the dataset.
    pub fn refused<T>(&self, found: &str, expected: &str) -> Result<T> {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        Err(match &self.options.out {
            Output::Folder(path) => Error::OtherFile { path: path.clone(), found, expected },
            Output::Bucket { url, .. } => Error::OtherObject { url: url.to_string(), found, expected },
        })
    }

    /// An error for the files of this dataset, with a name and a remedy that fit where they are.
    fn explained(&self, error: Error) -> Error {
        match &self.bucket {
            None => error.named(&self.places.dataset),
            Some(_) => error.in_tmpdir(),
        }
    }

    /// The path or URL of the dataset, for messages.
    fn name(&self) -> PathBuf {
        self.bucket.as_ref().map_or_else(|| self.places.dataset.clone(), Bucket::name)
    }

    /// Whether the files of a manifest exist, are complete, and include all requested ones. Returns an error
    /// if one differs.
    pub fn is_complete(&self, manifest: &DatasetManifest) -> Result<bool> {
        if let Some(bucket) = &self.bucket {
            return bucket.is_complete(manifest, self.options.padded);
        }
        match (self.places.is_complete(manifest, self.options.padded), self.options.existing) {
            (Err(Error::OtherFile { .. }), Existing::Replace) => Ok(false),
            (Ok(_), Existing::Replace) if manifest.settings != self.settings => Ok(false),
            (found, _) => found,
        }
    }

    /// Writes the dataset under a temporary name, reads it back, and renames it. Calls `put_seal` just before
    /// the rename, when nothing can refuse the dataset any more.
    pub fn make<C: DatasetContent>(
        &self,
        content: &mut C,
        seal: Seal,
        progress: &ProgressBars,
        put_seal: impl FnOnce(&Seal) -> Result<(), C::Error>,
    ) -> Result<(DatasetManifest, Card), C::Error> {
        let (built, card) = self.build(content, seal.ledger.reducer, progress)?;
        let manifest = self.publish(built, seal, progress, || go_on(content), put_seal)?;
        Ok((manifest, card))
    }

    fn build<C: DatasetContent>(
        &self,
        content: &mut C,
        reducer: ReducerCounts,
        progress: &ProgressBars,
    ) -> Result<(Built, Card), C::Error> {
        let vocabulary = match &self.vocabulary {
            None => most_frequent(content, self.settings.vocabulary_size)?,
            Some(other) => recounted(other.vocabulary().words.clone(), content)?,
        };
        let size = content.size()?;
        if size.rows == 0 {
            let (path, left_out) = (self.name(), size.left_out);
            return Err(Error::NoRows { path, reducer, left_out }.into());
        }
        let file = self.places.temporary().map_err(|error| self.explained(error))?;
        // Messages name the dataset, not the file that it is written to.
        let named = |error: dataset::Error| self.explained(error.into());
        let mut dataset = DatasetWriter::create(&file, &self.settings, &vocabulary, size.rows, size.tokens)
            .map_err(named)?;
        let bar = progress.stage("writing rows", size.rows);
        let mut n_written = 0;
        content.each_row(&Ids::of(&vocabulary.words), &mut |row| {
            n_written += 1;
            if n_written % ROWS_SHOWN == 0 {
                bar.set_position(n_written);
            }
            dataset.row(row).map_err(named)
        })?;
        let digests = dataset.finish(size.row_digest).map_err(named)?;
        bar.finish_and_clear();
        let bar = progress.stage("reading them back", size.rows);
        let card = verified(&file, digests, &self.settings, size.rows, |rows| {
            bar.set_position(rows);
            go_on(content)
        })?;
        bar.finish_and_clear();
        Ok((Built { file, digests, size }, card))
    }

    /// Writes the padded copy, renames the files and writes the manifest, unless the same files already have
    /// one.
    fn publish<E: From<Error>>(
        &self,
        built: Built,
        seal: Seal,
        progress: &ProgressBars,
        go_on: impl Fn() -> Result<()>,
        put_seal: impl FnOnce(&Seal) -> Result<(), E>,
    ) -> Result<DatasetManifest, E> {
        let Self { options, places, .. } = self;
        let padded = options.padded.map(|length| self.padded_copy(&built, length, progress, &go_on));
        let padded = padded.transpose()?;
        let dataset = Finished::of(built.file)?;
        if let Some(bucket) = &self.bucket {
            let is_there = bucket.check_before_put(&dataset, padded.as_ref())?;
            go_on()?;
            put_seal(&seal)?;
            let manifest = self.manifest_of(seal, &dataset, padded.as_ref(), (built.size, built.digests));
            if is_there {
                progress.notice(&format!("{}: already exists with the same content", self.name().display()));
            }
            return Ok(bucket.put(&dataset, padded.as_ref(), manifest, progress, go_on)?);
        }
        let [old_dataset, old_padded] = self.replaceable()?;
        dataset.check_place(&places.dataset, &old_dataset)?;
        go_on()?;
        put_seal(&seal)?;
        let manifest = self.manifest_of(seal, &dataset, padded.as_ref(), (built.size, built.digests));
        // The existing file is equal, because `check_place` refuses any other.
        if matches!(old_dataset, Replaceable::Nothing)
            && at(&places.dataset, "read its metadata", places.dataset.try_exists())?
        {
            progress.notice(&format!(
                "{}: already exists with the same content; nothing to write",
                places.dataset.display()
            ));
        }
        Ok(places.put(dataset, padded, [old_dataset, old_padded], manifest)?)
    }

    fn manifest_of(
        &self,
        seal: Seal,
        dataset: &Finished,
        padded: Option<&Finished>,
        (size, digests): (Size, Digests),
    ) -> DatasetManifest {
        DatasetManifest {
            schema_version: dataset::SCHEMA_VERSION,
            seal,
            settings: self.settings.clone(),
            padded: self.options.padded,
            bytes: dataset.bytes,
            sha256: dataset.sha256.clone(),
            padded_sha256: padded.map(|padded| padded.sha256.clone()),
            rows: size.rows,
            left_out: size.left_out,
            digests,
        }
    }

    /// Writes the copy whose rows have this number of ids, under a temporary name.
    fn padded_copy(
        &self,
        built: &Built,
        length: u64,
        progress: &ProgressBars,
        go_on: &impl Fn() -> Result<()>,
    ) -> Result<Finished> {
        let file = self.places.temporary().map_err(|error| self.explained(error))?;
        let bar = progress.stage("copying rows", built.size.rows);
        let copied = write_padded(&DatasetReader::open(&built.file)?, &file, length as usize, |rows| {
            bar.set_position(rows);
            go_on()
        });
        copied.map_err(|error: Error| match &self.bucket {
            None => error.named(&self.places.padded),
            Some(_) => error.in_tmpdir(),
        })?;
        bar.finish_and_clear();
        let file = Finished::of(file)?;
        if self.bucket.is_some() {
            return Ok(file);
        }
        let [_, old_padded] = self.replaceable()?;
        file.check_place(&self.places.padded, &old_padded)?;
        Ok(file)
    }
}

/// A complete dataset that still has a temporary name.
struct Built {
    file: TempPath,
    digests: Digests,
    size: Size,
}

fn go_on(content: &impl DatasetContent) -> Result<()> {
    if content.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

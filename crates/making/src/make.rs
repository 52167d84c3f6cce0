//! Writes words and ordered rows into a dataset. The dataset gets its name only when it is complete. Its
//! manifest is in the same folder.
//!
//! Words and rows may come from the shards of a run or from the memory of one machine.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use dataset::card::Card;
use dataset::dataset_file::{DatasetReader, DatasetWriter, write_padded};
use dataset::manifest::{DatasetManifest, Seal};
use dataset::{COMPRESSORS_MAX, Digests, Row, RowsSize};
use durable::sha256;
use program::bars::ProgressBars;
use program::exit::{Exit, Failed};
use program::place::folder_of;
use program::temporary::{self, TemporaryPath};

use crate::beside::{Beside, Kind, check_names};
use crate::bucket::Bucket;
use crate::card::verified;
use crate::content::{DatasetContent, Rows, Size};
use crate::croissant::description;
use crate::error::{Error, Result, at, other_object};
use crate::folder::Addition;
use crate::ids::Ids;
use crate::ids_table;
use crate::inputs::Inputs;
use crate::options::DatasetOptions;
use crate::output::{Existing, Output};
use crate::publish::{Finished, OTHER_SHA256, Places, Replaceable, not_replaced};
use crate::texts::{TableName, TextsWriter};

/// Why an existing file without a manifest is not replaced.
const NO_MANIFEST: &str = "no manifest in its folder lists it";

/// A dataset to be made, whose path and settings are fixed.
pub struct Making<'a> {
    options: &'a DatasetOptions,
    inputs: Inputs,
    /// The files; if the output is in S3, before they are put.
    places: Places,
    /// The files to write beside the dataset.
    requested: Vec<Beside>,
    /// The objects, if the output is in S3.
    bucket: Option<Bucket>,
}

impl<'a> Making<'a> {
    /// Opens the other datasets on which this one depends.
    pub fn open(options: &'a DatasetOptions, rows: &Settings) -> Result<Self> {
        let inputs = Inputs::open(&options.vocabulary, options.without.as_ref(), rows)?;
        let (places, bucket) = match &options.out {
            Output::Folder(out) => {
                // A dataset that exists already is made without a temporary file.
                temporary::clear(folder_of(out));
                (Places::of(out), None)
            }
            Output::Bucket { url, s3, tmpdir } => {
                let bucket = Bucket::open(url, s3, tmpdir)?;
                (Places::of(&bucket.local()), Some(bucket))
            }
        };
        let requested = options.requested(&places.name());
        check_names(&requested, &places.name())?;
        Ok(Self { options, inputs, places, requested, bucket })
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

    /// The files that will be written to folders, and what a message calls each; none if the output is in S3.
    pub fn files(&self) -> Vec<(&'static str, PathBuf)> {
        if self.bucket.is_some() {
            return Vec::new();
        }
        let dataset = [
            ("the dataset of --out", self.places.dataset.clone()),
            ("the manifest of the dataset", self.places.manifest.clone()),
        ];
        let beside =
            self.requested.iter().map(|file| (file.kind.described(), self.places.beside(&file.name)));
        dataset.into_iter().chain(beside).collect()
    }

    /// The datasets on which this one depends, and its settings.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Returns the manifest of the existing dataset, if there is one. An existing file without a manifest is
    /// refused before any work is done, unless it is a complete dataset with the same settings. With
    /// [`Existing::Replace`], a file that does not match its manifest is refused, too.
    pub fn look(&self) -> Result<Option<Box<DatasetManifest>>> {
        if let Some(bucket) = &self.bucket {
            return bucket.look(self.inputs.settings());
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
            Ok(dataset) if dataset.settings() == self.inputs.settings() => Ok(None),
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
            None => self.places.check(&self.requested),
        }
    }

    /// Refuses a manifest of a dataset with other settings.
    pub fn check_settings(&self, manifest: &DatasetManifest) -> Result<()> {
        if &manifest.settings == self.inputs.settings() {
            return match &self.bucket {
                Some(bucket) => bucket.check_listed(manifest, &self.requested, self.options.padded),
                None => Ok(()),
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
        let dataset = &self.places.dataset;
        if at(dataset, "read the existing file", sha256::of_file(dataset))? != manifest.sha256 {
            return match DatasetReader::open(dataset) {
                Ok(there) if there.settings() == self.inputs.settings() => Ok(()),
                _ => Err(not_replaced(dataset, OTHER_SHA256)),
            };
        }
        for file in &self.requested {
            let path = self.places.beside(&file.name);
            if at(&path, "read its metadata", path.try_exists())? {
                let there = at(&path, "read the existing file", sha256::of_file(&path))?;
                if file.recorded(manifest).as_ref() != Some(&there) {
                    return Err(not_replaced(&path, OTHER_SHA256));
                }
            }
        }
        Ok(())
    }

    /// The existing dataset, if it may be replaced.
    fn replaceable_dataset(&self) -> Result<Replaceable> {
        Ok(match self.options.existing {
            Existing::Keep => Replaceable::Nothing,
            Existing::Replace => {
                Replaceable::Recorded(self.places.read_manifest()?.map(|manifest| manifest.sha256))
            }
        })
    }

    /// The existing file that may be replaced by this one. The description of files is derived from the manifest and
    /// replaced together with it.
    fn replaceable(&self, file: &Beside) -> Result<Replaceable> {
        if self.options.existing == Existing::Keep && file.kind != Kind::Croissant {
            return Ok(Replaceable::Nothing);
        }
        let manifest = self.places.read_manifest()?;
        Ok(Replaceable::Recorded(manifest.and_then(|manifest| file.recorded(&manifest))))
    }

    /// The files beside the dataset that is replaced.
    fn old_files(&self) -> Result<Vec<(Beside, Replaceable)>> {
        if self.options.existing == Existing::Keep {
            return Ok(Vec::new());
        }
        let Some(manifest) = self.places.read_manifest()? else { return Ok(Vec::new()) };
        let listed = Beside::listed(&manifest, &self.places.name()).into_iter();
        Ok(listed.map(|(file, sha256)| (file, Replaceable::Recorded(Some(sha256)))).collect())
    }

    /// The error for an existing file that differs from the dataset.
    pub fn refused<T>(&self, found: &str, expected: &str) -> Result<T> {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        Err(match &self.options.out {
            Output::Folder(path) => Error::OtherFile { path: path.clone(), found, expected },
            Output::Bucket { url, .. } => other_object(&url.to_string(), &found, &expected),
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
            return bucket.is_complete(manifest, &self.requested, self.options.padded);
        }
        let found = self.places.is_complete(manifest, &self.requested, self.options.padded);
        match (found, self.options.existing) {
            (Err(Error::OtherFile { .. }), Existing::Replace) => Ok(false),
            (Ok(_), Existing::Replace) if &manifest.settings != self.inputs.settings() => Ok(false),
            (found, _) => found,
        }
    }

    /// Writes the dataset under a temporary name, reads it back, and renames it. Calls `put_seal` just before
    /// the rename, when nothing can refuse the dataset any more.
    pub fn make<C: DatasetContent>(
        &self,
        content: &mut C,
        seal: &Seal,
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
        let vocabulary = self.inputs.vocabulary(|visit| content.each_word(visit))?;
        let size = content.size()?;
        if size.rows == 0 {
            let (name, left_out) = (self.name(), size.left_out);
            let why = format!(
                "{}: not written, because no row remains: {reducer}, {left_out} omitted; check the input, its format, \
                 --stopwords, --sample and --without",
                name.display()
            );
            return Err(Error::from(Failed::new(Exit::BadInput, why)).into());
        }
        let (threads, table_threads) = (content.threads(), content.table_threads());
        // A program that cannot start a thread ends at once, so this is checked while there is no file.
        let for_texts = self.requested(Kind::Texts).map_or(0, |_| table_threads.get());
        program::threads::check(threads.get() + COMPRESSORS_MAX.get() + for_texts);
        let file = self.places.temporary().map_err(|error| self.explained(error))?;
        // Messages name the dataset, not the file that it is written to.
        let named = |error: dataset::Error| self.explained(error.into());
        let of_rows = RowsSize { rows: size.rows, tokens: size.tokens };
        let mut dataset =
            DatasetWriter::create(&file, self.inputs.settings(), &vocabulary, of_rows).map_err(named)?;
        let bar = progress.stage("writing rows", size.rows);
        let mut texts = self.begin_texts(&size, table_threads)?;
        let ids = Ids::of(&vocabulary.words);
        match content.rows(&ids)? {
            Rows::Parts(parts) => {
                let sizes = parts.sizes();
                let each_row = |part, visit: &mut dyn FnMut(&Row) -> dataset::Result<()>| {
                    parts.each_row(part, visit).map_err(Stop::Content)
                };
                let written = dataset.parts(sizes, threads, each_row, |part| {
                    bar.inc(sizes[part].rows);
                    let texts = texts.as_mut().map_or(Ok(()), |(_, texts)| parts.write_texts(part, texts));
                    texts.map_err(|error| Stop::Content(error.into()))
                });
                written.map_err(|stop| match stop {
                    Stop::Content(error) => error,
                    Stop::Dataset(error) => named(error).into(),
                })?;
            }
            Rows::Encoded(files) => {
                for rows in files {
                    dataset.encoded(&mut rows?, |n_rows| bar.inc(n_rows)).map_err(named)?;
                }
            }
        }
        let digests = dataset.finish(size.row_digest).map_err(named)?;
        bar.finish_and_clear();
        let texts =
            texts.map(|(file, writer)| self.finish_texts(file, writer, size, progress, &|| go_on(content)));
        let texts = texts.transpose()?;
        let bar = progress.stage("reading them back", size.rows);
        let (dataset, card) = Finished::checked(file, |file| {
            verified(file, digests, self.inputs.settings(), size.rows, threads, |rows| {
                bar.set_position(rows);
                go_on(content)
            })
        })?;
        bar.finish_and_clear();
        Ok((Built { dataset, digests, size, texts, threads: table_threads }, card))
    }

    /// Begins the file of texts, if one is requested, under a temporary name.
    fn begin_texts(
        &self,
        size: &Size,
        threads: NonZeroUsize,
    ) -> Result<Option<(TemporaryPath, TextsWriter)>> {
        let Some(beside) = self.requested(Kind::Texts) else { return Ok(None) };
        let begun = self.places.temporary().and_then(|file| {
            let name = match &self.bucket {
                None => TableName::Final(self.places.beside(&beside.name)),
                Some(_) => TableName::Temporary,
            };
            let rows = &self.inputs.settings().rows;
            let writer = TextsWriter::create(&file, name, rows, size.row_digest, threads)?;
            Ok((file, writer))
        });
        begun.map(Some).map_err(|error| self.explained_beside(beside, error))
    }

    /// Completes the file of texts and reads it back.
    fn finish_texts(
        &self,
        file: TemporaryPath,
        writer: TextsWriter,
        size: Size,
        progress: &ProgressBars,
        go_on: &impl Fn() -> Result<()>,
    ) -> Result<Finished> {
        let bar = progress.stage("reading texts back", size.rows);
        let verified = writer.finish(size.rows, |rows| {
            bar.set_position(rows);
            go_on()
        });
        let finished = verified.and_then(|()| Finished::of(file));
        bar.finish_and_clear();
        let beside = self.requested(Kind::Texts).expect("texts are written only if they are requested");
        finished.map_err(|error| self.explained_beside(beside, error))
    }

    fn requested(&self, kind: Kind) -> Option<&Beside> {
        self.requested.iter().find(|file| file.kind == kind)
    }

    /// An error for a file beside the dataset, with a name and a remedy that fit where it is.
    fn explained_beside(&self, file: &Beside, error: Error) -> Error {
        match &self.bucket {
            None => error.named(&self.places.beside(&file.name)),
            Some(_) => error.in_tmpdir(),
        }
    }

    /// Writes the files beside the dataset, renames all files and writes the manifest, unless the same files already
    /// have one.
    fn publish<E: From<Error>>(
        &self,
        built: Built,
        seal: &Seal,
        progress: &ProgressBars,
        go_on: impl Fn() -> Result<()>,
        put_seal: impl FnOnce(&Seal) -> Result<(), E>,
    ) -> Result<DatasetManifest, E> {
        let places = &self.places;
        let mut additions = self.additions(&built, progress, &go_on)?;
        additions.extend(built.texts.map(|texts| self.addition(Kind::Texts, texts)).transpose()?);
        let dataset = built.dataset;
        let manifest = self.manifest_of(seal.clone(), &dataset, &additions, (built.size, built.digests));
        let (manifest, described) = self.described(manifest)?;
        additions.extend(described);
        if let Some(bucket) = &self.bucket {
            let is_there = bucket.check_before_put(&dataset, &additions)?;
            go_on()?;
            put_seal(seal)?;
            if is_there {
                progress.notice(&format!("{}: already exists with the same content", self.name().display()));
            }
            let requested = (&self.requested[..], self.options.padded);
            return Ok(bucket.put(&dataset, &additions, manifest, requested, progress, go_on)?);
        }
        for Addition { file, finished, replaceable } in &additions {
            finished.check_place(&places.beside(&file.name), replaceable)?;
        }
        let (old_dataset, old_files) = (self.replaceable_dataset()?, self.old_files()?);
        dataset.check_place(&places.dataset, &old_dataset)?;
        go_on()?;
        put_seal(seal)?;
        // The existing file is equal, because `check_place` refuses any other.
        if matches!(old_dataset, Replaceable::Nothing)
            && at(&places.dataset, "read its metadata", places.dataset.try_exists())?
        {
            progress.notice(&format!(
                "{}: already exists with the same content; nothing to write",
                places.dataset.display()
            ));
        }
        Ok(places.put(dataset, &old_dataset, additions, &old_files, manifest)?)
    }

    /// The files that are made from the dataset.
    fn additions(
        &self,
        built: &Built,
        progress: &ProgressBars,
        go_on: &impl Fn() -> Result<()>,
    ) -> Result<Vec<Addition>> {
        let mut additions = Vec::new();
        if let Some(length) = self.options.padded {
            additions.push(self.addition(Kind::Padded, self.padded_copy(built, length, progress, go_on)?)?);
        }
        if self.options.ids {
            additions.push(self.addition(Kind::Ids, self.table_of_ids(built, progress, go_on)?)?);
        }
        Ok(additions)
    }

    fn addition(&self, kind: Kind, finished: Finished) -> Result<Addition> {
        let file = self.requested(kind).expect("only requested files are written").clone();
        let replaceable = match &self.bucket {
            Some(_) => Replaceable::Nothing,
            None => self.replaceable(&file)?,
        };
        Ok(Addition { file, finished, replaceable })
    }

    /// Adds the description of the Parquet files to a manifest that lists them. Also describes files of an earlier
    /// run that still exist.
    fn described(&self, mut manifest: DatasetManifest) -> Result<(DatasetManifest, Option<Addition>)> {
        let Some(file) = self.requested(Kind::Croissant) else { return Ok((manifest, None)) };
        manifest = match (&self.bucket, self.options.existing) {
            (Some(bucket), _) => bucket.with_known(manifest)?,
            (None, Existing::Keep) => self.places.with_known(manifest)?,
            (None, Existing::Replace) => manifest,
        };
        let stem = file.name.strip_suffix(".croissant.json").unwrap_or(&file.name);
        let bytes = description(&manifest, stem);
        let written = self.places.write_temporary(&file.name, "write the description", &bytes);
        let finished = written.and_then(Finished::of).map_err(|error| self.explained_beside(file, error))?;
        manifest.croissant = Some(finished.listed(&file.name));
        Ok((manifest, Some(self.addition(Kind::Croissant, finished)?)))
    }

    fn manifest_of(
        &self,
        seal: Seal,
        dataset: &Finished,
        additions: &[Addition],
        (size, digests): (Size, Digests),
    ) -> DatasetManifest {
        let listed = |kind| {
            let mut added = additions.iter().filter(|addition| addition.file.kind == kind);
            added.next().map(|addition| addition.finished.listed(&addition.file.name))
        };
        DatasetManifest {
            schema_version: dataset::SCHEMA_VERSION,
            seal,
            settings: self.inputs.settings().clone(),
            padded: self.options.padded,
            bytes: dataset.bytes,
            sha256: dataset.sha256.clone(),
            padded_sha256: listed(Kind::Padded).map(|padded| padded.sha256),
            rows: size.rows,
            left_out: size.left_out,
            digests,
            ids: listed(Kind::Ids),
            texts: listed(Kind::Texts),
            croissant: None,
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
        let copied =
            write_padded(&DatasetReader::open(&built.dataset.file)?, &file, length as usize, |rows| {
                bar.set_position(rows);
                go_on()
            });
        let beside = self.requested(Kind::Padded).expect("a padded copy was requested");
        copied.map_err(|error: Error| self.explained_beside(beside, error))?;
        bar.finish_and_clear();
        Finished::of(file)
    }

    /// Writes the Parquet file of the ids under a temporary name, and reads it back.
    fn table_of_ids(
        &self,
        built: &Built,
        progress: &ProgressBars,
        go_on: &impl Fn() -> Result<()>,
    ) -> Result<Finished> {
        let file = self.places.temporary().map_err(|error| self.explained(error))?;
        let bar = progress.stage("writing ids", 2 * built.size.rows);
        let written =
            ids_table::write(&DatasetReader::open(&built.dataset.file)?, &file, built.threads, |rows| {
                bar.set_position(rows);
                go_on()
            });
        let beside = self.requested(Kind::Ids).expect("a file of ids was requested");
        written.map_err(|error| self.explained_beside(beside, error))?;
        bar.finish_and_clear();
        Finished::of(file)
    }
}

/// Why no rows were written.
enum Stop<E> {
    /// Their source failed.
    Content(E),
    /// The file could not be written.
    Dataset(dataset::Error),
}

impl<E> From<dataset::Error> for Stop<E> {
    fn from(error: dataset::Error) -> Self {
        Self::Dataset(error)
    }
}

/// A complete dataset that still has a temporary name.
struct Built {
    dataset: Finished,
    digests: Digests,
    size: Size,
    texts: Option<Finished>,
    /// Number of threads for Parquet files.
    threads: NonZeroUsize,
}

fn go_on(content: &impl DatasetContent) -> Result<()> {
    if content.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

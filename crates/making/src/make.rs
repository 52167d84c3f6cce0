//! Words and rows in order → a dataset under its name, whole or not at all, with its manifest beside it.
//!
//! Where words and rows come from is not known here: from the shards of a run, or from one machine's memory.

use std::path::{Path, PathBuf};

use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use dataset::Digests;
use dataset::dataset_file::{DatasetReader, DatasetSettings, DatasetWriter, write_padded};
use dataset::manifest::{DatasetManifest, Seal};
use program::exit::chain;
use tempfile::TempPath;

use crate::card::describe_while;
use crate::content::{DatasetContent, Size};
use crate::error::{Error, Result, at};
use crate::ids::Ids;
use crate::progress::ProgressBars;
use crate::publish::{Finished, Places, same_file};
use crate::vocabulary::{most_frequent, recounted};

/// A bar moves after so many rows.
const ROWS_SHOWN: u64 = 1 << 10;

/// Which dataset to make.
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    /// Where it goes.
    pub out: PathBuf,
    /// Where its vocabulary comes from.
    pub vocabulary: VocabularyFrom,
    /// A dataset whose texts are left out.
    pub without: Option<PathBuf>,
    /// Ids a row of a padded copy, where one is wanted.
    pub padded: Option<u64>,
}

/// Where a vocabulary comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VocabularyFrom {
    /// The most frequent words of what is made here, at most so many.
    Frequency(u64),
    /// Another dataset's, whole and in its order.
    Dataset(PathBuf),
}

/// The most words of a vocabulary, unless somebody says otherwise.
const VOCABULARY_SIZE: u64 = 10_000;

impl VocabularyFrom {
    /// What is asked for by another dataset, or by the most words; without either it is the default.
    pub fn asked(dataset: Option<PathBuf>, words_max: Option<u64>) -> Self {
        match dataset {
            Some(path) => Self::Dataset(path),
            None => Self::Frequency(words_max.unwrap_or(VOCABULARY_SIZE)),
        }
    }
}

/// A dataset that is to be made: its place and its settings are known, its rows are not.
pub struct Making<'a> {
    options: &'a DatasetOptions,
    vocabulary: Option<DatasetReader>,
    without: Option<DatasetReader>,
    settings: DatasetSettings,
    places: Places,
}

impl<'a> Making<'a> {
    /// Opens the other datasets that this one is made after.
    pub fn open(options: &'a DatasetOptions, rows: &Settings) -> Result<Self> {
        let open = |path: &Path| -> Result<DatasetReader> {
            let dataset = DatasetReader::open(path)?;
            check_cleaning(path, &dataset.settings().rows, rows)?;
            Ok(dataset)
        };
        let (vocabulary, vocabulary_size) = match &options.vocabulary {
            VocabularyFrom::Frequency(size) => (None, *size),
            VocabularyFrom::Dataset(path) => {
                let other = open(path)?;
                check_rows(path, &other.settings().rows, rows)?;
                let size = other.vocabulary().words.len() as u64;
                (Some(other), size)
            }
        };
        let without = options.without.as_deref().map(open).transpose()?;
        let settings = DatasetSettings {
            rows: rows.clone(),
            vocabulary_size,
            vocabulary_of: vocabulary.as_ref().map(|dataset| dataset.digests().id_digest),
            without: without.as_ref().map(|dataset| dataset.digests().id_digest),
        };
        Ok(Self { options, vocabulary, without, settings, places: Places::of(&options.out) })
    }

    /// The dataset whose texts are left out.
    pub fn without(&self) -> Option<&DatasetReader> {
        self.without.as_ref()
    }

    /// The manifest of what is there already in the dataset's place. What is there without one, and is not whole or of
    /// other settings, is refused before any work is done.
    pub fn look(&self) -> Result<Option<Box<DatasetManifest>>> {
        // Read in any case: a file of its name that is none is not written over.
        let manifest = self.places.read_manifest()?;
        let there = match std::fs::metadata(&self.places.dataset) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            found => at(&self.places.dataset, "look it up", found)?,
        };
        if !there.is_file() {
            return self.refused("a folder or a special file", "a dataset or nothing");
        }
        if let Some(manifest) = manifest {
            return Ok(Some(Box::new(manifest)));
        }
        // What was left by a program that was killed between the two; it is compared with what is made now.
        match DatasetReader::open(&self.places.dataset) {
            Ok(dataset) if dataset.settings() == &self.settings => Ok(None),
            Ok(_) => self.refused("a dataset of other settings", "one of these"),
            Err(_) => self.refused("no whole dataset", "this one or nothing"),
        }
    }

    /// Finds out, before any work is done, whether the dataset can be written where it is to go.
    pub fn check_place(&self) -> Result<()> {
        self.places.check(self.options.padded.is_some())
    }

    /// Refuses a dataset of other settings, by its manifest.
    pub fn check_settings(&self, manifest: &DatasetManifest) -> Result<()> {
        if manifest.settings == self.settings {
            return Ok(());
        }
        self.refused("a dataset of other settings", "one of these")
    }

    /// The error of a dataset that is something else than it should be.
    pub fn refused<T>(&self, found: &str, expected: &str) -> Result<T> {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        Err(Error::OtherFile { path: self.places.dataset.clone(), found, expected })
    }

    /// Whether the files that a manifest tells of are there, whole, and all that is wanted; those that are another are
    /// refused.
    pub fn is_complete(&self, manifest: &DatasetManifest) -> Result<bool> {
        same_file(&self.places.dataset, &manifest.sha256)?;
        let padded = &self.places.padded;
        if self.options.padded.is_some() {
            if !at(padded, "look it up", padded.try_exists())? {
                return Ok(false);
            }
            match &manifest.padded_sha256 {
                Some(expected) if manifest.padded == self.options.padded => same_file(padded, expected)?,
                _ => {
                    let (found, expected) = ("another file", "a copy of this many ids a row, or nothing");
                    let (found, expected) = (found.to_owned(), expected.to_owned());
                    return Err(Error::OtherFile { path: padded.clone(), found, expected });
                }
            }
        }
        self.places.sync()?;
        Ok(true)
    }

    /// Writes the dataset under a name of its own, reads it back, and gives it its name. Just before that, when nothing
    /// is left that could refuse it, `put_seal` is called.
    pub fn make<C: DatasetContent>(
        &self,
        content: &mut C,
        seal: Seal,
        progress: &ProgressBars,
        put_seal: impl FnOnce(&Seal) -> Result<(), C::Error>,
    ) -> Result<(DatasetManifest, String), C::Error> {
        let (built, card) = self.build(content, seal.ledger.reducer, progress)?;
        let manifest = self.publish(built, seal, progress, || go_on(content), put_seal)?;
        Ok((manifest, card))
    }

    fn build<C: DatasetContent>(
        &self,
        content: &mut C,
        reducer: ReducerCounts,
        progress: &ProgressBars,
    ) -> Result<(Built, String), C::Error> {
        let vocabulary = match &self.vocabulary {
            None => most_frequent(content, self.settings.vocabulary_size)?,
            Some(other) => recounted(other.vocabulary().words.clone(), content)?,
        };
        let size = content.size()?;
        if size.rows == 0 {
            let (path, left_out) = (self.places.dataset.clone(), size.left_out);
            return Err(Error::NoRows { path, reducer, left_out }.into());
        }
        let file = self.places.temporary()?;
        let mut dataset = DatasetWriter::create(&file, &self.settings, &vocabulary, size.rows, size.tokens)
            .map_err(Error::from)?;
        let bar = progress.stage("writing rows", size.rows);
        let mut n_written = 0;
        content.each_row(&Ids::of(&vocabulary.words), &mut |row| {
            n_written += 1;
            if n_written % ROWS_SHOWN == 0 {
                bar.set_position(n_written);
            }
            Ok(dataset.row(row)?)
        })?;
        let digests = dataset.finish(size.row_digest).map_err(Error::from)?;
        bar.finish_and_clear();
        let bar = progress.stage("reading them back", size.rows);
        let card = verified(&file, digests, &self.settings, size.rows, |rows| {
            bar.set_position(rows);
            go_on(content)
        })?;
        bar.finish_and_clear();
        Ok((Built { file, digests, size }, card))
    }

    /// Writes the padded copy, gives the files their names and writes the manifest, unless the same files have one.
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
        dataset.check_place(&places.dataset)?;
        go_on()?;
        put_seal(&seal)?;
        let manifest = DatasetManifest {
            schema_version: dataset::SCHEMA_VERSION,
            seal,
            settings: self.settings.clone(),
            padded: options.padded,
            bytes: dataset.bytes,
            sha256: dataset.sha256.clone(),
            padded_sha256: padded.as_ref().map(|padded| padded.sha256.clone()),
            rows: built.size.rows,
            left_out: built.size.left_out,
            digests: built.digests,
        };
        dataset.publish(&places.dataset)?;
        padded.map_or(Ok(()), |padded| padded.publish(&places.padded))?;
        // Of the same files it may know more: the shards of the run that they were made of first.
        let there =
            places.read_manifest()?.map(|there| DatasetManifest { seal: manifest.seal.clone(), ..there });
        if there.as_ref() == Some(&manifest) {
            places.sync()?;
        } else {
            places.write_manifest(&manifest)?;
        }
        Ok(manifest)
    }

    /// Writes the copy whose rows have this many ids, which has no name yet.
    fn padded_copy(
        &self,
        built: &Built,
        length: u64,
        progress: &ProgressBars,
        go_on: &impl Fn() -> Result<()>,
    ) -> Result<Finished> {
        let file = self.places.temporary()?;
        let bar = progress.stage("copying rows", built.size.rows);
        write_padded(&DatasetReader::open(&built.file)?, &file, length as usize, |rows| {
            bar.set_position(rows);
            go_on()
        })?;
        bar.finish_and_clear();
        let file = Finished::of(file)?;
        file.check_place(&self.places.padded)?;
        Ok(file)
    }
}

/// A text's hash means the same in two datasets only where both were cleaned by the same rules.
fn check_cleaning(path: &Path, there: &Settings, here: &Settings) -> Result<()> {
    let pairs = [
        ("the cleaning version", there.cleaning_version.to_string(), here.cleaning_version.to_string()),
        ("the Unicode version", there.unicode_version.clone(), here.unicode_version.clone()),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => {
            Err(Error::OtherCleaning { path: path.to_owned(), what, found, expected })
        }
    }
}

/// Rows of one vocabulary are to be read alike.
fn check_rows(path: &Path, there: &Settings, here: &Settings) -> Result<()> {
    there.difference(here).map_or(Ok(()), |difference| {
        Err(Error::OtherRows {
            path: path.to_owned(),
            what: difference.setting,
            found: difference.ours,
            expected: difference.theirs,
            flags: there.flags(),
        })
    })
}

/// A dataset that is finished but for its name.
struct Built {
    file: TempPath,
    digests: Digests,
    size: Size,
}

fn go_on(content: &impl DatasetContent) -> Result<()> {
    if content.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Reads a dataset that was just written, and gives its card; or tells what is wrong with it.
fn verified(
    file: &Path,
    digests: Digests,
    settings: &DatasetSettings,
    n_rows: u64,
    go_on: impl FnMut(u64) -> Result<()>,
) -> Result<String> {
    let unverified = |found| Error::Unverified { path: file.to_owned(), found };
    // The part alone: what is to be done about a file of somebody else's is not what is to be done about this one.
    let said = |error: dataset::Error| match error {
        dataset::Error::Damaged { part, .. } => unverified(format!("{part} does not match its digest")),
        dataset::Error::Broken { thing, found, expected, .. } => {
            unverified(format!("{thing} is {found}, expected {expected}"))
        }
        other => unverified(chain(&other)),
    };
    let written = DatasetReader::open(file).map_err(said)?;
    if written.digests() != digests || written.settings() != settings || written.n_rows() != n_rows {
        return Err(unverified("other sizes, settings or digests".to_owned()));
    }
    // Making the card reads and checks all of it.
    describe_while(&written, go_on).map_err(|error| match error {
        Error::Interrupted => error,
        other => unverified(chain(&other)),
    })
}

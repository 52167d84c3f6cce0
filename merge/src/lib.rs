//! The shards of one run to one dataset with its vocabulary.
//!
//! Every shard is read and checked before anything is written. The dictionaries are summed in one pass, the rows
//! merged in another; no shard is held whole, and memory does not grow with the number of shards or rows. The
//! result depends on the rows and the settings alone: not on hosts, attempts or the number of partitions.

mod card;
mod error;
mod publish;
mod rows;
mod run;
mod vocabulary;

pub mod counts;
pub mod gc;
pub mod progress;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::Digest;
use corpus::exit::chain;
use corpus::ledger::{MapperCounts, Share, check_run};
use corpus::settings::Settings;
use dataset::commit::{Commit, SEAL_KEY};
use dataset::dataset_file::{DatasetReader, DatasetSettings, DatasetWriter, write_padded};
use dataset::manifest::{DatasetManifest, Ledger, Seal};
use dataset::spool::Spool;
use dataset::vocabulary::Vocabulary;
use dataset::{Digests, Row};
use store::{Content, Key, Put, Store};
use tempfile::TempPath;

pub use crate::card::describe;
use crate::error::at;
pub use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::publish::{Finished, Places, same_file};
use crate::rows::{Hashes, each_row};
use crate::run::{VerifiedShard, check_sealed, complete, read_commits, read_seal, seal_of, verify};
use crate::vocabulary::{Ids, most_frequent, recounted};

/// The most shards that are read side by side; more are merged in groups first.
const FAN_IN: usize = 64;

/// Threads that read a shard or a dataset: each holds a chunk of every column.
const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("8 is more than 0");

/// A bar moves after so many rows.
const ROWS_SHOWN: u64 = 1 << 10;

/// The dictionary of one shard is kept in memory up to this size while the shard is checked.
const DICTIONARY_BYTES_MAX: u64 = 96 << 20;

/// What to make of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the dataset goes.
    pub out: PathBuf,
    /// Where its vocabulary comes from.
    pub vocabulary: VocabularyFrom,
    /// A dataset whose texts are left out.
    pub without: Option<PathBuf>,
    /// Ids a row of a padded copy, where one is wanted.
    pub padded: Option<u64>,
    /// The mappers' part of the ledger, where it is known.
    pub mapper: Option<MapperCounts>,
    /// The share of bad lines that is accepted in all of them.
    pub bad_lines_max: Share,
    /// Where temporary files go.
    pub scratch: PathBuf,
}

/// Where a vocabulary comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VocabularyFrom {
    /// This run's own most frequent words, at most so many.
    Frequency(u64),
    /// Another dataset's, whole and in its order.
    Dataset(PathBuf),
}

/// How a merge ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A dataset was made; this is its card.
    Made(Box<DatasetManifest>, String),
    /// It was there already, whole and with the same settings.
    Unchanged(Box<DatasetManifest>),
}

/// Merges a run. Whatever refuses it does so before anything has got a name, in the run's folder or elsewhere.
pub fn run(store: &Store, options: &Options, progress: &Progress) -> Result<Outcome> {
    let commits = complete(store, read_commits(store)?)?;
    let sealed = read_seal(store)?;
    let mapper = options.mapper.or(sealed.as_ref().and_then(|seal| seal.ledger.mapper));
    let seal = seal_of(&commits, mapper);
    if let Some(sealed) = &sealed {
        check_sealed(store, sealed, &seal)?;
    }
    check_ledger(&seal.ledger, options)?;
    let others = Others::open(options, &seal.settings)?;
    let settings = others.settings(&seal.settings, options);
    let places = Places::of(&options.out);
    if let Some(manifest) = there_already(&places, &seal, &settings, options)? {
        places.sync()?;
        return Ok(Outcome::Unchanged(Box::new(manifest)));
    }
    let shards = verify_all(store, &commits, options, progress)?;
    let (built, card) = build(&shards, &seal, &settings, &others, &places, options, progress)?;
    let manifest = finish(store, seal, settings, built, &places, options)?;
    Ok(Outcome::Made(Box::new(manifest), card))
}

/// The other datasets that this one is made after.
struct Others {
    vocabulary: Option<DatasetReader>,
    without: Option<DatasetReader>,
}

impl Others {
    fn open(options: &Options, settings: &Settings) -> Result<Self> {
        let open = |path: &Path| -> Result<DatasetReader> {
            let dataset = DatasetReader::open(path)?;
            check_cleaning(path, &dataset.settings().rows, settings)?;
            Ok(dataset)
        };
        Ok(Self {
            vocabulary: match &options.vocabulary {
                VocabularyFrom::Frequency(_) => None,
                VocabularyFrom::Dataset(path) => Some(open(path)?),
            },
            without: options.without.as_deref().map(open).transpose()?,
        })
    }

    fn settings(&self, rows: &Settings, options: &Options) -> DatasetSettings {
        DatasetSettings {
            rows: rows.clone(),
            vocabulary_size: match (&self.vocabulary, &options.vocabulary) {
                (None, VocabularyFrom::Frequency(size)) => *size,
                (other, _) => other.as_ref().map_or(0, |dataset| dataset.vocabulary().words.len() as u64),
            },
            vocabulary_of: self.vocabulary.as_ref().map(|dataset| dataset.digests().id_digest),
            without: self.without.as_ref().map(|dataset| dataset.digests().id_digest),
        }
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

fn check_ledger(ledger: &Ledger, options: &Options) -> Result<()> {
    match &ledger.mapper {
        Some(mapper) => check_run(mapper, &ledger.reducer)?,
        None => ledger.reducer.check()?,
    }
    options.mapper.map_or(Ok(()), |mapper| mapper.judge(options.bad_lines_max).map_err(Error::BadLines))
}

/// The manifest of a dataset that is already what this merge would make. A file that is something else is refused
/// before any work is done.
fn there_already(
    places: &Places,
    seal: &Seal,
    settings: &DatasetSettings,
    options: &Options,
) -> Result<Option<DatasetManifest>> {
    // Read in any case: a file of its name that is none is not written over.
    let manifest = places.read_manifest()?;
    let there = match std::fs::metadata(&places.dataset) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => at(&places.dataset, "look it up", found)?,
    };
    let refused = |path: &Path, found: &str, expected: &str| {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        Err(Error::OtherFile { path: path.to_owned(), found, expected })
    };
    if !there.is_file() {
        return refused(&places.dataset, "a folder or a special file", "a dataset or nothing");
    }
    let Some(manifest) = manifest else {
        // What a merge left that was killed between the two; it is compared with what this one makes.
        return match DatasetReader::open(&places.dataset) {
            Ok(dataset) if dataset.settings() == settings => Ok(None),
            Ok(_) => refused(&places.dataset, "a dataset of other settings", "one of these"),
            Err(_) => refused(&places.dataset, "no whole dataset", "this one or nothing"),
        };
    };
    if manifest.seal.shards != seal.shards {
        return refused(&places.dataset, "a dataset of other shards", "one of this run");
    }
    if manifest.settings != *settings {
        return refused(&places.dataset, "a dataset of other settings", "one of these");
    }
    same_file(&places.dataset, &manifest.sha256)?;
    if options.padded.is_none() {
        return Ok(Some(manifest));
    }
    if !at(&places.padded, "look it up", places.padded.try_exists())? {
        return Ok(None);
    }
    match &manifest.padded_sha256 {
        Some(expected) if manifest.padded == options.padded => same_file(&places.padded, expected)?,
        _ => return refused(&places.padded, "another file", "a copy of this many ids a row, or nothing"),
    }
    Ok(Some(manifest))
}

fn verify_all(
    store: &Store,
    commits: &[Commit],
    options: &Options,
    progress: &Progress,
) -> Result<Vec<VerifiedShard>> {
    let bar = progress.stage("checking shards", commits.len() as u64);
    let shards = commits.iter().map(|commit| {
        let shard = verify(store, commit, &options.scratch, DICTIONARY_BYTES_MAX)?;
        bar.inc(1);
        Ok(shard)
    });
    let shards = shards.collect();
    bar.finish_and_clear();
    shards
}

/// Seals the run, or finds that it has this seal already.
fn put_seal(store: &Store, seal: &Seal) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(seal).expect("a seal of plain values is JSON");
    json.push(b'\n');
    match store.put_if_absent(&Key::new(SEAL_KEY)?, Content::Bytes(&json))? {
        Put::Stored(_) => Ok(()),
        // A seal without the mappers' part says less than this merge knows; the dataset's manifest has it all.
        Put::AlreadyThere => read_seal(store)?.map_or(Ok(()), |sealed| check_sealed(store, &sealed, seal)),
    }
}

/// A dataset that is finished but for its name.
struct Built {
    file: TempPath,
    digests: Digests,
    rows: u64,
    left_out: u64,
}

/// What of the shards' rows stays out.
#[derive(Default)]
struct LeftOut {
    rows: u64,
    tokens: u64,
    row_digest: Digest,
}

/// Writes a dataset under a name of its own, and verifies it; gives its card too.
fn build(
    shards: &[VerifiedShard],
    seal: &Seal,
    settings: &DatasetSettings,
    others: &Others,
    places: &Places,
    options: &Options,
    progress: &Progress,
) -> Result<(Built, String)> {
    let mut spool = Spool::create(&options.scratch)?;
    let vocabulary = cut_vocabulary(shards, &mut spool, settings, others, progress)?;
    let mut left_out = LeftOut::default();
    if let Some(without) = &others.without {
        for shard in shards {
            add_left_out(shard, &mut Hashes::of(without), &mut left_out)?;
        }
    }
    let n_rows = seal.ledger.reducer.rows - left_out.rows;
    let n_tokens = shards.iter().map(|shard| shard.tokens).sum::<u64>() - left_out.tokens;
    let mut row_digest = seal.row_digest;
    row_digest -= left_out.row_digest;

    let file = places.temporary()?;
    let mut dataset = DatasetWriter::create(&file, settings, &vocabulary, n_rows, n_tokens)?;
    let bar = progress.stage("merging rows", n_rows);
    let mut n_written = 0;
    let mut without = others.without.as_ref().map(Hashes::of);
    each_row(shards, &Ids::of(&vocabulary.words), &mut spool, |row| {
        if let Some(hashes) = &mut without
            && hashes.contains(row.hash)?
        {
            return Ok(());
        }
        n_written += 1;
        if n_written % ROWS_SHOWN == 0 {
            bar.set_position(n_written);
        }
        Ok(dataset.row(row)?)
    })?;
    let digests = dataset.finish(row_digest)?;
    bar.finish_and_clear();
    let card = verified(&file, digests, settings, n_rows)
        .map_err(|found| Error::Unverified { path: file.to_path_buf(), found })?;
    Ok((Built { file, digests, rows: n_rows, left_out: left_out.rows }, card))
}

/// Reads a dataset that was just written, and gives its card; or tells what is wrong with it.
fn verified(
    file: &Path,
    digests: Digests,
    settings: &DatasetSettings,
    n_rows: u64,
) -> std::result::Result<String, String> {
    // The part alone: what is to be done about a file of somebody else's is not what is to be done about this one.
    let said = |error: dataset::Error| match error {
        dataset::Error::Damaged { part, .. } => format!("{part} does not match its digest"),
        other => chain(&other),
    };
    let written = DatasetReader::open(file).map_err(said)?;
    if written.digests() != digests || written.settings() != settings || written.n_rows() != n_rows {
        return Err("other sizes, settings or digests".to_owned());
    }
    // Making the card reads and checks all of it.
    describe(&written).map_err(|error| chain(&error))
}

fn cut_vocabulary(
    shards: &[VerifiedShard],
    spool: &mut Spool,
    settings: &DatasetSettings,
    others: &Others,
    progress: &Progress,
) -> Result<Vocabulary> {
    let bar = progress.stage("summing dictionaries", shards.len() as u64);
    let vocabulary = match &others.vocabulary {
        None => most_frequent(shards, spool, settings.vocabulary_size)?,
        Some(other) => recounted(other.vocabulary().words.clone(), shards, spool)?,
    };
    bar.finish_and_clear();
    Ok(vocabulary)
}

fn add_left_out(shard: &VerifiedShard, hashes: &mut Hashes, left_out: &mut LeftOut) -> Result<()> {
    let mut reader = shard.open()?;
    reader.keep_dictionary(DICTIONARY_BYTES_MAX)?;
    let mut row = Row::default();
    for at in 0..reader.size().rows {
        reader.row(at, &mut row)?;
        if hashes.contains(row.hash)? {
            left_out.rows += 1;
            left_out.tokens += row.tokens.len() as u64;
            left_out.row_digest += reader.digest_of(&row)?;
        }
    }
    Ok(())
}

/// Writes the padded copy, seals the run, gives the files their names and writes the manifest.
fn finish(
    store: &Store,
    seal: Seal,
    settings: DatasetSettings,
    built: Built,
    places: &Places,
    options: &Options,
) -> Result<DatasetManifest> {
    let mut padded = None;
    if let Some(length) = options.padded {
        let file = places.temporary()?;
        write_padded(&DatasetReader::open(&built.file)?, &file, length as usize)?;
        let file = Finished::of(file)?;
        file.check_place(&places.padded)?;
        padded = Some(file);
    }
    let dataset = Finished::of(built.file)?;
    dataset.check_place(&places.dataset)?;
    put_seal(store, &seal)?;
    let manifest = DatasetManifest {
        schema_version: dataset::SCHEMA_VERSION,
        seal,
        settings,
        padded: options.padded,
        bytes: dataset.bytes,
        sha256: dataset.sha256.clone(),
        padded_sha256: padded.as_ref().map(|padded| padded.sha256.clone()),
        rows: built.rows,
        left_out: built.left_out,
        digests: built.digests,
    };
    dataset.publish(&places.dataset)?;
    padded.map_or(Ok(()), |padded| padded.publish(&places.padded))?;
    places.write_manifest(&manifest)?;
    Ok(manifest)
}

/// A dataset that was read whole and found to be sound.
pub struct Checked {
    /// The dataset.
    pub dataset: DatasetReader,
    /// Whether a manifest lies beside it, which knows the SHA-256 of the whole file.
    pub manifest: bool,
}

/// Reads a whole dataset and checks all that it holds; where its manifest lies beside it, every byte of the file.
pub fn check(file: &Path) -> Result<Checked> {
    let dataset = DatasetReader::open(file)?;
    dataset.verify_blocks(dataset::threads(THREADS_MAX), || (), |(), _, _| (), |()| ())?;
    let manifest = Places::of(file).read_manifest()?;
    if let Some(manifest) = &manifest {
        let found = at(file, "read the dataset", dataset::sha256::of_file(file))?;
        if found != manifest.sha256 {
            let (path, expected) = (file.to_owned(), manifest.sha256.clone());
            return Err(Error::OtherThanManifest { path, found, expected });
        }
    }
    Ok(Checked { dataset, manifest: manifest.is_some() })
}

/// The ledger in lines: every line of the input, every text of the shards, every row of the dataset.
pub fn ledger_lines(manifest: &DatasetManifest) -> String {
    let ledger = manifest.seal.ledger;
    let sum = |counters: &[(&str, u64)]| {
        let (name, total) = counters[0];
        let parts: Vec<String> = counters[1..].iter().map(|(name, n)| format!("{n} {name}")).collect();
        format!("{total} {name} = {}", parts.join(" + "))
    };
    let mapper = ledger.mapper.map(|mapper| sum(&mapper.counters()));
    let unknown = || "lines unknown, for want of --counts: a mapper that failed goes unnoticed".to_owned();
    let mut lines = format!("ledger            {}\n", mapper.unwrap_or_else(unknown));
    let reducer = ledger.reducer.counters();
    lines += &format!("                  {} reviews, {}\n", ledger.reducer.reviews, sum(&reducer[1..]));
    lines += &format!(
        "                  {} rows = {} rows here + {} left_out\n",
        ledger.reducer.rows, manifest.rows, manifest.left_out
    );
    lines
}

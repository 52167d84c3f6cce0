//! The shards of one run to one dataset with its vocabulary.
//!
//! Every shard is read and checked before anything is written. The dictionaries are summed in one pass, the rows
//! merged in another; no shard is held whole, and memory does not grow with the number of shards or rows. The
//! result depends on the rows and the settings alone: not on hosts, attempts or the number of partitions.

mod card;
mod error;
mod make;
mod publish;
mod rows;
mod run;
mod vocabulary;

pub mod counts;
pub mod gc;
pub mod progress;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::Digest;
use corpus::ledger::{MapperCounts, Share, check_run};
use dataset::Row;
use dataset::commit::{Commit, RECORD_BYTES_MAX, SEAL_KEY};
use dataset::dataset_file::DatasetReader;
use dataset::manifest::{DatasetManifest, Ledger, Seal};
use dataset::spool::Spool;
use store::{Key, Recorded, Store};

pub use crate::card::describe;
use crate::error::at;
pub use crate::error::{Error, Result};
pub use crate::make::{Content, DatasetOptions, Hashes, Making, Size, VocabularyFrom};
use crate::progress::Progress;
use crate::publish::Places;
use crate::rows::each_row;
use crate::run::{
    VerifiedShard, check_sealed, complete, parsed_seal, read_commits, read_seal, seal_of, verify,
};
pub use crate::vocabulary::Ids;
use crate::vocabulary::each_word;

/// The most shards that are read side by side; more are merged in groups first.
const FAN_IN: usize = 64;

/// Threads that read a shard or a dataset: each holds a chunk of every column.
const THREADS_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("8 is more than 0");

/// The dictionary of one shard is kept in memory up to this size while the shard is checked.
const DICTIONARY_BYTES_MAX: u64 = 96 << 20;

/// What to make of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which dataset.
    pub dataset: DatasetOptions,
    /// The mappers' part of the ledger, where it is known.
    pub mapper: Option<MapperCounts>,
    /// The share of bad lines that is accepted in all of them.
    pub bad_lines_max: Share,
    /// Where temporary files go.
    pub scratch: PathBuf,
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
    let making = Making::open(&options.dataset, &seal.settings)?;
    if let Some(manifest) = making.look()? {
        if manifest.seal.shards != seal.shards {
            return making.refused("a dataset of other shards", "one of this run");
        }
        making.check_settings(&manifest)?;
        if making.is_complete(&manifest)? {
            return Ok(Outcome::Unchanged(manifest));
        }
    }
    making.check_place()?;
    let mut shards = Shards {
        shards: verify_all(store, &commits, options, progress)?,
        spool: Spool::create(&options.scratch)?,
        without: making.without(),
        rows: seal.ledger.reducer.rows,
        row_digest: seal.row_digest,
        progress,
    };
    let (manifest, card) = making.make(&mut shards, seal, progress, |seal| put_seal(store, seal))?;
    Ok(Outcome::Made(Box::new(manifest), card))
}

fn check_ledger(ledger: &Ledger, options: &Options) -> Result<()> {
    match &ledger.mapper {
        Some(mapper) => check_run(mapper, &ledger.reducer)?,
        None => ledger.reducer.check()?,
    }
    options.mapper.map_or(Ok(()), |mapper| mapper.judge(options.bad_lines_max).map_err(Error::BadLines))
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
    match store.put_record(&Key::new(SEAL_KEY)?, &json, RECORD_BYTES_MAX)? {
        Recorded::AsGiven => Ok(()),
        // A seal without the mappers' part says less than this merge knows; the dataset's manifest has it all.
        Recorded::Other(sealed) => check_sealed(store, &parsed_seal(store, &sealed)?, seal),
    }
}

/// The shards of a run, as what a dataset is made of.
struct Shards<'a> {
    shards: Vec<VerifiedShard>,
    /// Holds what is merged in groups first.
    spool: Spool,
    /// A dataset whose texts are left out.
    without: Option<&'a DatasetReader>,
    /// The rows of all shards.
    rows: u64,
    row_digest: Digest,
    progress: &'a Progress,
}

impl Content for Shards<'_> {
    type Error = Error;

    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        let bar = self.progress.stage("summing dictionaries", self.shards.len() as u64);
        each_word(&self.shards, &mut self.spool, visit)?;
        bar.finish_and_clear();
        Ok(())
    }

    fn size(&mut self) -> Result<Size> {
        let tokens = self.shards.iter().map(|shard| shard.tokens).sum();
        let mut size = Size { rows: self.rows, tokens, row_digest: self.row_digest, left_out: 0 };
        if let Some(without) = self.without {
            for shard in &self.shards {
                leave_out(shard, &mut Hashes::of(without), &mut size)?;
            }
        }
        Ok(size)
    }

    fn each_row(&mut self, ids: &Ids<'_>, visit: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
        let mut without = self.without.map(Hashes::of);
        each_row(&self.shards, ids, &mut self.spool, |row| {
            let is_left_out = without.as_mut().map_or(Ok(false), |hashes| hashes.contains(row.hash))?;
            if is_left_out { Ok(()) } else { visit(row) }
        })
    }
}

/// Takes off the size the rows of a shard whose hashes are among these.
fn leave_out(shard: &VerifiedShard, hashes: &mut Hashes, size: &mut Size) -> Result<()> {
    let mut reader = shard.open()?;
    reader.keep_dictionary(DICTIONARY_BYTES_MAX)?;
    let mut row = Row::default();
    for at in 0..reader.size().rows {
        reader.row(at, &mut row)?;
        if hashes.contains(row.hash)? {
            size.left_out += 1;
            size.rows -= 1;
            size.tokens -= row.tokens.len() as u64;
            size.row_digest -= reader.digest_of(&row)?;
        }
    }
    Ok(())
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
    let check_split = |checked: &mut dataset::Result<()>, row_at, row: &Row| {
        if checked.is_ok() {
            *checked = dataset.check_split(row_at, row);
        }
    };
    dataset.try_verify_blocks(dataset::threads(THREADS_MAX), || Ok(()), check_split, |checked| checked)?;
    let manifest = Places::of(file).read_manifest()?;
    if let Some(manifest) = &manifest {
        check_manifest(file, &dataset, manifest)?;
    }
    Ok(Checked { dataset, manifest: manifest.is_some() })
}

/// Holds a dataset against the manifest beside it.
fn check_manifest(file: &Path, dataset: &DatasetReader, manifest: &DatasetManifest) -> Result<()> {
    let sha256 = at(file, "read the dataset", dataset::sha256::of_file(file))?;
    let bytes = at(file, "look up the dataset", file.metadata())?.len();
    let (ours, theirs) = (dataset.digests(), manifest.digests);
    let digests = |digests: dataset::Digests| {
        let dataset::Digests { row_digest, id_digest, vocabulary_digest } = digests;
        format!("{row_digest}, {id_digest}, {vocabulary_digest}")
    };
    let other = |what, found, expected| {
        Err(Error::OtherThanManifest { path: file.to_owned(), what, found, expected })
    };
    let optional = |digest: Option<Digest>| digest.map_or("none".to_owned(), |digest| digest.to_string());
    let (has, says) = (dataset.settings(), &manifest.settings);
    let pairs = [
        ("the SHA-256", sha256, manifest.sha256.clone()),
        ("the size", bytes.to_string(), manifest.bytes.to_string()),
        ("the number of rows", dataset.n_rows().to_string(), manifest.rows.to_string()),
        ("the digests", digests(ours), digests(theirs)),
        ("the vocabulary size", has.vocabulary_size.to_string(), says.vocabulary_size.to_string()),
        ("the vocabulary of", optional(has.vocabulary_of), optional(says.vocabulary_of)),
        ("the texts left out of", optional(has.without), optional(says.without)),
    ];
    if let Some((what, found, expected)) = pairs.into_iter().find(|(_, found, expected)| found != expected) {
        return other(what, found, expected);
    }
    match has.rows.difference(&says.rows) {
        None => Ok(()),
        Some(difference) => other(difference.setting, difference.ours, difference.theirs),
    }
}

/// The ledger in lines: every line of the input, every text of the shards, every row of the dataset.
pub fn ledger_lines(manifest: &DatasetManifest) -> String {
    let ledger = manifest.seal.ledger;
    let sum = |counters: &[(&str, u64)]| {
        let (name, total) = counters[0];
        let parts: Vec<String> = counters[1..].iter().map(|(name, n)| format!("{n} {name}")).collect();
        format!("{total} {name} = {}", parts.join(" + "))
    };
    let mapper = ledger.mapper.map(|mapper| sum(&mapper.ledger()));
    let unknown = || "lines unknown, for want of --counts: a mapper that failed goes unnoticed".to_owned();
    let mut lines = format!("ledger            {}\n", mapper.unwrap_or_else(unknown));
    if let Some(n @ 1..) = ledger.mapper.map(|mapper| mapper.invalid_utf8) {
        lines += &format!("                  {n} lines with bytes that are not UTF-8 (invalid_utf8)\n");
    }
    let reducer = ledger.reducer.counters();
    lines += &format!("                  {} reviews, {}\n", ledger.reducer.reviews, sum(&reducer[1..]));
    lines += &format!(
        "                  {} rows = {} rows here + {} left_out\n",
        ledger.reducer.rows, manifest.rows, manifest.left_out
    );
    lines
}

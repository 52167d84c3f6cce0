//! The shards of one run to one dataset with its vocabulary.
//!
//! Every shard is read and checked before anything is written. The dictionaries are summed in one pass, the rows
//! merged in another; no shard is held whole, and memory does not grow with the number of shards or rows. The
//! result depends on the rows and the settings alone: not on hosts, attempts or the number of partitions.

mod error;
mod rows;
mod run;
mod vocabulary;

pub mod arguments;
pub mod counts;
pub mod gc;

use std::path::PathBuf;

use corpus::digest::Digest;
use corpus::ledger::{MapperCounts, Share, check_run};
use dataset::Row;
use dataset::commit::{Commit, RECORD_BYTES_MAX, SEAL_KEY};
use dataset::dataset_file::DatasetReader;
use dataset::manifest::{DatasetManifest, Ledger, Seal};
use dataset::spool::Spool;
use making::{DatasetContent, DatasetOptions, Hashes, Ids, Making, ProgressBars, Size};
use store::{Key, Recorded, Store};

pub use crate::error::{Error, Result};
use crate::rows::each_row;
use crate::run::{
    VerifiedShard, check_sealed, complete, parsed_seal, read_commits, read_seal, seal_of, verify,
};
use crate::vocabulary::each_word;

/// The most shards that are read side by side; more are merged in groups first.
const FAN_IN: usize = 64;

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
pub fn run(store: &Store, options: &Options, progress: &ProgressBars) -> Result<Outcome> {
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
            return Ok(making.refused("a dataset of other shards", "one of this run")?);
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
        Some(mapper) => check_run(mapper, &ledger.reducer),
        None => ledger.reducer.check(),
    }
    .map_err(making::Error::from)?;
    options.mapper.map_or(Ok(()), |mapper| mapper.judge(options.bad_lines_max).map_err(Error::BadLines))
}

fn verify_all(
    store: &Store,
    commits: &[Commit],
    options: &Options,
    progress: &ProgressBars,
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
    progress: &'a ProgressBars,
}

impl DatasetContent for Shards<'_> {
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

    fn each_row(&mut self, ids: &Ids<'_>, visit: &mut dyn FnMut(&Row) -> making::Result<()>) -> Result<()> {
        let mut without = self.without.map(Hashes::of);
        each_row(&self.shards, ids, &mut self.spool, |row| {
            let is_left_out = without.as_mut().map_or(Ok(false), |hashes| hashes.contains(row.hash))?;
            if is_left_out { Ok(()) } else { Ok(visit(row)?) }
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

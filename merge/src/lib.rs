//! Merges the shards of one run into one dataset with its vocabulary.
//!
//! Every shard is read and verified before anything is written. One pass sums the dictionaries, another
//! merges the rows. Shards are read chunk by chunk, and memory does not grow with the number of shards or
//! rows. The result depends only on the rows and the settings, not on hosts, attempts or the number of
//! partitions.

mod commits;
mod merge_rows;
mod seal;
mod verify;
mod vocabulary;

pub mod arguments;
pub mod counts;
pub mod gc;
pub mod report;

use std::path::PathBuf;

use corpus::digest::Digest;
use corpus::ledger::{Limits, MapperCounts, Part, TooMany, check_run};
use dataset::Row;
use dataset::card::Card;
use dataset::commit::{Commit, RECORD_BYTES_MAX, SEAL_KEY};
use dataset::dataset_file::DatasetReader;
use dataset::manifest::{DatasetManifest, Ledger, Seal};
use dataset::spool::Spool;
use making::{DatasetContent, DatasetOptions, Hashes, Ids, Making, ProgressBars, Size, TextsWriter};
use program::exit::{Exit, Failed};
use store::{Key, Recorded, Store};

use crate::commits::{complete, read_commits};
use crate::merge_rows::each_row;
use crate::seal::{check_sealed, parsed_seal, read_seal, seal_of};
use crate::verify::{VerifiedShard, verify};
use crate::vocabulary::each_word;

/// Result of a merge.
pub type Result<T> = std::result::Result<T, Failed>;

/// Maximum number of shards read at once. More are first merged in groups.
const FAN_IN: usize = 64;

/// Maximum memory for the dictionary of a shard during its verification. A larger one is read from the file.
const DICTIONARY_BYTES_MAX: u64 = 96 << 20;

/// Options of a merge.
#[derive(Clone, Debug)]
pub struct Options {
    /// The dataset to make.
    pub dataset: DatasetOptions,
    /// The mappers' ledger, if it is known.
    pub mapper: Option<MapperCounts>,
    /// Limits of the lines in all counts.
    pub limits: Limits,
    /// Folder for temporary files.
    pub scratch: PathBuf,
}

/// Result of a merge.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A dataset was made, with this card.
    Made(Box<DatasetManifest>, Box<Card>),
    /// The dataset already exists, complete and with the same settings.
    Unchanged(Box<DatasetManifest>),
}

/// Merges a run. If the run is refused, no file is created, neither in the run's folder nor elsewhere.
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
        // A dataset written by sentimill has no shards. With the same rows, the merged dataset is the same file. The
        // dataset is therefore made again and compared, and its manifest gets the list of shards.
        let is_of_sentimill = manifest.seal.shards.is_empty() && manifest.seal.row_digest == seal.row_digest;
        if manifest.seal.shards != seal.shards && !is_of_sentimill {
            making.refused_unless_replaced("a dataset of other shards", "one of this run")?;
        } else {
            making.check_settings(&manifest)?;
            if !is_of_sentimill && making.is_complete(&manifest)? {
                return Ok(Outcome::Unchanged(manifest));
            }
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
    let (manifest, card) = making.make(&mut shards, &seal, progress, |seal| put_seal(store, seal))?;
    Ok(Outcome::Made(Box::new(manifest), Box::new(card)))
}

fn check_ledger(ledger: &Ledger, options: &Options) -> Result<()> {
    match &ledger.mapper {
        Some(mapper) => check_run(mapper, &ledger.reducer),
        None => ledger.reducer.check(),
    }?;
    options.mapper.map_or(Ok(()), |mapper| {
        mapper.judge(options.limits, Part::All, "in their encoding").map_err(|too_many| {
            let advice = match &too_many {
                TooMany::Bad(found) => {
                    format!("the logs of the mappers list the first ones{}", found.advice())
                }
                TooMany::InvalidUtf8(found) => {
                    format!("pass the encoding of the input to mapper with --encoding{}", found.advice())
                }
            };
            Failed::new(Exit::BadInput, format!("{too_many}; {advice}"))
        })
    })
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

/// Puts the run's manifest, or checks that the existing one is equal.
fn put_seal(store: &Store, seal: &Seal) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(seal).expect("a seal of plain values is JSON");
    json.push(b'\n');
    match store.put_record(&Key::new(SEAL_KEY)?, &json, RECORD_BYTES_MAX)? {
        Recorded::AsGiven => Ok(()),
        // The run's manifest of an earlier merge may lack the mappers' counts. This merge writes its counts to
        // the manifest of the dataset.
        Recorded::Other(sealed) => check_sealed(store, &parsed_seal(store, &sealed)?, seal),
    }
}

/// The shards of a run, as the content of a dataset.
struct Shards<'a> {
    shards: Vec<VerifiedShard>,
    /// Holds the results of merging in groups.
    spool: Spool,
    /// A dataset whose texts are excluded.
    without: Option<&'a DatasetReader>,
    /// Number of rows of all shards.
    rows: u64,
    row_digest: Digest,
    progress: &'a ProgressBars,
}

impl DatasetContent for Shards<'_> {
    type Error = Failed;

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

    fn each_row(
        &mut self,
        ids: &Ids<'_>,
        _texts: Option<&mut TextsWriter>,
        visit: &mut dyn FnMut(&Row) -> making::Result<()>,
    ) -> Result<()> {
        let mut without = self.without.map(Hashes::of);
        each_row(&self.shards, ids, &mut self.spool, |row| {
            let is_left_out = without.as_mut().map_or(Ok(false), |hashes| hashes.contains(row.hash))?;
            if is_left_out { Ok(()) } else { Ok(visit(row)?) }
        })
    }
}

/// Subtracts from `size` the rows of a shard whose hashes are among these.
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

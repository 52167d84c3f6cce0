//! Merges the shards of one run into one dataset with its vocabulary.
//!
//! Every shard is read and verified before anything is written. One pass sums the dictionaries, another
//! merges the rows. Several threads do both, each for a range of words or hashes. Shards are read chunk by chunk, and
//! memory does not grow with the number of shards or rows. The result depends only on the rows and the settings, not on
//! hosts, attempts, the number of partitions or threads.

mod assemble;
mod commits;
mod joined;
mod merge_rows;
mod ranges;
mod runs;
mod seal;
mod texts;
mod verify;
mod vocabulary;

pub mod arguments;
pub mod counts;
pub mod gc;
pub mod keep;
pub mod plan;
pub mod report;
pub mod tasks;

pub use assemble::{AssembleOptions, assemble};
pub use keep::DatasetWords;
pub use ranges::Ranges;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::Digest;
use corpus::ledger::{Limits, MapperCounts, Part, TooMany, check_run};
use dataset::card::Card;
use dataset::commit::{Commit, RECORD_BYTES_MAX, SEAL_KEY};
use dataset::dataset_file::DatasetReader;
use dataset::hashes::HashFile;
use dataset::manifest::{DatasetManifest, Ledger, Seal};
use dataset::spool::Spool;
use dataset::{Row, RowsSize, WordsReader, in_order};
use making::{DatasetContent, DatasetOptions, Hashes, Ids, Making, ProgressBars, Rows, Size};
use program::exit::{Exit, Failed};
use store::{Key, Recorded, Store};

use crate::commits::{complete, read_commits};
use crate::joined::{Joint, PartitionsOfRuns};
use crate::keep::Kept;
use crate::merge_rows::MergedRows;
use crate::runs::Runs;
use crate::seal::{check_sealed, parsed_seal, read_seal, seal_of};
use crate::texts::Partition;
use crate::verify::{DICTIONARY_BYTES_MAX, KnownShard, Role, verify_all};
use crate::vocabulary::{IdMap, RANGES_MAX, WordRanges, each_word};

/// Result of a merge.
pub type Result<T> = std::result::Result<T, Failed>;

/// Maximum number of shards read at once. More are first merged in groups.
const FAN_IN: usize = 64;

/// Options of a merge.
#[derive(Clone, Debug)]
pub struct Options {
    /// The dataset to make.
    pub dataset: DatasetOptions,
    /// The mappers' ledger and the limits of its counts.
    pub counted: Counted,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// The ranges of hashes in which threads merge rows, if not as many as suit the number of rows.
    pub ranges: Option<Ranges>,
    /// Where the words of all texts are kept, if they are.
    pub keep: Option<Store>,
    /// Folder for temporary files.
    pub scratch: PathBuf,
}

/// The mappers' ledger.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// The ledger, if it is known.
    pub mapper: Option<MapperCounts>,
    /// Limits of the lines in all counts.
    pub limits: Limits,
}

/// Result of a merge.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A dataset was made, with this card.
    Made(Box<DatasetManifest>, Box<Card>),
    /// The dataset already exists, complete and with the same settings.
    Unchanged(Box<DatasetManifest>),
}

/// What a dataset is made of.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Runs of reducers.
    pub runs: Vec<Store>,
    /// Datasets whose words were kept.
    pub datasets: Vec<DatasetWords>,
}

/// Merges runs. If one of them is refused, no file is created, neither in the run's folder nor elsewhere.
pub fn run(sources: &Sources, options: &Options, progress: &ProgressBars) -> Result<Outcome> {
    let runs = Runs::read(sources, &options.counted)?;
    let making = Making::open(&options.dataset, &runs.seal.settings)?;
    if let Some(unchanged) = existing(&making, &runs.seal)?
        && options.keep.as_ref().map_or(Ok(true), |store| keep::has_words_of(store, &unchanged.seal))?
    {
        return Ok(Outcome::Unchanged(unchanged));
    }
    let commits = runs.commits(options.keep.is_some())?;
    let n_rows = runs.seal.ledger.reducer.rows;
    let ranges = options.ranges.clone().unwrap_or_else(|| Ranges::suiting(n_rows, commits.len()));
    let bar = progress.stage("checking shards", commits.len() as u64);
    let (scratch, threads) = (&*options.scratch, options.threads);
    let has_rests = commits.len() > runs.n_shards();
    let hashes = if has_rests { Some(HashFile::create(scratch)?) } else { None };
    let verified = verify_all(&commits, hashes.as_ref(), scratch, &ranges, threads, || bar.inc(1));
    bar.finish_and_clear();
    let mut shards = verified?;
    let (mut seal, mut joint, mut kept) = (runs.seal.clone(), None, None);
    if let Some(hashes) = &hashes {
        let rests = shards.split_off(runs.n_shards());
        let partitions = runs.numbers().zip(shards.iter().zip(&rests));
        let parts = PartitionsOfRuns {
            partitions: partitions.map(|(run, (shard, rest))| (run, Partition { shard, rest })).collect(),
            hashes,
            settings: &seal.settings,
            ranges: &ranges,
            threads,
            scratch,
        };
        kept = options.keep.as_ref().map(|store| (Kept::new(&seal.settings, scratch), store));
        let bar = progress.stage("joining runs", runs.n_shards() as u64);
        let found = parts.joint(
            || bar.inc(1),
            |text, hash, votes| kept.as_mut().map_or(Ok(()), |(kept, _)| kept.add(text, hash, votes)),
        );
        bar.finish_and_clear();
        let mut found = found?;
        seal.ledger.reducer += found.added;
        seal.ledger.reducer -= found.removed;
        seal.ledger.reducer.check()?;
        for shard in &found.shards {
            shard.role.add(&mut seal.row_digest, shard.digests.row_digest);
        }
        if let Some((kept, store)) = &mut kept {
            keep::check_place(store, seal.row_digest)?;
            let bar = progress.stage("keeping words", runs.n_shards() as u64);
            let others = parts.others(&found, || bar.inc(1), |text, hash, votes| kept.add(text, hash, votes));
            bar.finish_and_clear();
            others?;
        }
        shards.append(&mut found.shards);
        joint = Some(found);
    }
    let mut shards = Shards {
        sizes: vec![RowsSize::default(); ranges.n()],
        shards,
        joint: joint.as_ref(),
        ranges,
        scratch,
        spool: Spool::create(scratch)?,
        without: making.inputs().without(),
        row_digest: seal.row_digest,
        threads,
        progress,
    };
    let (manifest, card) = making.make(&mut shards, &seal, progress, |seal| {
        if let Some((kept, store)) = kept {
            kept.put(store, &seal.ledger, scratch)?;
        }
        runs.put_seals()
    })?;
    Ok(Outcome::Made(Box::new(manifest), Box::new(card)))
}

/// The commit records of a complete run, and its manifest. Checks the ledger.
fn checked_run(store: &Store, counted: &Counted) -> Result<(Vec<Commit>, Seal)> {
    let commits = complete(store, read_commits(store)?)?;
    let sealed = read_seal(store)?;
    let mapper = counted.mapper.or(sealed.as_ref().and_then(|seal| seal.ledger.mapper));
    let seal = seal_of(&commits, mapper);
    if let Some(sealed) = &sealed {
        check_sealed(store, sealed, &seal)?;
    }
    check_ledger(&seal.ledger, counted)?;
    Ok((commits, seal))
}

/// Checks the output. If the dataset exists already, complete, returns that.
fn existing(making: &Making<'_>, seal: &Seal) -> Result<Option<Box<DatasetManifest>>> {
    if let Some(manifest) = making.look()? {
        // A dataset written by sentimill has no shards. With the same rows, the merged dataset is the same file. The
        // dataset is therefore made again and compared, and its manifest gets the list of shards.
        // The digest of several runs is not known yet.
        let is_alike = manifest.seal.row_digest == seal.row_digest || seal.run.is_empty();
        let is_of_sentimill = manifest.seal.shards.is_empty() && is_alike;
        if manifest.seal.shards != seal.shards && !is_of_sentimill {
            making.refused_unless_replaced("a dataset of other shards", "one of this run")?;
        } else {
            making.check_settings(&manifest)?;
            if !is_of_sentimill && making.is_complete(&manifest)? {
                return Ok(Some(manifest));
            }
        }
    }
    making.check_place()?;
    Ok(None)
}

fn check_ledger(ledger: &Ledger, counted: &Counted) -> Result<()> {
    match &ledger.mapper {
        Some(mapper) => check_run(mapper, &ledger.reducer),
        None => ledger.reducer.check(),
    }?;
    counted.mapper.map_or(Ok(()), |mapper| {
        mapper.judge(counted.limits, Part::All, "in their encoding").map_err(|too_many| {
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
    shards: Vec<KnownShard>,
    /// The texts that are in several runs.
    joint: Option<&'a Joint>,
    ranges: Ranges,
    /// The size of each range, without the omitted rows.
    sizes: Vec<RowsSize>,
    /// Folder for temporary files.
    scratch: &'a Path,
    /// Holds the results of merging in groups.
    spool: Spool,
    /// A dataset whose texts are omitted.
    without: Option<&'a DatasetReader>,
    /// Digest of all rows.
    row_digest: Digest,
    threads: NonZeroUsize,
    progress: &'a ProgressBars,
}

impl DatasetContent for Shards<'_> {
    type Error = Failed;

    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        let bar = self.progress.stage("summing dictionaries", self.shards.len() as u64);
        let ranges = WordRanges::of(&self.shards, self.threads.get().min(RANGES_MAX))?;
        each_word(&self.shards, &ranges, 0..ranges.n(), (self.scratch, self.threads), visit)?;
        bar.finish_and_clear();
        Ok(())
    }

    fn size(&mut self) -> Result<Size> {
        let Self { shards, ranges, sizes, without, threads, .. } = self;
        let mut size = Size { row_digest: self.row_digest, ..Size::default() };
        // The removed rows are those of the shards before.
        for shard in &*shards {
            add_sizes(shard.role, sizes, &shard.sizes);
        }
        if let Some(without) = without {
            let omitted = Omitted::of_all(shards, without, ranges, *threads)?;
            size.left_out = omitted.take_from(sizes);
            size.row_digest -= omitted.row_digest;
        }
        for of_range in sizes {
            size.rows += of_range.rows;
            size.tokens += of_range.tokens;
        }
        Ok(size)
    }

    fn rows<'p>(&'p mut self, ids: &'p Ids<'p>) -> Result<Rows<'p, Failed>> {
        let Self { shards, joint, ranges, sizes, spool, without, threads, .. } = self;
        let map = |_, words: &mut WordsReader| IdMap::of(words, ids);
        let others = (*joint, *without);
        let rows = MergedRows::open((shards, ids, map), (ranges, 0, sizes), others, spool, *threads)?;
        Ok(Rows::Parts(Box::new(rows)))
    }

    fn threads(&self) -> NonZeroUsize {
        self.threads
    }
}

/// Adds the sizes of a shard's ranges, or subtracts those of removed rows.
fn add_sizes(role: Role, sums: &mut [RowsSize], sizes: &[RowsSize]) {
    sums.iter_mut().zip(sizes).for_each(|(sum, &size)| role.add(sum, size));
}

/// The rows of shards whose texts are in another dataset.
struct Omitted {
    /// Their size in each range.
    sizes: Vec<RowsSize>,
    row_digest: Digest,
}

impl Omitted {
    /// Those of all these shards.
    fn of_all(
        shards: &[KnownShard],
        without: &DatasetReader,
        ranges: &Ranges,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let mut all = Self { sizes: vec![RowsSize::default(); ranges.n()], row_digest: Digest::default() };
        let of = |at: usize, put: &mut dyn FnMut((Role, Self))| {
            let dictionary_bytes_max = DICTIONARY_BYTES_MAX / threads.get() as u64;
            put((shards[at].role, Self::of(&shards[at], without, ranges, dictionary_bytes_max)?));
            Ok::<_, Failed>(())
        };
        in_order(shards.len(), threads, 1, of, |(role, omitted)| {
            add_sizes(role, &mut all.sizes, &omitted.sizes);
            role.add(&mut all.row_digest, omitted.row_digest);
            Ok::<_, Failed>(())
        })?;
        Ok(all)
    }

    fn of(
        shard: &KnownShard,
        without: &DatasetReader,
        ranges: &Ranges,
        dictionary_bytes_max: u64,
    ) -> Result<Self> {
        let mut omitted =
            Self { sizes: vec![RowsSize::default(); ranges.n()], row_digest: Digest::default() };
        let mut reader = shard.open()?;
        reader.keep_dictionary(dictionary_bytes_max)?;
        let (mut hashes, mut row, mut at) = (Hashes::of(without), Row::default(), 0);
        for (size, of_range) in shard.sizes.iter().zip(&mut omitted.sizes) {
            for _ in 0..size.rows {
                reader.row(at, &mut row)?;
                at += 1;
                if hashes.contains(row.hash)? {
                    of_range.add_row(row.tokens.len());
                    omitted.row_digest += reader.digest_of(&row)?;
                }
            }
        }
        Ok(omitted)
    }

    /// Subtracts these rows from the sizes of ranges. Returns their number.
    fn take_from(&self, sizes: &mut [RowsSize]) -> u64 {
        sizes.iter_mut().zip(&self.sizes).for_each(|(sum, of_range)| *sum -= *of_range);
        self.sizes.iter().map(|size| size.rows).sum()
    }
}

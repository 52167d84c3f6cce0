//! Joins runs whose texts may be the same.
//!
//! A text in several runs is one row with the sum of its votes. Its rows are subtracted from the shards, and what a reducer
//! makes of the sum is added. Both are collected as shards: their rows, words, digests and counts are subtracted and added,
//! so that the result is that of one run over all the texts.

use std::num::NonZeroUsize;
use std::path::Path;

use corpus::ledger::ReducerCounts;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::collect::{Collection, Collector};
use dataset::hashes::{HashFile, HashList, Place};
use dataset::merge_sorted::merge_sorted;
use dataset::spool::{Run, Spool};
use dataset::{RowsSize, in_order};
use making::at;
use program::exit::{Exit, Failed};
use program::progress::Progress;
use program::temporary::{self, TemporaryFolder};
use store::LocalObject;

use crate::Result;
use crate::ranges::{RangeSizes, Ranges};
use crate::texts::{PartText, Partition, without_stop_words};
use crate::verify::{DICTIONARY_BYTES_MAX, KnownShard, Role, ShardFile};

/// Memory for the rows of each of both shards.
const MEMORY_BYTES: usize = 64 << 20;
/// Size of the buffer for the texts of a partition.
const BUFFER_BYTES: usize = 4 << 10;
/// Texts are written to disk in blocks of about this size.
const BLOCK_BYTES: usize = 1 << 20;

/// The texts that are in several runs.
pub(crate) struct Joint {
    hashes: HashFile,
    place: Place,
    /// Counts of the texts as the runs have them.
    pub(crate) removed: ReducerCounts,
    /// Counts of the texts with the sums of their votes.
    pub(crate) added: ReducerCounts,
    /// The rows to subtract and to add, if there are any.
    pub(crate) shards: Vec<KnownShard>,
    _folder: TemporaryFolder,
}

impl Joint {
    /// Their hashes.
    pub(crate) fn hashes(&self) -> HashList<'_> {
        self.hashes.list(&self.place)
    }

    /// Their hashes, from this one on.
    pub(crate) fn hashes_from(&self, hash: u64) -> Result<HashList<'_>> {
        Ok(self.hashes.list_from(&self.place, hash)?)
    }
}

/// The partitions of several runs.
pub(crate) struct PartitionsOfRuns<'a> {
    /// Each with the number of its run.
    pub(crate) partitions: Vec<(usize, Partition<'a>)>,
    pub(crate) hashes: &'a HashFile,
    pub(crate) settings: &'a Settings,
    pub(crate) ranges: &'a Ranges,
    pub(crate) threads: NonZeroUsize,
    pub(crate) scratch: &'a Path,
}

impl PartitionsOfRuns<'_> {
    /// Finds the texts that are in several runs. Calls `each` for every such text, with the sum of its votes.
    /// Calls `read` after each partition.
    pub(crate) fn joint(
        &self,
        read: impl FnMut(),
        mut each: impl FnMut(&[u8], u64, Votes) -> Result<()>,
    ) -> Result<Joint> {
        let lists: Vec<(usize, Place)> = self
            .partitions
            .iter()
            .flat_map(|(run, part)| {
                [&part.shard.hashes, &part.rest.hashes].map(|place| (*run, place.clone()))
            })
            .collect();
        let hashes = HashFile::create(self.scratch)?;
        let place = self.hashes.write_shared(&lists, &hashes)?;
        let (spool, runs) = self.write_texts(&hashes, &place, read)?;
        let collector = || Collector::new(self.settings.clone(), MEMORY_BYTES, self.scratch);
        let (mut removed, mut added) = (collector(), collector());
        let mut alike: Vec<JointText> = Vec::new();
        let mut flush = |alike: &mut Vec<JointText>| {
            self.sum(alike, &mut removed, |text, hash, votes| {
                added.add_text(text, hash, votes)?;
                each(text, hash, votes)
            })?;
            alike.clear();
            Ok::<_, Failed>(())
        };
        for next in merge_sorted(runs.iter().map(|&run| spool.words(run, BUFFER_BYTES)))? {
            let next = JointText::parsed(&next?.0.0);
            if alike.first().is_some_and(|first| first.hash != next.hash) {
                flush(&mut alike)?;
            }
            alike.push(next);
        }
        flush(&mut alike)?;
        let folder = at(self.scratch, "create a temporary folder", temporary::folder_in(self.scratch))?;
        let (removed, added) = (removed.finish()?, added.finish()?);
        let counts = (removed.totals.counts, added.totals.counts);
        let mut shards = Vec::new();
        if !place.is_empty() {
            for (role, collection) in [(Role::Removed, removed), (Role::Added, added)] {
                shards.push(self.shard(folder.path(), role, collection)?);
            }
        }
        Ok(Joint { hashes, place, removed: counts.0, added: counts.1, shards, _folder: folder })
    }

    /// Visits the texts that are in one run only. Calls `read` after each partition.
    pub(crate) fn others(
        &self,
        joint: &Joint,
        mut read: impl FnMut(),
        mut each: impl FnMut(&[u8], u64, Votes) -> Result<()>,
    ) -> Result<()> {
        self.partitions.iter().try_for_each(|(_, partition)| {
            let mut shared = joint.hashes();
            partition.each_text(
                (self.hashes, self.settings),
                DICTIONARY_BYTES_MAX,
                |hash| Ok(!shared.contains(hash)?),
                |hash, found| each(&found.text, hash, found.votes),
            )?;
            read();
            Ok(())
        })
    }

    /// Writes the texts with shared hashes, as one run per partition.
    fn write_texts(
        &self,
        hashes: &HashFile,
        place: &Place,
        mut read: impl FnMut(),
    ) -> Result<(Spool, Vec<Run>)> {
        enum Found {
            Texts(Vec<Vec<u8>>),
            End,
        }
        let dictionary_bytes_max = DICTIONARY_BYTES_MAX / self.threads.get() as u64;
        let find = |number: usize, put: &mut dyn FnMut(Found)| {
            let (run, partition) = &self.partitions[number];
            let mut shared = hashes.list(place);
            let (mut block, mut bytes) = (Vec::new(), 0);
            partition.each_text(
                (self.hashes, self.settings),
                dictionary_bytes_max,
                |hash| Ok(shared.contains(hash)?),
                |hash, text| {
                    let encoded = JointText::encoded(hash, (*run, number), text);
                    bytes += encoded.len();
                    block.push(encoded);
                    if bytes >= BLOCK_BYTES {
                        bytes = 0;
                        put(Found::Texts(std::mem::take(&mut block)));
                    }
                    Ok(())
                },
            )?;
            put(Found::Texts(block));
            put(Found::End);
            Ok::<_, Failed>(())
        };
        let mut spool = Spool::create(self.scratch)?;
        let mut runs = Vec::with_capacity(self.partitions.len());
        let mut writer = spool.append();
        in_order(self.partitions.len(), self.threads, 1, find, |found| {
            match found {
                Found::Texts(texts) => texts.iter().try_for_each(|text| writer.word(text, 0))?,
                Found::End => {
                    runs.push(writer.end_run());
                    read();
                }
            }
            Ok::<_, Failed>(())
        })?;
        writer.finish()?;
        Ok((spool, runs))
    }

    /// Adds texts of one hash to those to remove, and the sums of equal ones to those to add.
    fn sum(
        &self,
        alike: &[JointText],
        removed: &mut Collector,
        mut add: impl FnMut(&[u8], u64, Votes) -> Result<()>,
    ) -> Result<()> {
        let mut sorted: Vec<_> = alike.iter().map(|text| (text.words(self.settings), text)).collect();
        sorted.sort_by(|(one, a), (other, b)| {
            one.cmp(other).then(b.is_whole.cmp(&a.is_whole)).then(a.run.cmp(&b.run))
        });
        for same in sorted.chunk_by(|(one, _), (other, _)| one == other) {
            let mut votes = Votes::default();
            for (at, (_, text)) in same.iter().enumerate() {
                if let Some((_, twice)) = same[..at].iter().find(|(_, other)| other.run == text.run) {
                    let names = [twice, text].map(|text| &*self.partitions[text.partition].1.shard.name);
                    return Err(twice_in_a_run(text.hash, names));
                }
                removed.add_text(&text.text, text.hash, text.votes)?;
                votes = votes.checked_add(text.votes).ok_or_else(|| {
                    let why = format!(
                        "the text with hash {:016x} has more than {} votes for one rating in all runs; check that no run is \
                         passed twice",
                        text.hash,
                        u32::MAX
                    );
                    Failed::new(Exit::BadInput, why)
                })?;
            }
            // The first one is whole, if one of them is.
            let (_, first) = &same[0];
            add(&first.text, first.hash, votes)?;
        }
        Ok(())
    }

    /// Writes a collection to a shard, for the merge.
    fn shard(&self, folder: &Path, role: Role, collection: Collection) -> Result<KnownShard> {
        let name = format!("{role:?}.h5");
        let path = folder.join(&name);
        collection
            .write_shard(&path, self.settings, &Progress::default())
            .map_err(dataset::Error::in_tmpdir)?;
        let file = ShardFile::Whole(LocalObject::lasting(path, 0).into());
        let mut shard = file.open()?;
        let mut sizes = vec![RowsSize::default(); self.ranges.n()];
        shard.verify_blocks(
            self.threads,
            RangeSizes::default,
            |sizes, row| sizes.add(self.ranges, row),
            |counted| counted.add_to(&mut sizes),
        )?;
        let (digests, n_words) = (shard.digests(), shard.size().words);
        Ok(KnownShard { file, name, role, n_words, sizes, hashes: 0..0, digests })
    }
}

/// The error for a text that two partitions of one run have.
pub(crate) fn twice_in_a_run(hash: u64, [one, other]: [&str; 2]) -> Failed {
    let why = format!(
        "the text with hash {hash:016x} is in {one} and in {other}, expected in one shard only; the reducers' input was \
         not partitioned by text: run the reducers again with a partitioner that uses only the text"
    );
    Failed::new(Exit::BadInput, why)
}

/// A text whose hash is in several runs.
struct JointText {
    hash: u64,
    run: usize,
    partition: usize,
    votes: Votes,
    is_whole: bool,
    text: Vec<u8>,
}

/// Length of the fields before the text: hash, run, partition, five votes, and whether the text is whole.
const FIELDS_BYTES: usize = 8 + 4 + 4 + 5 * 4 + 1;

impl JointText {
    /// The bytes of a text. Their order is that of hashes.
    fn encoded(hash: u64, (run, partition): (usize, usize), text: &PartText) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIELDS_BYTES + text.text.len());
        out.extend_from_slice(&hash.to_be_bytes());
        out.extend([run, partition].iter().flat_map(|&number| (number as u32).to_be_bytes()));
        out.extend(text.votes.0.iter().flat_map(|n| n.to_be_bytes()));
        out.push(u8::from(text.is_whole));
        out.extend_from_slice(&text.text);
        out
    }

    fn parsed(bytes: &[u8]) -> Self {
        let (fields, text) = bytes.split_at(FIELDS_BYTES);
        let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| fields[at + byte]));
        Self {
            hash: u64::from(number(0)) << 32 | u64::from(number(4)),
            run: number(8) as usize,
            partition: number(12) as usize,
            votes: Votes([16, 20, 24, 28, 32].map(number)),
            is_whole: fields[36] == 1,
            text: text.to_vec(),
        }
    }

    /// The words by which texts of one hash are compared.
    fn words(&self, settings: &Settings) -> Vec<u8> {
        without_stop_words(&self.text, settings).collect::<Vec<_>>().join(&b' ')
    }
}

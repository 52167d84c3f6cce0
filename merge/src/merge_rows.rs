//! Merges the rows of shards into the rows of the dataset. Their order does not depend on their distribution
//! among shards, nor on the ranges in which threads merge them.

use std::num::NonZeroUsize;
use std::ops::Range;

use dataset::dataset_file::DatasetReader;
use dataset::merge_sorted::merge_sorted;
use dataset::shard::ShardReader;
use dataset::spool::{Run, Spool, append_row};
use dataset::{Row, RowColumns, RowsSize, WordsReader, in_order};
use making::{Hashes, Ids, Parts, TextsWriter};
use program::exit::Failed;

use crate::FAN_IN;
use crate::Result;
use crate::joined::{Joint, twice_in_a_run};
use crate::ranges::Ranges;
use crate::verify::{KnownShard, Role};
use crate::vocabulary::IdMap;

/// The rows of all shards in the order of the dataset, by range.
pub(crate) struct MergedRows<'a> {
    shards: &'a [KnownShard],
    /// The texts that are in several runs.
    joint: Option<&'a Joint>,
    ranges: &'a Ranges,
    /// The first one of the ranges to merge.
    first: usize,
    /// The size of each range to merge, without the omitted rows.
    sizes: &'a [RowsSize],
    /// A dataset whose texts are omitted.
    without: Option<&'a DatasetReader>,
    ids: &'a Ids<'a>,
    sources: Sources<'a>,
}

/// Rows with ids of the vocabulary, in several sequences that ascend by hash.
enum Sources<'a> {
    Shards(Vec<ShardRows>),
    /// The runs of each range, one per group of shards.
    Runs(&'a Spool, Vec<Vec<Run>>),
}

/// The rows of one shard with ids of the vocabulary.
struct ShardRows {
    source: u32,
    role: Role,
    columns: RowColumns,
    map: IdMap,
    /// Number of rows up to the end of each range.
    ends: Vec<u64>,
}

/// Size of the buffer for a run.
const RUN_BUFFER_BYTES: usize = 64 << 10;

/// Rows that are merged in groups are written to disk in blocks of about this size.
const BLOCK_BYTES: usize = 1 << 20;

/// Maximum number of blocks per thread that wait to be written.
const QUEUED_BLOCKS: usize = 4;

impl<'a> MergedRows<'a> {
    /// Opens the shards, whose ids `map` maps to those of the vocabulary. If there are many, merges them in groups. The
    /// rows are those of the ranges from `first` on, one per size.
    pub(crate) fn open(
        (shards, ids, map): (
            &'a [KnownShard],
            &'a Ids<'a>,
            impl Fn(usize, &mut WordsReader) -> Result<IdMap> + Sync,
        ),
        (ranges, first, sizes): (&'a Ranges, usize, &'a [RowsSize]),
        (joint, without): (Option<&'a Joint>, Option<&'a DatasetReader>),
        spool: &'a mut Spool,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let of_ranges = first..first + sizes.len();
        let open = |these: Range<usize>| {
            let mut all = Vec::with_capacity(these.len());
            let open = |at: usize, put: &mut dyn FnMut(ShardRows)| {
                let shard = these.start + at;
                let mut reader = shards[shard].open()?;
                let map = map(shard, reader.dictionary())?;
                put(ShardRows::of(&reader, (shard as u32, &shards[shard]), map, &of_ranges));
                Ok::<_, Failed>(())
            };
            in_order(these.len(), threads, 1, open, |shard| {
                all.push(shard);
                Ok(())
            })?;
            Ok::<_, Failed>(all)
        };
        let sources = if shards.len() <= FAN_IN {
            Sources::Shards(open(0..shards.len())?)
        } else {
            let mut runs = vec![Vec::new(); sizes.len()];
            for group in (0..shards.len()).step_by(FAN_IN) {
                let shards = open(group..shards.len().min(group + FAN_IN))?;
                merge_group(&shards, first, spool, threads, &mut runs)?;
            }
            Sources::Runs(spool, runs)
        };
        Ok(Self { shards, joint, ranges, first, sizes, without, ids, sources })
    }

    /// Merges sources that ascend by hash, from the start of a range on, without the rows of joint texts. Sorts the rare rows
    /// with equal hashes by their words.
    fn merge(
        &self,
        start: u64,
        sources: Vec<impl Iterator<Item = dataset::Result<Row>>>,
        mut visit: impl FnMut(&Row) -> Result<()>,
    ) -> Result<()> {
        let mut joint = self.joint.map(|joint| joint.hashes_from(start)).transpose()?;
        let mut is_joint = |row: &Row| match &mut joint {
            Some(joint) if self.shards[row.source as usize].role == Role::Run => joint.contains(row.hash),
            _ => Ok(false),
        };
        let mut alike: Vec<Row> = Vec::new();
        for next in merge_sorted(sources)? {
            let (row, _) = next?;
            if is_joint(&row)? {
                continue;
            }
            if alike.first().is_some_and(|first| first.hash != row.hash) {
                self.flush(&mut alike, &mut visit)?;
            }
            alike.push(row);
        }
        self.flush(&mut alike, &mut visit)
    }

    fn flush(&self, alike: &mut Vec<Row>, mut visit: impl FnMut(&Row) -> Result<()>) -> Result<()> {
        if alike.len() > 1 {
            *alike = by_words(alike, self.shards, self.ids)?;
        }
        alike.iter().try_for_each(&mut visit)?;
        alike.clear();
        Ok(())
    }
}

impl Parts for MergedRows<'_> {
    type Error = Failed;

    fn sizes(&self) -> &[RowsSize] {
        self.sizes
    }

    fn each_row(&self, part: usize, visit: &mut dyn FnMut(&Row) -> dataset::Result<()>) -> Result<()> {
        let start = self.ranges.start(self.first + part);
        let mut without = self.without.map(|dataset| Hashes::from(dataset, start)).transpose()?;
        let visit = |row: &Row| {
            let is_omitted = without.as_mut().map_or(Ok(false), |hashes| hashes.contains(row.hash))?;
            if is_omitted { Ok(()) } else { Ok(visit(row)?) }
        };
        match &self.sources {
            Sources::Shards(shards) => {
                let rows = shards.iter().map(|shard| shard.rows(self.first + part));
                self.merge(start, rows.collect(), visit)
            }
            Sources::Runs(spool, runs) => {
                let rows = runs[part].iter().map(|&run| spool.rows(run, RUN_BUFFER_BYTES));
                self.merge(start, rows.collect(), visit)
            }
        }
    }

    fn write_texts(&self, _part: usize, _texts: &mut TextsWriter) -> making::Result<()> {
        Ok(())
    }
}

impl ShardRows {
    fn of(
        reader: &ShardReader,
        (source, KnownShard { sizes, role, .. }): (u32, &KnownShard),
        map: IdMap,
        ranges: &Range<usize>,
    ) -> Self {
        let mut columns = reader.columns().clone();
        let mut before = RowsSize::default();
        sizes[..ranges.start].iter().for_each(|&size| before += size);
        columns.share(before, &sizes[ranges.clone()]);
        let ends = sizes.iter().scan(0, |end, size| {
            *end += size.rows;
            Some(*end)
        });
        Self { source, role: *role, columns, map, ends: ends.collect() }
    }

    /// The rows of a range.
    fn rows(&self, range: usize) -> impl Iterator<Item = dataset::Result<Row>> + use<'_> {
        let from = if range == 0 { 0 } else { self.ends[range - 1] };
        let to = if self.role == Role::Removed { from } else { self.ends[range] };
        let mut reader = self.columns.reader();
        (from..to).map(move |at| {
            let mut row = Row { source: self.source, ..Row::default() };
            reader.read(at, &mut row)?;
            row.tokens.iter_mut().for_each(|token| *token = self.map.get(*token));
            Ok(row)
        })
    }
}

/// Merges a group of shards into one run per range, from range `first` on.
fn merge_group(
    shards: &[ShardRows],
    first: usize,
    spool: &mut Spool,
    threads: NonZeroUsize,
    runs: &mut [Vec<Run>],
) -> Result<()> {
    enum Merged {
        Rows(Vec<u8>),
        End(usize),
    }
    let merge = |range: usize, put: &mut dyn FnMut(Merged)| {
        let mut block = Vec::new();
        for row in merge_sorted(shards.iter().map(|shard| shard.rows(first + range)))? {
            append_row(&row?.0, &mut block);
            if block.len() >= BLOCK_BYTES {
                put(Merged::Rows(std::mem::take(&mut block)));
            }
        }
        put(Merged::Rows(block));
        put(Merged::End(range));
        Ok::<_, Failed>(())
    };
    let mut writer = spool.append();
    in_order(runs.len(), threads, QUEUED_BLOCKS, merge, |merged| {
        match merged {
            Merged::Rows(rows) => writer.rows(&rows)?,
            Merged::End(range) => runs[range].push(writer.end_run()),
        }
        Ok(())
    })?;
    writer.finish()?;
    Ok(())
}

/// Sorts rows of one hash by their words, which are read again from the shards. Equal words in two shards
/// mean that one text was sent to two reducers.
fn by_words(alike: &[Row], shards: &[KnownShard], ids: &Ids<'_>) -> Result<Vec<Row>> {
    let hash = alike[0].hash;
    let mut sources: Vec<u32> = alike.iter().map(|row| row.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut rows: Vec<(Vec<u8>, Row)> = Vec::new();
    for source in sources {
        let mut shard = shards[source as usize].open()?;
        for at in shard.rows_with_hash(hash)? {
            let (mut row, mut joined) = (Row { source, ..Row::default() }, Vec::new());
            shard.row(at, &mut row)?;
            shard.join_words(&row, &mut joined)?;
            row.tokens = joined.split(|&byte| byte == b' ').map(|word| ids.of_word(word)).collect();
            rows.push((joined, row));
        }
    }
    rows.sort_unstable_by(|(a, one), (b, other)| a.cmp(b).then(one.votes.cmp(&other.votes)));
    let twice = rows.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1.source != pair[1].1.source);
    if let Some(pair) = twice {
        return Err(twice_in_a_run(hash, [0, 1].map(|at| &*shards[pair[at].1.source as usize].name)));
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

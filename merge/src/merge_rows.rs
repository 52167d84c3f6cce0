//! Merges the rows of shards into the rows of the dataset. Their order does not depend on their distribution
//! among shards.

use dataset::Row;
use dataset::merge_sorted::merge_sorted;
use dataset::spool::Spool;
use making::Ids;
use program::exit::{Exit, Failed};

use crate::FAN_IN;
use crate::Result;
use crate::verify::VerifiedShard;
use crate::vocabulary::IdMap;

/// Visits all rows of all shards, with ids of the vocabulary, in the order of the dataset.
pub(crate) fn each_row(
    shards: &[VerifiedShard],
    ids: &Ids<'_>,
    spool: &mut Spool,
    mut visit: impl FnMut(&Row) -> Result<()>,
) -> Result<()> {
    if shards.len() <= FAN_IN {
        let sources = shards.iter().zip(0..).map(|(shard, source)| rows_of(shard, source, ids));
        return in_order(sources.collect::<Result<Vec<_>>>()?, shards, ids, visit);
    }
    let mut runs = Vec::new();
    for (group, first) in shards.chunks(FAN_IN).zip((0..).step_by(FAN_IN)) {
        let sources = group.iter().zip(first..).map(|(shard, source)| rows_of(shard, source, ids));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let mut run = spool.append();
        for row in merge_sorted(sources)? {
            run.row(&row?.0)?;
        }
        runs.push(run.finish()?);
    }
    let sources = runs.into_iter().map(|run| spool.rows(run, 256 << 10));
    in_order(sources.collect(), shards, ids, &mut visit)
}

/// The rows of one shard with ids of the vocabulary.
fn rows_of(
    shard: &VerifiedShard,
    source: u32,
    ids: &Ids<'_>,
) -> Result<impl Iterator<Item = dataset::Result<Row>> + use<>> {
    let mut reader = shard.open()?;
    let map = IdMap::of(reader.dictionary(), ids)?;
    let n_rows = reader.size().rows;
    Ok((0..n_rows).map(move |at| {
        let mut row = Row { source, ..Row::default() };
        reader.row(at, &mut row)?;
        row.tokens.iter_mut().for_each(|token| *token = map.get(*token));
        Ok(row)
    }))
}

/// Merges sources that ascend by hash, and sorts the rare rows with equal hashes by their words.
fn in_order(
    sources: Vec<impl Iterator<Item = dataset::Result<Row>>>,
    shards: &[VerifiedShard],
    ids: &Ids<'_>,
    mut visit: impl FnMut(&Row) -> Result<()>,
) -> Result<()> {
    let mut alike: Vec<Row> = Vec::new();
    for next in merge_sorted(sources)? {
        let (row, _) = next?;
        if alike.first().is_some_and(|first| first.hash != row.hash) {
            flush(&mut alike, shards, ids, &mut visit)?;
        }
        alike.push(row);
    }
    flush(&mut alike, shards, ids, &mut visit)
}

fn flush(
    alike: &mut Vec<Row>,
    shards: &[VerifiedShard],
    ids: &Ids<'_>,
    mut visit: impl FnMut(&Row) -> Result<()>,
) -> Result<()> {
    if alike.len() > 1 {
        *alike = by_words(alike, shards, ids)?;
    }
    alike.iter().try_for_each(&mut visit)?;
    alike.clear();
    Ok(())
}

/// Sorts rows of one hash by their words, which are read again from the shards. Equal words in two shards
/// mean that one text was sent to two reducers.
fn by_words(alike: &[Row], shards: &[VerifiedShard], ids: &Ids<'_>) -> Result<Vec<Row>> {
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
        let name = |at: usize| shards[pair[at].1.source as usize].name.clone();
        return Err(Failed::new(
            Exit::BadInput,
            format!(
                "the text with hash {hash:016x} is in {} and in {}, expected in one shard only; the reducers' input was \
                 not partitioned by text: run the reducers again with a partitioner that uses only the text",
                name(0),
                name(1)
            ),
        ));
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

//! Sums the words of all shards' dictionaries, and maps each shard's ids to those of the vocabulary.

use dataset::WordsReader;
use dataset::merge_sorted::sum_words;
use dataset::spool::Spool;
use dataset::vocabulary::UNKNOWN;
use making::Ids;

use crate::FAN_IN;
use crate::Result;
use crate::verify::VerifiedShard;

/// Visits every distinct word of all shards once, in byte order, with the sum of its counts.
pub(crate) fn each_word(
    shards: &[VerifiedShard],
    spool: &mut Spool,
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<()> {
    let mut each = |word: &[u8], count| {
        visit(word, count);
        Ok(())
    };
    if shards.len() <= FAN_IN {
        return sum_words_of(shards, each);
    }
    let mut runs = Vec::new();
    for group in shards.chunks(FAN_IN) {
        let mut run = spool.append();
        sum_words_of(group, |word, count| Ok(run.word(word, count)?))?;
        runs.push(run.finish()?);
    }
    let sources: Vec<_> = runs.into_iter().map(|run| spool.words(run, 64 << 10)).collect();
    sum_words(sources, |_, _| Ok(()), &mut each)
}

fn sum_words_of(shards: &[VerifiedShard], visit: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
    let mut readers = shards.iter().map(VerifiedShard::open).collect::<Result<Vec<_>>>()?;
    sum_words(readers.iter_mut().map(|shard| words_in_order(shard.dictionary())), |_, _| Ok(()), visit)
}

fn words_in_order(words: &mut WordsReader) -> impl Iterator<Item = dataset::Result<(Vec<u8>, u64)>> {
    (0..words.n_words()).map(|at| {
        let mut word = Vec::new();
        let count = words.read(at, &mut word)?;
        Ok((word, count))
    })
}

/// Maps the ids of one shard to those of the vocabulary. Most words of a shard are not in the vocabulary, so
/// the map has one bit per word and one id per set bit.
pub(crate) struct IdMap {
    bits: Vec<u64>,
    /// Number of set bits before each block of 64.
    ranks: Vec<u32>,
    ids: Vec<u32>,
}

impl IdMap {
    pub(crate) fn of(words: &mut WordsReader, vocabulary: &Ids<'_>) -> Result<Self> {
        let n_blocks = words.n_words().div_ceil(64) as usize;
        let mut map = Self { bits: vec![0; n_blocks], ranks: vec![0; n_blocks], ids: Vec::new() };
        let mut word = Vec::new();
        for at in 0..words.n_words() {
            let block = (at / 64) as usize;
            if at % 64 == 0 {
                map.ranks[block] = map.ids.len() as u32;
            }
            words.read(at, &mut word)?;
            if let Some(id) = vocabulary.get(&word) {
                map.bits[block] |= 1 << (at % 64);
                map.ids.push(id);
            }
        }
        Ok(map)
    }

    /// The id of the shard's word at this index.
    #[inline]
    pub(crate) fn get(&self, place: u32) -> u32 {
        let (block, bit) = (place as usize / 64, place % 64);
        let bits = self.bits[block];
        if bits >> bit & 1 == 0 {
            return UNKNOWN;
        }
        let before = (bits & ((1 << bit) - 1)).count_ones();
        self.ids[(self.ranks[block] + before) as usize]
    }
}

//! The texts of a partition, from its shard and the rest of it.

use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::Row;
use dataset::hashes::HashFile;
use dataset::shard::ShardReader;

use crate::Result;
use crate::verify::KnownShard;

/// A shard and its rest, whose hashes are in the same file.
#[derive(Clone, Copy)]
pub(crate) struct Partition<'a> {
    pub(crate) shard: &'a KnownShard,
    pub(crate) rest: &'a KnownShard,
}

/// A text. Unless it is whole, it lacks its stop words.
pub(crate) struct PartText {
    pub(crate) text: Vec<u8>,
    pub(crate) votes: Votes,
    pub(crate) is_whole: bool,
}

impl Partition<'_> {
    /// Visits the texts whose hashes `is_wanted`, in the order of their hashes.
    pub(crate) fn each_text(
        &self,
        (hashes, settings): (&HashFile, &Settings),
        dictionary_bytes_max: u64,
        mut is_wanted: impl FnMut(u64) -> Result<bool>,
        mut visit: impl FnMut(u64, &PartText) -> Result<()>,
    ) -> Result<()> {
        let open = |shard: &KnownShard| {
            let mut reader = shard.open()?;
            reader.keep_dictionary(dictionary_bytes_max / 2)?;
            Ok::<_, program::exit::Failed>(reader)
        };
        let (mut shard, mut rest) = (open(self.shard)?, open(self.rest)?);
        let (mut of_rows, mut of_rest) = (hashes.list(&self.shard.hashes), hashes.list(&self.rest.hashes));
        let (mut row, mut other) = (0, 0);
        loop {
            let hash = match (of_rows.peek()?, of_rest.peek()?) {
                (Some(one), Some(other)) => one.min(other),
                (Some(hash), None) | (None, Some(hash)) => hash,
                (None, None) => return Ok(()),
            };
            let rows = row..row + of_rows.skip_equal(hash)?;
            let others = other..other + of_rest.skip_equal(hash)?;
            (row, other) = (rows.end, others.end);
            if !is_wanted(hash)? {
                continue;
            }
            let mut texts = Vec::new();
            for at in others {
                texts.push(text_at(&mut rest, at, true)?);
            }
            let mut kept: Vec<Vec<u8>> =
                texts.iter().map(|whole| kept_words(&whole.text, settings)).collect();
            for at in rows {
                let text = text_at(&mut shard, at, false)?;
                // A row that lacks words is in the rest, too.
                match kept.iter().position(|words| *words == text.text) {
                    Some(whole) => drop(kept.swap_remove(whole)),
                    None => texts.push(text),
                }
            }
            texts.iter().try_for_each(|text| visit(hash, text))?;
        }
    }
}

fn text_at(shard: &mut ShardReader, at: u64, is_whole: bool) -> Result<PartText> {
    let (mut row, mut text) = (Row::default(), Vec::new());
    shard.row(at, &mut row)?;
    shard.join_words(&row, &mut text)?;
    Ok(PartText { text, votes: row.votes, is_whole })
}

/// The words of a text that are not stop words.
pub(crate) fn without_stop_words<'a>(
    text: &'a [u8],
    settings: &'a Settings,
) -> impl Iterator<Item = &'a [u8]> {
    let is_stop_word =
        |word: &[u8]| settings.stop_words.binary_search_by(|other| other.as_bytes().cmp(word)).is_ok();
    text.split(|&byte| byte == b' ').filter(move |word| !word.is_empty() && !is_stop_word(word))
}

/// The words that a row of this text keeps.
fn kept_words(text: &[u8], settings: &Settings) -> Vec<u8> {
    let words: Vec<&[u8]> = without_stop_words(text, settings).collect();
    let (front, back) = settings.kept(&words);
    [front, back].concat().join(&b' ')
}

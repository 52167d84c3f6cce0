//! Merges sorted runs on disk into one shard, with bounded memory.
//!
//! A run has words in byte order and rows in row order. The tokens of its rows are indexes into its words.
//! Indexes follow the byte order of words in every run and in the shard. Rows therefore keep their order when
//! indexes of the run are replaced by indexes of the shard, and all runs merge in one pass.

use std::path::Path;

use program::progress::Progress;

use crate::collect::buffer::Buffer;
use crate::error::Result;
use crate::merge_sorted::{merge_sorted, sum_words};
use crate::row_columns::Row;
use crate::shard::ShardWriter;
use crate::spool::{Run, Spool};

/// All runs of a reducer.
pub struct Runs {
    spool: Spool,
    runs: Vec<SortedRun>,
}

struct SortedRun {
    words: Run,
    n_words: u64,
    rows: Run,
}

impl Runs {
    /// Creates an empty set of runs, for an unnamed file in this folder.
    pub fn create(scratch: &Path) -> Result<Self> {
        Ok(Self { spool: Spool::create(scratch)?, runs: Vec::new() })
    }

    /// Writes the sorted content of the buffer as one run.
    pub fn add(&mut self, buffer: &Buffer) -> Result<()> {
        let mut words = self.spool.append();
        for (word, count) in buffer.words() {
            words.word(word, count)?;
        }
        let words = words.finish()?;
        let mut rows = self.spool.append();
        buffer.each_row(|row| rows.row(row))?;
        let rows = rows.finish()?;
        self.runs.push(SortedRun { words, n_words: buffer.n_words(), rows });
        Ok(())
    }

    /// Merges the words of all runs and records the new index of each run's words. Each word of each run is a
    /// step.
    pub fn merge_words(mut self, memory_bytes: usize, progress: Progress) -> Result<MergedRuns> {
        let buffer_bytes = buffer_bytes(memory_bytes, self.runs.len());
        let mut places: Vec<_> =
            self.runs.iter().map(|run| self.spool.reserve_numbers(run.n_words)).collect();
        let sources: Vec<_> = self.runs.iter().map(|run| self.spool.words(run.words, buffer_bytes)).collect();
        let (mut n_words, mut word_bytes) = (0, 0);
        let mut merged = self.spool.append();
        let met = |run: usize, number| {
            progress.advance(1);
            let number = u32::try_from(number).expect("words of a shard are numbered in 32 bits");
            places[run].push(number)
        };
        sum_words(sources, met, |word, count| {
            n_words += 1;
            word_bytes += word.len() as u64;
            merged.word(word, count)
        })?;
        let words = merged.finish()?;
        let runs = self.runs.iter().zip(places).map(|(run, places)| {
            Ok(MappedRun { rows: run.rows, places: places.finish()?, n_places: run.n_words })
        });
        let runs = runs.collect::<Result<_>>()?;
        Ok(MergedRuns { spool: self.spool, memory_bytes, progress, words, n_words, word_bytes, runs })
    }
}

/// Runs whose words have been merged.
pub struct MergedRuns {
    spool: Spool,
    memory_bytes: usize,
    progress: Progress,
    words: Run,
    /// Number of distinct words of all runs.
    pub n_words: u64,
    /// Total length of these words in bytes.
    pub word_bytes: u64,
    runs: Vec<MappedRun>,
}

/// Rows with indexes of their run, and the map to the indexes of the shard.
struct MappedRun {
    rows: Run,
    places: Run,
    n_places: u64,
}

impl MergedRuns {
    /// Writes all words and rows in order.
    pub fn write(mut self, shard: &mut ShardWriter) -> Result<()> {
        let buffer_bytes = buffer_bytes(self.memory_bytes, self.runs.len());
        for word in self.spool.words(self.words, buffer_bytes) {
            let (word, count) = word?;
            shard.word(&word, count)?;
        }
        let n_places: u64 = self.runs.iter().map(|run| run.n_places).sum();
        if n_places as usize * size_of::<u32>() <= self.memory_bytes / 2 {
            let sources = self.runs.iter().map(|run| mapped_rows(&self.spool, run, buffer_bytes));
            return write_merged(sources.collect::<Result<_>>()?, shard);
        }
        // The index maps of all runs do not fit in memory together, so each run is first rewritten
        // separately.
        let mut rewritten = Vec::new();
        for run in &self.runs {
            let rows = mapped_rows(&self.spool, run, buffer_bytes)?;
            let mut out = self.spool.append();
            for row in rows {
                self.progress.advance(1);
                out.row(&row?)?;
            }
            rewritten.push(out.finish()?);
        }
        let sources = rewritten.into_iter().map(|run| self.spool.rows(run, buffer_bytes));
        write_merged(sources.collect(), shard)
    }
}

/// Buffer size per run, for this number of runs read at once.
fn buffer_bytes(memory_bytes: usize, runs: usize) -> usize {
    (memory_bytes / 2 / runs.max(1)).clamp(4 << 10, 256 << 10)
}

/// The rows of a run with indexes of the shard.
fn mapped_rows(
    spool: &Spool,
    run: &MappedRun,
    buffer_bytes: usize,
) -> Result<impl Iterator<Item = Result<Row>> + use<>> {
    let places = spool.numbers(run.places)?;
    Ok(spool.rows(run.rows, buffer_bytes).map(move |row| {
        row.map(|mut row| {
            row.tokens.iter_mut().for_each(|token| *token = places[*token as usize]);
            row
        })
    }))
}

fn write_merged(sources: Vec<impl Iterator<Item = Result<Row>>>, shard: &mut ShardWriter) -> Result<()> {
    for row in merge_sorted(sources)? {
        shard.row(&row?.0)?;
    }
    Ok(())
}

//! Reads a dataset file into a rank's batches: every row once, in the described order, from memory and in blocks.
#![allow(clippy::unwrap_used)]

mod blocks;
mod loader;
mod rows;

use std::path::{Path, PathBuf};

use batches::{Arrangement, Batch, Dealing, Division, Loader, Loading, Part, Plan, Reading, RowWeight, Rows};
use corpus::record::Votes;
use dataset::Row;
use tempfile::TempDir;

/// Unlimited memory.
const ALL: u64 = u64::MAX;

fn open(path: &Path, tokens_max: u32, memory_bytes: u64) -> Rows {
    let division = Division::by_fractions(0.1, 0.05).unwrap();
    Rows::open(path, &Reading { division, tokens_max, memory_bytes }).unwrap()
}

fn loading(batch_rows: usize) -> Loading {
    Loading {
        part: Part::Training,
        arrangement: Arrangement::Shuffled { seed: 5, epoch: 2 },
        batch_rows,
        from_step: 0,
        dealing: Dealing::alone(),
        row_weight: RowWeight::One,
        loaders: 2,
        ahead: None,
    }
}

fn batches(rows: &Rows, loading: Loading) -> Vec<Batch> {
    Loader::start(rows, loading).unwrap().map(Result::unwrap).collect()
}

/// Row indices in the file, batch by batch.
fn places(batches: &[Batch]) -> Vec<Vec<u32>> {
    batches.iter().map(|batch| batch.rows.clone()).collect()
}

fn of_part(n_rows: u32, part: Part) -> Vec<u32> {
    let division = Division::by_fractions(0.1, 0.05).unwrap();
    (0..n_rows).filter(|&at| division.part(row(at).split) == Some(part)).collect()
}

fn sorted(mut rows: Vec<u32>) -> Vec<u32> {
    rows.sort_unstable();
    rows
}

/// Compares a batch with the rows that were written.
#[track_caller]
fn assert_batch(batch: &Batch, tokens_max: usize, row_weight: RowWeight) {
    let rows: Vec<_> = batch.rows.iter().map(|&at| row(at)).collect();
    let read: Vec<Vec<i64>> = rows
        .iter()
        .map(|row| row.tokens.iter().take(tokens_max).map(|&token| i64::from(token)).collect())
        .collect();
    let longest = read.iter().map(Vec::len).max().unwrap_or(0);
    assert_eq!(batch.longest, longest);
    assert_eq!(batch.lengths, read.iter().map(|tokens| tokens.len() as i64).collect::<Vec<_>>());
    let padded = |tokens: &Vec<i64>| {
        let mut tokens = tokens.clone();
        tokens.resize(longest, 0);
        tokens
    };
    assert_eq!(batch.tokens, read.iter().flat_map(padded).collect::<Vec<_>>());
    assert_eq!(batch.labels, rows.iter().map(|row| row.label).collect::<Vec<_>>());
    assert_eq!(batch.ratings, rows.iter().map(|row| row.votes.mode()).collect::<Vec<_>>());
    let weights = rows.iter().map(|row| row_weight.of(row.votes.total() as u32));
    assert_eq!(batch.weights, weights.collect::<Vec<_>>());
}

/// Seven blocks; the last has 1,696 rows.
const N_ROWS: u32 = 100_000;

/// Two blocks per window.
fn in_blocks(path: &Path) -> Rows {
    let rows = open(path, 8, 2_800_000);
    assert!(rows.table(Part::Training).is_none());
    let plan = rows.plan(Part::Training, 100).unwrap();
    assert_eq!(plan, Some(Plan { block_rows: 16_384, blocks_at_once: 2 }));
    rows
}

const N_WORDS: u32 = 500;

/// A row as a function of its index: 1 to 12 tokens, every second text positive, every third with ten reviews.
fn row(at: u32) -> Row {
    let length = 1 + at.wrapping_mul(2_654_435_761) / 7 % 12;
    let n_votes = if at.is_multiple_of(3) { 10 } else { 1 };
    let mut votes = Votes::default();
    votes.0[[0, 4, 1, 3, 2, 4][at as usize % 6]] = n_votes;
    Row {
        hash: u64::from(at) * 1_000_003,
        tokens: (0..length).map(|n| 2 + (at * 31 + n) % N_WORDS).collect(),
        votes,
        label: u8::from(votes.mode() >= 4),
        split: (at.wrapping_mul(40_503) / 16 % 1000) as u16,
        source: 0,
    }
}

/// A dataset of the first `n_rows` rows in a temporary folder.
fn dataset(n_rows: u32) -> (TempDir, PathBuf) {
    fixtures::dataset_of(n_rows, N_WORDS, row)
}

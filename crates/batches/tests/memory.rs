//! Rows read in blocks stay within the memory limit, plus the memory of readers and queued batches.
#![allow(clippy::unwrap_used)]

use std::fs;

use batches::{Arrangement, Dealing, Division, Loader, Loading, Part, Reading, RowWeight, Rows};
use corpus::record::Votes;
use dataset::Row;

/// 60 MB of tokens.
const N_ROWS: u32 = 500_000;
const LENGTH: u32 = 60;
const ALLOWED_BYTES: u64 = 14 << 20;
/// Decoded chunks, the table of digests, stacks, batches, and memory that the allocator keeps per thread. The last
/// varies by 6 MB between runs.
const BESIDES_BYTES: u64 = 24 << 20;

#[test]
fn blocks_take_no_more_memory_than_was_allowed() {
    let (_folder, path) = fixtures::dataset_of(N_ROWS, 500, |at| Row {
        hash: u64::from(at),
        tokens: (0..LENGTH).map(|n| 2 + (at ^ (n * 77)) % 500).collect(),
        votes: Votes([0, 0, 0, 0, 1]),
        label: 1,
        split: (at % 1000) as u16,
        source: 0,
    });
    let division = Division::by_fractions(0.1, 0.0).unwrap();
    let reading = Reading { division, tokens_max: 0, memory_bytes: ALLOWED_BYTES };
    let before = peak_bytes_from_now();
    let rows = Rows::open(&path, &reading).unwrap();
    for epoch in 0..2 {
        let loading = Loading {
            part: Part::Training,
            arrangement: Arrangement::Shuffled { seed: 1, epoch },
            batch_rows: 512,
            from_step: 0,
            dealing: Dealing::alone(),
            row_weight: RowWeight::One,
            loaders: 2,
            ahead: None,
        };
        let n_rows: usize =
            Loader::start(&rows, loading).unwrap().map(|batch| batch.unwrap().rows.len()).sum();
        assert_eq!(n_rows as u64, rows.census(Part::Training).rows);
    }
    let taken = peak_bytes() - before;
    assert!(taken < ALLOWED_BYTES + BESIDES_BYTES, "{taken} bytes");
    // Check that the limit has an effect: a window uses most of it, and all rows would exceed it.
    assert!(taken > ALLOWED_BYTES / 2, "{taken} bytes");
    assert!(rows.census(Part::Training).tokens * 2 > ALLOWED_BYTES + BESIDES_BYTES);
}

/// Resets the peak memory of the process.
fn peak_bytes_from_now() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    peak_bytes()
}

fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

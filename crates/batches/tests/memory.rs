//! Rows that are read in blocks take the memory that was allowed, and what readers and waiting batches need besides.
#![allow(clippy::unwrap_used)]

use std::fs;

use batches::{Arrangement, Dealing, Division, Loader, Loading, Part, Reading, RowWeight, Rows};
use corpus::record::Votes;
use dataset::Row;

/// 60 MB of tokens.
const N_ROWS: u32 = 500_000;
const LENGTH: u32 = 60;
const ALLOWED_BYTES: u64 = 14 << 20;
/// Decoded chunks, the table of digests, stacks, batches, and what the allocator keeps: for each thread some, so that
/// it differs by 6 MB from run to run.
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
        };
        let n_rows: usize =
            Loader::start(&rows, loading).unwrap().map(|batch| batch.unwrap().rows.len()).sum();
        assert_eq!(n_rows as u64, rows.census(Part::Training).rows);
    }
    let taken = peak_bytes() - before;
    assert!(taken < ALLOWED_BYTES + BESIDES_BYTES, "{taken} bytes");
    // The bound means something: a window does take a good part of it, and all rows would take more.
    assert!(taken > ALLOWED_BYTES / 2, "{taken} bytes");
    assert!(rows.census(Part::Training).tokens * 2 > ALLOWED_BYTES + BESIDES_BYTES);
}

/// Forgets what the process took at most until now.
fn peak_bytes_from_now() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    peak_bytes()
}

fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

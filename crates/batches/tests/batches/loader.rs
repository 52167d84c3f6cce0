//! Batches as a rank receives them.

use program::exit::Fails;
use std::collections::BTreeMap;
use std::env;

use batches::Error;
use batches::{Order, ShareSchedule, Shares};
use program::random::Random;

use super::*;

#[test]
fn rows_in_memory_come_in_the_order_of_the_epoch() {
    let (_folder, path) = dataset(1_000);
    let rows = open(&path, 5, ALL);
    let batches = batches(&rows, Loading { row_weight: RowWeight::Log, ..loading(32) });
    let training = of_part(1_000, Part::Training);
    let lengths: Vec<u32> = training.iter().map(|&at| row(at).tokens.len().min(5) as u32).collect();
    let order = Order::of_epoch(Arrangement::Shuffled { seed: 5, epoch: 2 }, &lengths, 32);
    for (step, batch) in batches.iter().enumerate() {
        let expected = order.batch(step).iter().map(|&place| training[place as usize]);
        assert_eq!(batch.rows, expected.collect::<Vec<_>>());
        assert_eq!((batch.step, batch.n_rows_global), (step as u64, batch.rows.len()));
        assert_batch(batch, 5, RowWeight::Log);
    }
    assert_eq!(batches.len(), training.len().div_ceil(32));
}

#[test]
fn a_resumed_epoch_has_exactly_the_remaining_batches() {
    let (_folder, path) = dataset(N_ROWS);
    for rows in [open(&path, 8, ALL), in_blocks(&path)] {
        let whole = batches(&rows, loading(901));
        // Includes the first and last steps of each window.
        for from_step in (0..=whole.len()).step_by(3).chain([whole.len() - 1]) {
            let rest = batches(&rows, Loading { from_step: from_step as u64, ..loading(901) });
            assert!(rest == whole[from_step..], "from step {from_step}");
        }
    }
}

#[test]
fn ranks_cover_each_batch_even_if_shares_change() {
    let (_folder, path) = dataset(5_000);
    let rows = open(&path, 0, ALL);
    let whole = batches(&rows, loading(40));
    let mut schedule = ShareSchedule::new(Shares::of(vec![40, 0, 0]));
    schedule.change(3, Shares::of(vec![1, 38, 1]));
    schedule.change(90, Shares::equal(40, 3));
    let ranks = [0, 1, 2].map(|rank| {
        let dealing = Dealing::Shares { rank, world_size: 3, schedule: schedule.clone() };
        batches(&rows, Loading { dealing, loaders: rank + 1, ..loading(40) })
    });
    for (step, batch) in whole.iter().enumerate() {
        let shares = ranks.each_ref().map(|rank| &rank[step]);
        assert_eq!(shares.map(|share| share.rows.clone()).concat(), batch.rows);
        assert!(shares.iter().all(|share| share.n_rows_global == batch.rows.len()));
        shares.iter().for_each(|share| assert_batch(share, usize::MAX, RowWeight::One));
    }
    assert_eq!(ranks.map(|rank| rank.len()), [whole.len(); 3]);
}

#[test]
fn ranks_cover_each_batch_if_shares_change_while_batches_are_made() {
    const AHEAD: u64 = 5;
    const BATCH: usize = 301;
    let (_folder, path) = dataset(N_ROWS);
    for rows in [open(&path, 0, ALL), in_blocks(&path)] {
        let whole = batches(&rows, loading(BATCH));
        let ranks = [0, 1, 2].map(|rank| {
            let dealing = Dealing::equal(BATCH, rank, 3);
            let loading = Loading { dealing, loaders: 2 * rank + 1, ahead: Some(AHEAD), ..loading(BATCH) };
            let mut loader = Loader::start(&rows, loading).unwrap();
            let mut taken = Vec::new();
            while let Some(batch) = loader.next() {
                let batch = batch.unwrap();
                let (step, first) = (batch.step, 1 + (batch.step * 67 % 299) as usize);
                taken.push(batch);
                if step % 3 == 0 {
                    let shares = || Shares::of(vec![first, BATCH - 1 - first, 1]);
                    loader.change(step + 1 + AHEAD, shares(), BATCH).unwrap();
                    let refused = loader.change(step + AHEAD, shares(), BATCH).unwrap_err().to_string();
                    assert!(refused.contains("is cut already"), "{refused}");
                    assert!(loader.change(step + 1 + AHEAD, Shares::of(vec![BATCH, 0, 1]), BATCH).is_err());
                }
            }
            taken
        });
        for (step, batch) in whole.iter().enumerate() {
            let shares = ranks.each_ref().map(|rank| &rank[step]);
            assert_eq!(shares.map(|share| share.rows.clone()).concat(), batch.rows);
            let decided = step.checked_sub(1 + AHEAD as usize).map(|at| at / 3 * 3);
            let first = decided.map_or(101, |at| 1 + at * 67 % 299);
            let tokens = |batch: &Batch| batch.lengths.iter().sum::<i64>() as f64;
            let ideal = tokens(batch) * first as f64 / BATCH as f64;
            assert!((tokens(shares[0]) - ideal).abs() <= batch.longest as f64, "batch {step}");
        }
    }
}

/// Sizes with this sum, some of them 0.
fn random_sizes(random: &mut Random, batch_rows: usize, n_ranks: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..n_ranks).map(|_| random.below(batch_rows as u64 + 1) as usize).collect();
    cuts.extend([0, batch_rows]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A hundred random schedules, a thousand with PROVE=1: ranks whose shares change before and during an epoch have each
/// row once.
#[test]
fn ranks_have_each_row_once_whatever_the_schedule() {
    let n_schedules = if env::var_os("PROVE").is_some() { 1000 } else { 100 };
    let (_folder, path) = dataset(400);
    let rows = open(&path, 0, ALL);
    for seed in 0..n_schedules {
        let mut random = Random::of(&[25, seed]);
        let (n_ranks, batch_rows) = (2 + random.below(5) as usize, 1 + random.below(60) as usize);
        let ahead = 1 + random.below(4);
        let n_steps = of_part(400, Part::Training).len().div_ceil(batch_rows) as u64;
        let mut first = ShareSchedule::new(Shares::of(random_sizes(&mut random, batch_rows, n_ranks)));
        let mut changes = BTreeMap::new();
        for step in 1..n_steps {
            match random.below(4) {
                0 if changes.is_empty() => {
                    first.change(step, Shares::of(random_sizes(&mut random, batch_rows, n_ranks)));
                }
                1 => drop(changes.insert(step, random_sizes(&mut random, batch_rows, n_ranks))),
                _ => {}
            }
        }
        let whole = batches(&rows, loading(batch_rows));
        let ranks: Vec<Vec<Batch>> = (0..n_ranks)
            .map(|rank| {
                let dealing = Dealing::Shares { rank, world_size: n_ranks, schedule: first.clone() };
                let loading = Loading { dealing, ahead: Some(ahead), ..loading(batch_rows) };
                let mut loader = Loader::start(&rows, loading).unwrap();
                let mut taken = Vec::new();
                while let Some(batch) = loader.next() {
                    let batch = batch.unwrap();
                    if let Some(sizes) = changes.get(&batch.step) {
                        loader.change(batch.step + 1 + ahead, Shares::of(sizes.clone()), batch_rows).unwrap();
                    }
                    taken.push(batch);
                }
                taken
            })
            .collect();
        for (step, batch) in whole.iter().enumerate() {
            let shares: Vec<u32> = ranks.iter().flat_map(|rank| rank[step].rows.clone()).collect();
            assert_eq!(shares, batch.rows, "schedule {seed}, step {step}");
        }
        assert!(ranks.iter().all(|rank| rank.len() == whole.len()), "schedule {seed}");
    }
}

#[test]
fn evaluation_batches_do_not_depend_on_the_number_of_ranks() {
    let (_folder, path) = dataset(5_003);
    let rows = open(&path, 0, ALL);
    let of = |rank, world_size| {
        let (arrangement, dealing) = (Arrangement::Fixed, Dealing::Whole { rank, world_size });
        batches(&rows, Loading { arrangement, dealing, ..loading(64) })
    };
    let alone = of(0, 1);
    let mut together: BTreeMap<u64, Batch> = BTreeMap::new();
    for rank in 0..3 {
        together.extend(of(rank, 3).into_iter().map(|batch| (batch.step, batch)));
    }
    assert!(together.into_values().eq(alone));
}

#[test]
fn a_damaged_chunk_ends_the_batches_with_an_error() {
    let (_folder, path) = dataset(N_ROWS);
    let whole = std::fs::read(&path).unwrap();
    let rows = in_blocks(&path);
    let expected = batches(&rows, loading(301));
    // All tokens are in the middle of the file. The file is damaged after it was opened.
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle..middle + 2_000].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&path, &damaged).unwrap();
    let read: Vec<_> = Loader::start(&rows, loading(301)).unwrap().collect();
    let (last, before) = read.split_last().unwrap();
    assert!(before.iter().zip(&expected).all(|(read, expected)| read.as_ref().unwrap() == expected));
    let error = last.as_ref().unwrap_err();
    assert!(matches!(error, Error::Dataset(dataset::Error::Damaged { .. })), "{error}");
    assert_eq!(error.exit(), program::exit::Exit::MissingInput);
    let again =
        Rows::open(&path, &Reading { division: Division::all_test(), tokens_max: 8, memory_bytes: ALL });
    assert!(matches!(again.err(), Some(Error::Dataset(dataset::Error::Damaged { .. }))));
}

#[test]
fn dropping_a_loader_ends_its_threads() {
    let (_folder, path) = dataset(N_ROWS);
    for rows in [open(&path, 8, ALL), in_blocks(&path)] {
        for n_taken in [0, 1, 50] {
            let mut loader = Loader::start(&rows, loading(301)).unwrap();
            assert_eq!(loader.by_ref().take(n_taken).count(), n_taken);
            // Drop joins the threads; a thread that does not end would block this test.
            drop(loader);
        }
    }
}

#[test]
fn invalid_settings_are_refused() {
    let (_folder, path) = dataset(N_ROWS);
    let rows = in_blocks(&path);
    let refused = |loading| Loader::start(&rows, loading).err().unwrap().to_string();
    assert_eq!(refused(loading(0)), "the batch size is 0, expected 1 or more");
    assert_eq!(refused(Loading { loaders: 0, ..loading(4) }), "loaders is 0, expected 1 or more");
    let dealing = Dealing::Whole { rank: 2, world_size: 2 };
    let expected = "the rank is 2, expected less than the number of ranks, 2";
    assert_eq!(refused(Loading { dealing, ..loading(4) }), expected);
    assert!(refused(Loading { dealing: Dealing::equal(5, 0, 2), ..loading(4) }).contains("with the sum 4"));
    assert!(refused(loading(10_000)).contains("bytes of memory for rows, expected"));
    let error = open(&path, 8, 100_000).plan(Part::Training, 4).unwrap_err().to_string();
    assert!(error.contains("100000 bytes of memory for rows, expected"), "{error}");
}

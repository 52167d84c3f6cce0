//! Rows read in blocks have the same guarantees as rows in memory.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use batches::random::Purpose;

use super::*;

#[test]
fn every_row_occurs_once_and_only_the_last_batch_is_short() {
    let (_folder, path) = dataset(N_ROWS);
    let rows = in_blocks(&path);
    let training = of_part(N_ROWS, Part::Training);
    let mut epochs = Vec::new();
    for epoch in 0..2 {
        let arrangement = Arrangement::Shuffled { seed: 5, epoch };
        let batches = batches(&rows, Loading { arrangement, row_weight: RowWeight::Count, ..loading(301) });
        assert_eq!(batches.len(), training.len().div_ceil(301));
        assert!(batches[..batches.len() - 1].iter().all(|batch| batch.rows.len() == 301));
        batches.iter().for_each(|batch| assert_batch(batch, 8, RowWeight::Count));
        assert!(batches.iter().enumerate().all(|(step, batch)| batch.step == step as u64));
        epochs.push(places(&batches));
        assert_eq!(sorted(epochs[epoch as usize].concat()), training);
    }
    assert_ne!(epochs[0], epochs[1]);
    let arrangement = Arrangement::Shuffled { seed: 5, epoch: 1 };
    let again = batches(&in_blocks(&path), Loading { arrangement, loaders: 5, ..loading(301) });
    assert!(epochs[1] == places(&again));
}

/// A plain implementation of the description; blocks are lists of rows.
fn reference(
    mut blocks: Vec<Vec<u32>>,
    at_once: usize,
    seed: u64,
    epoch: u64,
    batch_rows: usize,
) -> Vec<Vec<u32>> {
    Purpose::Blocks.stream(&[seed, epoch]).shuffle(&mut blocks);
    let mut batches = Vec::new();
    let mut left = Vec::new();
    for (window, blocks) in blocks.chunks(at_once).enumerate() {
        let mut random = Purpose::Order.stream(&[seed, epoch, window as u64]);
        let mut own = sorted(blocks.concat());
        random.shuffle(&mut own);
        let mut rows = [left, own].concat();
        left = rows.split_off(rows.len() / batch_rows * batch_rows);
        left.sort_by_key(|&at| row(at).tokens.len().min(8));
        let mut of_window = Vec::new();
        for pool in rows.chunks_mut(64 * batch_rows) {
            pool.sort_by_key(|&at| row(at).tokens.len().min(8));
            of_window.extend(pool.chunks(batch_rows).map(<[u32]>::to_vec));
        }
        random.shuffle(&mut of_window);
        batches.extend(of_window);
    }
    batches.extend((!left.is_empty()).then_some(left));
    batches
}

#[test]
fn the_order_of_blocks_matches_the_description() {
    let (_folder, path) = dataset(N_ROWS);
    let rows = in_blocks(&path);
    let mut blocks = vec![Vec::new(); 7];
    of_part(N_ROWS, Part::Training).into_iter().for_each(|at| blocks[at as usize / 16_384].push(at));
    for (epoch, batch_rows) in [(0, 64), (1, 301), (2, 2_999)] {
        let arrangement = Arrangement::Shuffled { seed: 5, epoch };
        let read = places(&batches(&rows, Loading { arrangement, ..loading(batch_rows) }));
        assert!(read == reference(blocks.clone(), 2, 5, epoch, batch_rows), "{batch_rows} rows");
    }
}

#[test]
fn a_single_window_has_the_order_of_rows_in_memory() {
    let (_folder, path) = dataset(40_000);
    // The training split alone fits twice into less memory than all rows need.
    let division = Division::by_fractions(0.7, 0.0).unwrap();
    let open = |memory_bytes| Rows::open(&path, &Reading { division, tokens_max: 8, memory_bytes }).unwrap();
    let (memory, blocks) = (open(ALL), open(1_300_000));
    let plan = Plan { block_rows: 16_384, blocks_at_once: 3 };
    assert_eq!(blocks.plan(Part::Training, 64).unwrap(), Some(plan));
    assert!(batches(&memory, loading(64)) == batches(&blocks, loading(64)));
}

#[test]
fn any_batch_size_and_first_step_give_correct_batches() {
    let (_folder, path) = dataset(N_ROWS);
    let rows = in_blocks(&path);
    let training = of_part(N_ROWS, Part::Training);
    let any = (1usize..3_000, any::<u64>(), 0u64..99, 0.0f64..1.0, 1usize..4);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let promises = |(batch_rows, seed, epoch, from, loaders): (usize, u64, u64, f64, usize)| {
        let arrangement = Arrangement::Shuffled { seed, epoch };
        let loading = Loading { arrangement, loaders, ..loading(batch_rows.max(20)) };
        let whole = places(&batches(&rows, loading.clone()));
        prop_assert_eq!(sorted(whole.concat()), training.clone());
        let from_step = (from * whole.len() as f64) as u64;
        let rest = places(&batches(&rows, Loading { from_step, ..loading }));
        prop_assert!(rest == whole[from_step as usize..]);
        Ok(())
    };
    TestRunner::new(config).run(&any, promises).unwrap();
}

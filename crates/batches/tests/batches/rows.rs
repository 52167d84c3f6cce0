//! Contents of an opened dataset, and datasets that are refused.

use batches::{Census, Fold, Tokens, training_texts_in};

use super::*;
use fixtures::dataset_of;

#[test]
fn each_split_has_its_own_rows_and_counts() {
    let (_folder, path) = dataset(N_ROWS);
    for rows in [open(&path, 8, ALL), in_blocks(&path)] {
        let mut all = Vec::new();
        for part in Part::ALL {
            let expected = of_part(N_ROWS, part);
            let fixed = Loading { part, arrangement: Arrangement::Fixed, ..loading(64) };
            let read = places(&batches(&rows, fixed)).concat();
            assert_eq!(sorted(read.clone()), expected);
            all.extend(read);
            let mut census = Census::default();
            for row in expected.iter().map(|&at| row(at)) {
                census.rows += 1;
                census.positive += u64::from(row.label);
                census.labels[usize::from(row.label)] += 1;
                census.tokens += row.tokens.len().min(8) as u64;
                census.ratings[usize::from(row.votes.mode()) - 1] += 1;
            }
            assert_eq!(rows.census(part), census);
            rows.check_classes(part).unwrap();
        }
        assert_eq!(sorted(all), (0..N_ROWS).collect::<Vec<_>>());
    }
    let census = Census { rows: 10, positive: 4, ..Census::default() };
    assert_eq!((census.balanced_pos_weight(), Census::default().balanced_pos_weight()), (Some(1.5), None));
}

#[test]
fn rows_outside_the_folds_are_in_no_split() {
    let (_folder, path) = dataset(N_ROWS);
    let fold = Division::of_fold(Fold { number: 2, of: 3 }, 0.1, 0.05).unwrap();
    for memory_bytes in [ALL, 2_800_000] {
        let rows = Rows::open(&path, &Reading { division: fold, tokens_max: 8, memory_bytes }).unwrap();
        assert_eq!(rows.table(Part::Training).is_some(), memory_bytes == ALL);
        let mut n_rows = 0;
        for part in Part::ALL {
            let fixed = Loading { part, arrangement: Arrangement::Fixed, ..loading(64) };
            let expected: Vec<u32> =
                (0..N_ROWS).filter(|&at| fold.part(row(at).split) == Some(part)).collect();
            assert_eq!(sorted(places(&batches(&rows, fixed)).concat()), expected);
            assert_eq!(rows.rows_under(fold, part), expected.len() as u64);
            n_rows += expected.len();
        }
        assert_eq!(n_rows, (0..N_ROWS).filter(|&at| row(at).split >= 100).count());
        let whole = Division::by_fractions(0.1, 0.05).unwrap();
        assert_eq!(rows.rows_under(whole, Part::Test), of_part(N_ROWS, Part::Test).len() as u64);
    }
}

#[test]
fn texts_that_two_datasets_share_are_counted() {
    let (_folder, path) = dataset(1000);
    let (_other, other) = dataset_of(700, N_WORDS, |at| row(2 * at));
    let rows = open(&path, 8, ALL);
    let reading = Reading { division: Division::all_validation(), tokens_max: 8, memory_bytes: ALL };
    let others = Rows::open(&other, &reading).unwrap();
    let of_training = of_part(1000, Part::Training);
    let expected = of_training.iter().filter(|at| at.is_multiple_of(2)).count() as u64;
    assert!(expected > 0 && expected < 500);
    assert_eq!(training_texts_in(&others, &rows).unwrap(), expected);
    assert_eq!(training_texts_in(&rows, &rows).unwrap(), of_training.len() as u64);
}

#[test]
fn a_table_holds_the_first_tokens_of_each_row() {
    let (_folder, path) = dataset(200);
    let rows = open(&path, 4, ALL);
    let table = rows.table(Part::Training).unwrap();
    assert_eq!(table.rows(), of_part(200, Part::Training));
    let Tokens::U16(tokens) = table.tokens() else { panic!("500 words fit in 16 bits") };
    for place in 0..table.n_rows() {
        let (from, to) = table.span(place);
        let expected = row(table.rows()[place]).tokens;
        assert!(tokens[from..to].iter().map(|&token| u32::from(token)).eq(expected.into_iter().take(4)));
    }
}

#[test]
fn ids_above_16_bits_are_read_in_memory_and_in_blocks() {
    let wide = |at| {
        let row = row(at);
        dataset::Row { tokens: row.tokens.iter().map(|token| token * 130).collect(), ..row }
    };
    let (_folder, path) = dataset_of(40_000, 70_000, wide);
    let fixed = Loading { arrangement: Arrangement::Fixed, ..loading(1_000) };
    for memory_bytes in [ALL, 8_000_000] {
        for batch in batches(&open(&path, 0, memory_bytes), fixed.clone()) {
            let expected: i64 = batch.rows.iter().flat_map(|&at| wide(at).tokens).map(i64::from).sum();
            assert_eq!(batch.tokens.iter().sum::<i64>(), expected);
        }
    }
}

#[test]
fn an_empty_split_or_a_single_label_is_refused() {
    let (_folder, path) = dataset(0);
    let rows = open(&path, 8, ALL);
    let error = rows.check_rows(Part::Training).unwrap_err().to_string();
    let expected = ": no rows for training, expected one or more; check the fractions and the dataset";
    assert_eq!(error, format!("{}{expected}", path.display()));
    assert_eq!(batches(&rows, loading(4)), []);
    let (_folder, path) = dataset_of(100, N_WORDS, |at| row(6 * at));
    let error = open(&path, 8, ALL).check_classes(Part::Training).unwrap_err().to_string();
    assert!(error.contains("rows for training have label 0, expected both labels"), "{error}");
}

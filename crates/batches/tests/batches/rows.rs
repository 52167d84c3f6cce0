//! Contents of an opened dataset, and datasets that are refused.

use batches::{Census, Error, Fold, Tokens};

use super::*;
use corpus::digest::Digest;
use corpus::sample::Sample;
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
                census.digests[usize::from(row.label)] += Digest::of(&row.hash.to_le_bytes());
            }
            assert_eq!(rows.census(part), census);
            let [negative, positive, ..] = census.digests;
            let lines = format!("negative\t{negative}\npositive\t{positive}\n");
            assert_eq!(rows.labelled_digest(part), Digest::of(lines.as_bytes()));
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
fn rows_outside_the_sample_are_in_no_split() {
    // The lower halves of the hashes are spread, and the rows are in order.
    let spread =
        |at: u32| Row { hash: u64::from(at) << 32 | u64::from(at.wrapping_mul(0x9e37_79b9)), ..row(at) };
    let (_folder, path) = dataset_of(N_ROWS, N_WORDS, spread);
    let [half, quarter]: [Sample; 2] = ["0.5", "0.25"].map(|share| share.parse().unwrap());
    for memory_bytes in [ALL, 2_800_000] {
        let opened = |sample| {
            let division = Division::by_fractions(0.1, 0.05).unwrap().sampled(sample);
            Rows::open(&path, &Reading { division, tokens_max: 8, memory_bytes }).unwrap()
        };
        let rows = opened(half);
        assert_eq!(rows.table(Part::Training).is_some(), memory_bytes == ALL);
        let mut n_rows = 0;
        for part in Part::ALL {
            let of_sample = |sample: Sample| {
                let of_part = of_part(N_ROWS, part).into_iter();
                of_part.filter(|&at| sample.keeps(spread(at).hash)).collect::<Vec<_>>()
            };
            let fixed = Loading { part, arrangement: Arrangement::Fixed, ..loading(64) };
            let read = sorted(places(&batches(&rows, fixed.clone())).concat());
            assert_eq!(read, of_sample(half));
            assert_eq!(rows.n_rows(part), read.len() as u64);
            let less = sorted(places(&batches(&opened(quarter), fixed)).concat());
            assert!(!less.is_empty() && less.len() < read.len() && less.iter().all(|at| read.contains(at)));
            let whole = Division::by_fractions(0.1, 0.05).unwrap();
            assert_eq!(rows.rows_under(whole, part), read.len() as u64);
            n_rows += read.len() as u64;
        }
        assert_eq!((rows.n_sampled(), rows.n_rows_of_file()), (n_rows, u64::from(N_ROWS)));
        assert!((45_000..55_000).contains(&n_rows), "{n_rows}");
        assert_eq!(rows.text_digest(), opened(quarter).text_digest());
        let n_training = rows.n_rows(Part::Training);
        assert_eq!(opened(quarter).n_trained_on(&[&rows]).unwrap(), n_training);
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
    assert_eq!(others.n_trained_on(&[&rows]).unwrap(), expected);
    assert_eq!(rows.n_trained_on(&[&rows]).unwrap(), of_training.len() as u64);
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

#[test]
fn rows_without_labels_follow_the_training_rows_and_are_in_no_other_split() {
    let (_folder, path) = dataset(1000);
    // Every second row has a text of the dataset, in any of its splits.
    let (_other, other) = dataset_of(700, N_WORDS, |at| if at < 500 { row(2 * at) } else { row(1000 + at) });
    let all_training = Division::by_fractions(0.0, 0.0).unwrap();
    let reading = Reading { division: all_training, tokens_max: 8, memory_bytes: ALL };
    let unlabelled = Rows::open(&other, &reading).unwrap();
    let alone = open(&path, 8, ALL);
    let mut rows = open(&path, 8, ALL);
    assert_eq!(rows.add_unlabelled(&unlabelled).unwrap(), 500);

    assert_eq!(Part::ALL.map(|part| rows.census(part)), Part::ALL.map(|part| alone.census(part)));
    let n_labelled = alone.n_rows(Part::Training);
    assert_eq!(rows.n_rows(Part::Training), n_labelled + 200);
    assert_eq!(rows.rows_under(all_training, Part::Training), 1200);
    for part in [Part::Validation, Part::Test] {
        assert_eq!(rows.n_rows(part), alone.n_rows(part));
        assert_eq!(rows.table(part), alone.table(part));
    }
    let read = batches(&rows, loading(64));
    let expected: Vec<u32> = of_part(1000, Part::Training).into_iter().chain(1500..1700).collect();
    assert_eq!(sorted(places(&read).concat()), expected);
    for batch in &read {
        for (at, &number) in batch.rows.iter().enumerate() {
            // Row 1500 is the first one of the other dataset whose text is new, and is written there as row 500.
            let tokens = row(number).tokens;
            let read = &batch.tokens[at * batch.longest..][..batch.lengths[at] as usize];
            let expected: Vec<i64> = tokens.iter().take(8).map(|&token| i64::from(token)).collect();
            assert_eq!(read, expected);
        }
    }
    assert!(rows.smallest().contains(row(1600).hash) && rows.smallest().is_sound());
    assert_eq!(unlabelled.n_trained_on(&[&alone, &unlabelled]).unwrap(), 700);
}

#[test]
fn rows_without_labels_must_fit_into_memory_with_the_others() {
    let (_folder, path) = dataset(1000);
    let (_other, other) = dataset_of(700, N_WORDS, |at| row(1000 + at));
    let opened = |path: &Path, memory_bytes| {
        let division = Division::by_fractions(0.0, 0.0).unwrap();
        Rows::open(path, &Reading { division, tokens_max: 8, memory_bytes }).unwrap()
    };
    let unlabelled = opened(&other, ALL);
    let Err(Error::Memory { expected_bytes, .. }) = opened(&path, 1).add_unlabelled(&unlabelled) else {
        panic!("rows in blocks");
    };
    let refused = opened(&path, expected_bytes - 1).add_unlabelled(&unlabelled).unwrap_err();
    assert!(matches!(refused, Error::Memory { found_bytes, .. } if found_bytes == expected_bytes - 1));
    assert_eq!(opened(&path, expected_bytes).add_unlabelled(&unlabelled).unwrap(), 0);
    let (_third, third) = dataset_of(700, N_WORDS + 1, |at| row(1000 + at));
    let refused = opened(&path, ALL).add_unlabelled(&opened(&third, ALL)).unwrap_err();
    assert!(matches!(refused, Error::OtherVocabulary { .. }), "{refused}");
}

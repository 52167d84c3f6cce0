//! Tests of trainings on several ranks.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::io::Write;

use super::*;
use crate::builder::Reading;
use crate::error::Error;
use crate::ranks::Traffic;
use crate::ranks::threads::on_ranks;
use crate::texts::Texts;
use crate::words::Words;

/// Texts of `n_labels` labels. Each label has its own words; all share others.
fn texts(n_texts: usize, n_labels: usize) -> Texts {
    let mut random = random::Random::of(&[5]);
    let mut lines = String::new();
    for text in 0..n_texts {
        let label = text % n_labels;
        lines.push_str(&format!("__label__l{label}"));
        for _ in 0..random.bits() % 12 + 3 {
            let word = random.bits() % 40;
            match random.bits() % 3 {
                0 => lines.push_str(&format!(" own{label}x{}", word % 8)),
                _ => lines.push_str(&format!(" word{word}")),
            }
        }
        lines.push('\n');
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    crate::read_fasttext_file(file.path(), 2, Reading { words: Words::Spaces, ..Reading::default() }).unwrap()
}

fn settings(loss: Loss) -> Settings {
    Settings {
        loss,
        texts_min: 1,
        table: Table::Hashed { bits: 16 },
        is_deterministic: true,
        ..Settings::default()
    }
}

fn trained(
    texts: &Texts,
    settings: &Settings,
    world_size: usize,
    round_texts: usize,
) -> Vec<(Stored, Option<Traffic>)> {
    on_ranks(world_size, |ranks| {
        let ranks = Some((ranks, round_texts));
        let (model, traffic) =
            train_on_ranks(texts, Words::Spaces, settings, ranks, |_| {}, &|| false).unwrap();
        (model.stored, traffic)
    })
}

/// The largest difference of two models' weights.
fn difference(one: &Stored, other: &Stored) -> f32 {
    let both = one.weights.iter().zip(&other.weights).chain(one.biases.iter().zip(&other.biases));
    both.map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

#[test]
fn ranks_find_the_minimum_of_one_rank() {
    let texts = texts(403, 2);
    for loss in [Loss::Logistic, Loss::SquaredHinge] {
        let settings = Settings { epochs: 300, ..settings(loss) };
        let alone = train(&texts, Words::Spaces, &settings, |_| {}).unwrap().stored;
        let largest = alone.weights.iter().fold(0.0, |max: f32, weight| max.max(weight.abs()));
        for (world_size, round_texts) in [(2, 30), (2, 1000), (3, 50)] {
            let all = trained(&texts, &settings, world_size, round_texts);
            let far = difference(&alone, &all[0].0);
            assert!(far < 0.002 * largest, "{loss:?}, {world_size} ranks: {far} of {largest}");
            let (one, other) = (alone.sigmoids[0], all[0].0.sigmoids[0]);
            assert!((one.slope - other.slope).abs() < 0.01, "{one:?} {other:?}");
        }
    }
}

#[test]
fn all_ranks_have_the_same_bits_and_have_them_again() {
    for n_labels in [2, 5] {
        let texts = texts(300, n_labels);
        for loss in [Loss::Logistic, Loss::SquaredHinge] {
            let of = || trained(&texts, &settings(loss), 3, 40);
            let all = of();
            assert!(all.iter().all(|(stored, _)| *stored == all[0].0));
            assert_eq!(all[0].0, of()[2].0);
        }
    }
}

#[test]
fn classifiers_that_ranks_share_are_those_of_one_rank() {
    let texts = texts(200, 5);
    for penalty in [Penalty::L1, Penalty::L2] {
        let settings = Settings { penalty, ..settings(Loss::Logistic) };
        let alone = train(&texts, Words::Spaces, &settings, |_| {}).unwrap().stored;
        for (stored, traffic) in trained(&texts, &settings, 2, 100) {
            assert_eq!(stored, alone);
            // Three exchanges of a classifier per rank.
            assert_eq!(traffic.unwrap().n_rounds, 3);
        }
    }
}

#[test]
fn one_rank_is_a_training_without_ranks() {
    let texts = texts(200, 2);
    let settings = settings(Loss::Logistic);
    let (stored, traffic) = trained(&texts, &settings, 1, 10).swap_remove(0);
    assert_eq!(stored, train(&texts, Words::Spaces, &settings, |_| {}).unwrap().stored);
    assert_eq!(traffic, None);
}

#[test]
fn only_rows_of_several_ranks_are_sent_after_a_round() {
    let mut lines = String::new();
    // Each text has a word of its own, and one that all texts have.
    (0..400).for_each(|text| lines.push_str(&format!("__label__{} own{text} both\n", text / 2 % 2)));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    let reading = Reading { words: Words::Cleaned, ..Reading::default() };
    let texts = crate::read_fasttext_file(file.path(), 1, reading).unwrap();
    let settings = Settings {
        ngrams: 1,
        gap: 0,
        ending: 0,
        epochs: 2,
        table: Table::Exact,
        weighting: Weighting::None,
        ..settings(Loss::Logistic)
    };
    for (_, traffic) in trained(&texts, &settings, 2, 50) {
        let traffic = traffic.unwrap();
        // Four rounds per epoch, each with one row and the bias.
        assert_eq!((traffic.n_rounds, traffic.n_rows, traffic.table_bytes), (8, 16, 4 * 402));
        assert_eq!(traffic.round_bytes, 8 * (4 + 8 + 1 + 1 + 4));
        assert!(traffic.n_bytes > traffic.round_bytes + 4 * 200, "{traffic:?}");
    }
}

#[test]
fn a_single_classifier_with_an_l1_penalty_is_refused_on_several_ranks() {
    let texts = texts(20, 2);
    let settings = Settings { penalty: Penalty::L1, ..settings(Loss::Logistic) };
    let told = on_ranks(2, |ranks| {
        let trained = train_on_ranks(&texts, Words::Spaces, &settings, Some((ranks, 10)), |_| {}, &|| false);
        trained.map(|_| ()).map_err(|error: Error| error.to_string())
    });
    let expected = "--l1: 2 ranks; expected one rank for two labels; omit --l1, or start one rank".to_owned();
    assert_eq!(told, [Err(expected.clone()), Err(expected)]);
}

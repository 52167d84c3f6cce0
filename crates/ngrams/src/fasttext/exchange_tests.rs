//! Tests of trainings on several ranks.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use super::tests::{accuracy, bits, finish, lines, settings, texts, train};
use super::*;
use crate::error::Error;
use crate::features::Features;
use crate::ranks::threads::on_ranks;
use crate::ranks::{Ranks, Traffic, compare};
use crate::texts::Texts;

/// Trains on several ranks. Returns the bits of all weights and the traffic of each rank.
fn trained(texts: &Texts, settings: &Settings, world_size: usize) -> Vec<(Vec<u32>, Option<Traffic>, Model)> {
    on_ranks(world_size, |ranks| ended(Training::on_ranks(texts, settings.clone(), Some(ranks)).unwrap()))
}

fn ended(mut training: Training<'_>) -> (Vec<u32>, Option<Traffic>, Model) {
    while training.step().unwrap().is_some() {}
    training.complete().unwrap();
    let traffic = training.traffic();
    let model = training.finish();
    (bits(&model), traffic, model)
}

/// Settings with several rounds per epoch.
fn of_rounds(optimizer: Optimizer) -> Settings {
    let rate = if optimizer == Optimizer::LazyAdam { 0.02 } else { 0.3 };
    Settings { optimizer, rate, epochs: 10, round_texts: 40, ..settings() }
}

#[test]
fn all_ranks_end_with_the_same_bits_and_learn() {
    let texts = texts(&lines(601));
    for optimizer in [Optimizer::Sgd, Optimizer::Adagrad, Optimizer::LazyAdam] {
        let alone = accuracy(&train(&texts, of_rounds(optimizer)), &texts);
        for world_size in [2, 3] {
            let all = trained(&texts, &of_rounds(optimizer), world_size);
            assert!(all.iter().all(|(bits, ..)| *bits == all[0].0), "{optimizer:?}, {world_size} ranks");
            let several = accuracy(&all[0].2, &texts);
            assert!(several > alone - 0.03, "{optimizer:?}, {world_size} ranks: {several}, alone: {alone}");
        }
    }
}

#[test]
fn one_rank_is_a_training_without_ranks() {
    let texts = texts(&lines(200));
    let settings = of_rounds(Optimizer::Sgd);
    let (found, traffic, _) = trained(&texts, &settings, 1).swap_remove(0);
    assert_eq!(found, bits(&train(&texts, settings)));
    assert_eq!(traffic, None);
}

#[test]
fn several_ranks_have_the_same_bits_again() {
    let texts = texts(&lines(300));
    let dropping = Settings { dropout: 0.2, subsampling: 0.05, lists_bytes: 0, ..of_rounds(Optimizer::Sgd) };
    let threads = Settings { threads: 2, is_deterministic: true, ..of_rounds(Optimizer::Adagrad) };
    for settings in [of_rounds(Optimizer::LazyAdam), dropping, threads] {
        let of = || trained(&texts, &settings, 2).swap_remove(1).0;
        assert_eq!(of(), of(), "{settings:?}");
    }
}

#[test]
fn rows_are_sent_only_if_they_were_updated_and_other_ranks_have_them() {
    // Each text has a word of its own, and one of three words that the texts of both ranks have.
    let mut lines = String::new();
    (0..600).for_each(|text| lines.push_str(&format!("__label__{} own{text} both{}\n", text % 2, text % 3)));
    let texts = texts(&lines);
    let settings = Settings {
        features: Features { ngrams: 1, buckets: 0, ..Features::default() },
        epochs: 2,
        round_texts: 100,
        ..settings()
    };
    for (_, traffic, _) in trained(&texts, &settings, 2) {
        let traffic = traffic.unwrap();
        // Three words, the end of the line, and two labels.
        assert_eq!((traffic.n_rounds, traffic.n_rows), (6, 6 * 6));
        assert_eq!(traffic.table_bytes, 4 * 10 * (600 + 3 + 1 + 2));
        assert!(traffic.round_bytes < 6 * (6 * 44 + 60), "{traffic:?}");
        // The other rows are sent once.
        assert!(traffic.n_bytes > traffic.round_bytes + 300 * 40, "{traffic:?}");
        assert!(traffic.n_bytes < traffic.round_bytes + 300 * 45, "{traffic:?}");
    }
}

#[test]
fn a_resumed_training_on_ranks_has_the_bits_of_an_uninterrupted_one() {
    let texts = texts(&lines(300));
    let settings = of_rounds(Optimizer::Adagrad);
    let whole = trained(&texts, &settings, 2).swap_remove(0).0;
    for n_rounds in [1, 3, 6] {
        let states = on_ranks(2, |ranks| {
            let mut training = Training::on_ranks(&texts, settings.clone(), Some(ranks)).unwrap();
            (0..n_rounds).for_each(|_| assert!(training.step().unwrap().is_some()));
            training.complete().unwrap();
            let mut state = Vec::new();
            training.save(&mut state).unwrap();
            state
        });
        assert_eq!(states[0], states[1]);
        let resumed = on_ranks(2, |ranks| {
            let state = &mut &states[0][..];
            ended(Training::resume_on_ranks(&texts, settings.clone(), Some(ranks), state).unwrap()).0
        });
        assert_eq!([&resumed[0], &resumed[1]], [&whole; 2], "after {n_rounds} rounds");
        let alone = Training::resume(&texts, settings.clone(), &mut &states[0][..]);
        assert!(matches!(alone, Err(Error::OtherState)));
    }
}

#[test]
fn more_ranks_than_texts_train() {
    let texts = texts("__label__a one two\n__label__b three\n");
    let all = trained(&texts, &of_rounds(Optimizer::Sgd), 3);
    assert!(all.iter().all(|(bits, ..)| *bits == all[0].0));
    let _ = finish(Training::new(&texts, settings()).unwrap());
}

#[test]
fn other_texts_and_settings_of_a_rank_are_refused() {
    let (one, other) = (texts(&lines(30)), texts(&lines(31)));
    let told = |texts: [&Texts; 2], settings: [&str; 2]| {
        let of = |ranks: &dyn Ranks| compare(ranks, texts[ranks.rank()], settings[ranks.rank()]);
        on_ranks(2, |ranks| of(ranks).map_err(|error| error.to_string()))
    };
    assert_eq!(told([&one, &one], ["a", "a"]), [Ok(()), Ok(())]);
    let remedy = "start all ranks with the same input and flags";
    assert_eq!(
        told([&one, &other], ["a", "a"]),
        [
            Err(format!("rank 1 has other texts than rank 0; {remedy}")),
            Err(format!("rank 0 has other texts than rank 1; {remedy}"))
        ]
    );
    let settings = told([&one, &one], ["a", "b"]);
    assert_eq!(settings[0], Err(format!("rank 1 has other settings than rank 0; {remedy}")));
}

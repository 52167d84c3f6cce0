//! Thousands of schedules of a job in one process.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tests::seeds::{each_seed, seeds};

use crate::attempts::Corpus;
use crate::schedule::{EventCounts, Schedule};

/// Number of corpora, which the schedules share. The dataset of each is made once without faults.
const N_CORPORA: u64 = 16;

#[test]
fn every_schedule_of_attempts_gives_the_same_dataset() {
    let corpora: Vec<_> = (0..N_CORPORA).map(|seed| Corpus::of(1 + seed * seed, seed)).collect();
    let seeds = seeds(200, 10_000);
    let counts = Mutex::new(EventCounts::new());
    each_seed(&seeds, |seed| {
        let happened = Schedule::new(&corpora[(seed % N_CORPORA) as usize], seed).play();
        let mut counts = counts.lock().unwrap();
        happened.into_iter().for_each(|(kind, times)| *counts.entry(kind).or_default() += times);
    });
    let counts: BTreeMap<_, _> = counts.into_inner().unwrap();
    tests::say(&format!("{} schedules: {counts:?}", seeds.end - seeds.start));
    if seeds.end - seeds.start > 1 {
        // An event that never happened was not tested.
        for kind in [
            "AnswerLost",
            "KilledAfter",
            "KilledBefore",
            "Refused",
            "Twice",
            "attempts that failed",
            "disagreements",
            "forgotten attempts",
            "merges that were refused or failed",
            "wrong runs refused",
        ] {
            assert!(counts.get(kind).is_some_and(|times| *times > 2), "{kind}: too few in {counts:?}");
        }
    }
}

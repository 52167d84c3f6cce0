//! Attempts of one partition that elect at the same moment.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use dataset::commit::COMMIT_PREFIX;
use program::exit::Exit;
use store::Store;
use synthetic::random::Random;
use tests::seeds::{each_seed, seeds};

use crate::attempts::{Corpus, elected, reduce, task};
use crate::hadoop::{Maps, with_a_review_more};
use crate::scratch;
use crate::stores::{Locked, Start, Together};

#[test]
fn exactly_one_attempt_wins_in_a_store_with_a_lock() {
    race(&|_| Store::of(Locked::default()));
}

#[test]
fn exactly_one_attempt_wins_in_a_folder() {
    race(&|folder| Store::open(folder.join("run").to_str().unwrap()).unwrap());
}

fn race(store_in: &(impl Fn(&Path) -> Store + Sync)) {
    let corpus = Corpus::of(60, 1);
    let seeds = seeds(60, 1_000);
    let disagreed = Mutex::new(0_u64);
    each_seed(&seeds, |seed| {
        let folder = scratch();
        *disagreed.lock().unwrap() += play(&corpus, &store_in(folder.path()), folder.path(), seed);
    });
    let (races, disagreed) = (seeds.end - seeds.start, disagreed.into_inner().unwrap());
    tests::say(&format!("{races} races, in which {disagreed} attempts disagreed and said so"));
    assert!(races == 1 || disagreed > 0, "no attempt disagreed");
}

/// Runs one race of 2 to 8 attempts. Returns how many of them read other input than the elected one and
/// failed.
fn play(corpus: &Corpus, store: &Store, folder: &Path, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let maps = Maps::of(&corpus.lines, 2, 1);
    let n_attempts = 2 + random.below(7);
    let n_wrong = if random.one_in(4) { 1 + random.below(n_attempts - 1) } else { 0 };
    let start = Arc::new(Start::of(n_attempts));
    let attempts: Vec<_> = (0..n_attempts)
        .map(|number| {
            let mut input = maps.input(0, &mut random);
            if number < n_wrong {
                input = with_a_review_more(&input, &mut random).expect("a corpus with reviews");
            }
            let task = task(0, 1, &format!("attempt-{number}"), folder);
            let store = Store::of(Together { store: store.clone(), start: Arc::clone(&start) });
            thread::spawn(move || reduce(&store, input, &task))
        })
        .collect();
    let ended: Vec<_> = attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect();

    assert_eq!(store.list(COMMIT_PREFIX).unwrap().len(), 1);
    let elected = elected(store, 0).unwrap();
    let winner: usize = elected.attempt.trim_start_matches("attempt-").parse().unwrap();
    let mut n_disagreed = 0;
    for (number, ended) in ended.into_iter().enumerate() {
        match ended {
            Ok(echo) => {
                assert!(echo == elected && (number < n_wrong) == (winner < n_wrong), "attempt {number}");
            }
            Err(error) => {
                assert_eq!(error.exit, Exit::Internal, "attempt {number}: {error}");
                assert_ne!(number < n_wrong, winner < n_wrong, "attempt {number}: {error}");
                n_disagreed += 1;
            }
        }
    }
    if winner >= n_wrong {
        corpus.assert_whole(store, 1, maps.counts, folder);
    }
    n_disagreed
}

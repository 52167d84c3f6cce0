//! Real reducers, killed at any instant and restarted as Hadoop would.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use dataset::commit::{COMMIT_PREFIX, DATA_PREFIX};
use store::Store;
use synthetic::random::Random;
use tests::pipe::reducer;
use tests::programs::start;
use tests::seeds::{each_seed, seeds};

use crate::attempts::Corpus;
use crate::hadoop::Maps;
use crate::scratch;

/// Hadoop's default number of attempts per task. The last one is not killed here.
const ATTEMPTS: usize = 4;

#[test]
fn a_kill_at_any_instant_loses_no_row() {
    let corpus = Corpus::of(1_500, 7);
    let seeds = seeds(20, 500);
    let jobs = seeds.end - seeds.start;
    // If the machine was busier during the time measurement, most reducers exit before they are killed. The
    // test is then repeated.
    let enough = (0..3).any(|_| {
        let found = Mutex::new(BTreeMap::<&str, u64>::new());
        let usual = usual_time(&corpus);
        each_seed(&seeds, |seed| {
            for after in job(&corpus, usual, seed) {
                *found.lock().unwrap().entry(after).or_default() += 1;
            }
        });
        let found = found.into_inner().unwrap();
        let kills = found.values().sum::<u64>();
        tests::say(&format!("{jobs} jobs, {kills} kills, which left: {found:?}"));
        jobs == 1 || kills >= jobs
    });
    assert!(enough, "too few reducers were killed before they ended");
}

/// Minimum time of a reducer that is not killed.
fn usual_time(corpus: &Corpus) -> Duration {
    let input = Maps::of(&corpus.lines, 2, 2).input(0, &mut Random::new(0));
    let times = (0..5).map(|_| {
        let (folder, begin) = (scratch(), Instant::now());
        assert!(lives(folder.path(), 0, &input, None));
        begin.elapsed()
    });
    times.min().expect("more than none")
}

/// Runs a job of two partitions. Returns the state that each kill left.
fn job(corpus: &Corpus, usual: Duration, seed: u64) -> Vec<&'static str> {
    let mut random = Random::new(seed);
    let (folder, maps) = (scratch(), Maps::of(&corpus.lines, 2, 2));
    let store = Store::open(folder.path().join("run").to_str().unwrap()).unwrap();
    let mut left_behind = Vec::new();
    for partition in 0..2 {
        let prefix = format!("{DATA_PREFIX}part-{partition:05}.");
        let there = || [COMMIT_PREFIX, &prefix].map(|prefix| store.list(prefix).unwrap().len());
        for attempt in 1..=ATTEMPTS {
            let before = there();
            let input = maps.input(partition, &mut random);
            let instant = usual.mul_f64(random.below(1_100) as f64 / 1_000.0);
            let kill = (attempt < ATTEMPTS).then_some(instant);
            if lives(folder.path(), partition, &input, kill) {
                break;
            }
            let after = there();
            left_behind.push(match (after[0] > before[0], after[1] > before[1]) {
                (true, _) => "a commit",
                (false, true) => "an object",
                (false, false) => "nothing",
            });
        }
    }
    corpus.assert_whole(&store, 2, maps.counts, folder.path());
    left_behind
}

/// Runs a reducer and kills it after `kill`. Returns whether it succeeded.
fn lives(folder: &Path, partition: u32, input: &[u8], kill: Option<Duration>) -> bool {
    let mut reducer = reducer(&folder.join("run"), partition, 2);
    let mut child = start(reducer.args(["--texts", "--keep-words"]).env("TMPDIR", folder));
    let mut stdin = child.stdin.take().expect("standard input is piped");
    thread::scope(|scope| {
        // Killing the reader breaks the pipe.
        scope.spawn(move || drop(stdin.write_all(input)));
        if let Some(after) = kill {
            thread::sleep(after);
            // It may have exited before the kill; the assertion below then expects success.
            child.kill().expect("a child can be killed");
        }
        let output = child.wait_with_output().expect("a child ends");
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            None => assert!(kill.is_some(), "who killed it? {said}"),
            code => assert_eq!(code, Some(0), "it failed by itself: {said}"),
        }
        output.status.success()
    })
}

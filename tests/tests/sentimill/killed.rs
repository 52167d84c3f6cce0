//! After a kill at any instant, a restart makes the same dataset.

use std::thread;
use std::time::{Duration, Instant};

use synthetic::random::Random;
use tests::demo::DEMO;
use tests::programs::{run, start};
use tests::seeds::{each_seed, seeds};

use crate::made::{Flags, Made, Manner, Room};

const SETTINGS: Flags<'_> = Flags { lines: &[], rows: &[], dataset: &["--padded", "20"] };
const MADE: [&str; 3] = ["out/reviews.h5", "out/reviews.manifest.json", "out/reviews.padded.h5"];

fn manner(random: &mut Random) -> Manner {
    [Manner::ALONE, Manner::SPARING][random.below(2)]
}

fn room() -> Room {
    let room = Room::new();
    room.write("reviews.json", &DEMO.raw);
    room
}

/// Minimum time of a run that is not killed.
fn usual_time() -> Duration {
    let times = (0..3).map(|_| {
        let (room, begin) = (room(), Instant::now());
        run(&mut room.sentimill(Manner::SPARING, &SETTINGS, &["reviews.json"]), b"").succeeded();
        begin.elapsed()
    });
    times.min().expect("more than none")
}

#[test]
fn a_restart_after_a_kill_at_any_instant_makes_the_same_dataset() {
    let expected = SETTINGS.by_pipe(&DEMO.raw);
    let usual = usual_time();
    each_seed(&seeds(5, 50), |seed| killed_and_started_again(seed, usual, &expected));
}

fn killed_and_started_again(seed: u64, usual: Duration, expected: &Made) {
    let (mut random, room) = (Random::new(seed), room());
    let instant = usual.mul_f64(random.below(2_000) as f64 / 1_000.0);
    let mut child = start(&mut room.sentimill(manner(&mut random), &SETTINGS, &["reviews.json"]));
    drop(child.stdin.take());
    thread::sleep(instant);
    child.kill().unwrap();
    child.wait().unwrap();

    // Named files are complete, which is checked below, because nothing is overwritten. Temporary files are
    // hidden in the same folder.
    let left = room.files();
    let (named, unnamed): (Vec<_>, Vec<_>) =
        left.iter().filter(|name| *name != "reviews.json").partition(|name| MADE.contains(&name.as_str()));
    assert!(unnamed.iter().all(|name| name.starts_with("out/.sentimill-unfinished-")), "{unnamed:?}");
    tests::say(&format!(
        "seed {seed}: killed after {instant:?} of {usual:?}, which left {named:?} {unnamed:?}"
    ));

    let again = run(&mut room.sentimill(manner(&mut random), &SETTINGS, &["reviews.json"]), b"").succeeded();
    room.made(&again).assert_same(expected, &format!("killed after {instant:?}"));
    assert_eq!(room.files().len(), 1 + MADE.len(), "{:?}", room.files());
}

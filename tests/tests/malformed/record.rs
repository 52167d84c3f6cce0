//! Malformed records between the programs: combiner and reducer refuse them with line and reason, and no
//! shard is written.

use std::fs;

use synthetic::random::Random;
use tests::pipe::reducer;
use tests::programs::{Finished, program, run};

use crate::{CASES, random_of, shown};

/// A way to break a record, and the reason for its refusal.
type Broken = (&'static str, &'static str, fn(&mut Random) -> Vec<u8>);

const NO_TAB: &str = "no tab between text and votes";
const NO_TEXT: &str = "no text before the tab";
const VOTES: &str = "the votes are not five numbers from 0 to 4294967295 separated by commas";
const NO_VOTES: &str = "all five votes are zero";
const CUT_OFF: &str = "the input is cut off before the line end";

#[test]
fn every_malformed_record_is_refused_by_the_combiner() {
    for (class, reason, line, input, number) in cases(CASES) {
        let finished = run(&mut program("combiner"), &input);
        check(finished, "combiner", class, &line, number, reason);
    }
}

#[test]
fn every_malformed_record_is_refused_by_the_reducer_without_a_shard() {
    let folder = tempfile::tempdir().unwrap();
    // Fewer cases, because each starts a process that loads the HDF5 library.
    let cases_of_each = if tests::prove() { CASES } else { CASES / 10 };
    for (class, reason, line, input, number) in cases(cases_of_each) {
        let finished = run(&mut reducer(folder.path(), 0, 1), &input);
        check(finished, "reducer", class, &line, number, reason);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Class, reason, the broken line, a stream of records around it, and the number of the line in the stream.
fn cases(of_each: u64) -> impl Iterator<Item = (&'static str, &'static str, Vec<u8>, Vec<u8>, usize)> {
    CLASSES.iter().flat_map(move |&(class, reason, broken)| {
        (0..of_each).map(move |case| {
            let mut random = random_of(class, case);
            let (before, behind) = (random.below(4), random.below(2));
            let line = broken(&mut random);
            let mut input = b"a\t0,0,0,0,1\n".repeat(before);
            input.extend_from_slice(&line);
            // A last line that is not empty is cut off, whatever it contains, because it might have been
            // longer.
            if behind == 0 && !line.is_empty() && random.one_in(2) {
                return (class, CUT_OFF, line, input, before + 1);
            }
            input.push(b'\n');
            input.extend(b"z\t0,0,0,0,1\n".repeat(behind));
            (class, reason, line, input, before + 1)
        })
    })
}

fn check(finished: Finished, name: &str, class: &str, line: &[u8], number: usize, reason: &str) {
    let finished = finished.with_code(65);
    let mut messages: Vec<_> = finished.stderr.lines().collect();
    messages.retain(|message| !message.starts_with("reporter:"));
    let message = format!(
        "{name}: line {number} is not a record: {reason}; feed this program the output of mapper or combiner"
    );
    assert_eq!(messages, [message], "{class}: {}", shown(line));
}

#[rustfmt::skip]
const CLASSES: &[Broken] = &[
    ("no tab", NO_TAB, |random| [text(random), random.pick(&[
        &b" "[..], b",", b"  ", b"\\t", b"\0",
    ]).to_vec(), votes(random)].concat()),
    ("a text alone", NO_TAB, text),
    ("votes alone", NO_TAB, votes),
    ("an empty line", NO_TAB, |_| Vec::new()),
    ("a raw review", NO_TAB, |random| {
        format!(r#"{{"reviewText": "good", "overall": {}}}"#, 1 + random.below(5)).into_bytes()
    }),
    ("bytes", NO_TAB, |random| {
        let bytes = (0..random.below(100)).map(|_| random.below(256) as u8);
        bytes.filter(|byte| !b"\t\n".contains(byte)).chain([b'x']).collect()
    }),
    ("no text", NO_TEXT, |random| [b"\t".to_vec(), votes(random)].concat()),
    ("a tab alone", NO_TEXT, |random| b"\t".repeat(1 + random.below(3))),
    ("fewer votes", VOTES, |random| {
        let n_votes = random.below(5);
        let votes = numbers(random, n_votes).join(",");
        behind_text(random, &votes)
    }),
    ("more votes", VOTES, |random| {
        let n_votes = 6 + random.below(3);
        let votes = numbers(random, n_votes).join(",");
        behind_text(random, &votes)
    }),
    ("an empty vote", VOTES, |random| with_vote(random, &[""])),
    ("a vote that is no number", VOTES, |random| with_vote(random, &[
        "x", "-1", "+1", "1.0", "1e3", "0x1", " 1", "1 ", "\u{661}", "1_0", "null", "'1'", "\0", "/", ":", "-", "1;2",
        "NaN",
    ])),
    ("a vote beyond 32 bits", VOTES, |random| {
        let vote = (1_u64 << 32) + random.below(1 << 40) as u64;
        let vote = if random.one_in(4) { "9".repeat(20 + random.below(100)) } else { vote.to_string() };
        with_vote(random, &[&vote])
    }),
    ("other commas", VOTES, |random| {
        let between = random.pick(&[";", " ", ", ", " ,", "\t", ",,", ".", "", "\u{ff0c}"]);
        let numbers = numbers(random, 5);
        behind_text(random, &numbers.join(between))
    }),
    ("something behind the votes", VOTES, |random| {
        let behind = random.pick(&[" ", "x", ",", "\r", "\t\t", "\tx", "\t0,0,0,0,1", "\0", ";"]);
        let votes = numbers(random, 5).join(",");
        behind_text(random, &(votes + behind))
    }),
    ("something before the votes", VOTES, |random| {
        let before = random.pick(&[" ", "x", ",", "\t", "\u{feff}", "[", "("]);
        let votes = numbers(random, 5).join(",");
        behind_text(random, &(before.to_owned() + &votes))
    }),
    ("cut inside the votes", VOTES, |random| {
        let votes = numbers(random, 5).join(",");
        let end = random.below(votes.rfind(',').unwrap() + 1);
        behind_text(random, &votes[..end])
    }),
    ("no votes at all", NO_VOTES, |random| {
        let zeros: Vec<_> = (0..5).map(|_| "0".repeat(1 + random.below(2) * random.below(3))).collect();
        let tab = random.pick(&["", "\t"]);
        behind_text(random, &(zeros.join(",") + tab))
    }),
];

/// A cleaned text that sorts between the records around it.
fn text(random: &mut Random) -> Vec<u8> {
    let words: Vec<_> = (0..random.below(6))
        .map(|_| random.pick(&["good", "not", "it's", "caf\u{e9}", "\u{65e5}\u{672c}"]))
        .collect();
    format!("fine {}", words.join(" ")).trim_end().as_bytes().to_vec()
}

/// Numbers that are not all zero.
fn numbers(random: &mut Random, n: usize) -> Vec<String> {
    let mut numbers: Vec<_> =
        (0..n).map(|_| random.pick(&["0", "1", "7", "10", "4294967295"]).to_owned()).collect();
    if let Some(number) = numbers.first_mut() {
        *number = "3".to_owned();
    }
    numbers
}

fn votes(random: &mut Random) -> Vec<u8> {
    numbers(random, 5).join(",").into_bytes()
}

fn behind_text(random: &mut Random, votes: &str) -> Vec<u8> {
    [text(random), b"\t".to_vec(), votes.as_bytes().to_vec()].concat()
}

/// A record with one of these as one of its votes.
fn with_vote(random: &mut Random, votes: &[&str]) -> Vec<u8> {
    let mut numbers = numbers(random, 5);
    numbers[random.below(5)] = votes[random.below(votes.len())].to_owned();
    behind_text(random, &numbers.join(","))
}

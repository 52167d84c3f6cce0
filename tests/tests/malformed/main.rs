//! Malformed input by class. Each class breaks valid lines in one way, 200 times from a seed. The outcome of
//! every line is known from its class and, independently, from the oracle. In addition there are randomly
//! damaged lines, whose outcome only the oracle determines.
//!
//! The real programs read the cases, many per process, between lines of reviews that must not be affected.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

mod fasttext;
mod fields;
mod grammar;
mod json;
mod literal;
mod mapper;
mod notation;
mod polarity_csv;
mod record;

use synthetic::random::Random;

/// Number of cases per class.
const CASES: u64 = 200;

/// Number of randomly damaged or generated lines, valid or not; ten times as many with PROVE=1.
fn random_lines() -> u64 {
    if tests::prove() { 40_000 } else { 4_000 }
}

/// The outcome of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    Blank,
    TooLong,
    BadLine,
    NoText,
    BadRating,
    EmptyText,
    Review,
    /// Some lines of the class are valid; only the oracle determines which.
    Either,
}

impl Becomes {
    /// The line's entry in the ledger.
    fn entry(self) -> Option<&'static str> {
        match self {
            Self::Blank => Some("blank"),
            Self::TooLong => Some("line_too_long"),
            Self::BadLine => Some("bad_line"),
            Self::NoText => Some("no_text"),
            Self::BadRating => Some("bad_rating"),
            Self::EmptyText => Some("empty_text"),
            Self::Review => Some("reviews"),
            Self::Either => None,
        }
    }
}

/// One way to break a line, or to make it look broken.
struct Class {
    name: &'static str,
    becomes: Becomes,
    line: fn(&mut Random) -> Vec<u8>,
}

const fn class(name: &'static str, becomes: Becomes, line: fn(&mut Random) -> Vec<u8>) -> Class {
    Class { name, becomes, line }
}

fn lines_of(class: &Class, cases: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..cases).map(|case| (class.line)(&mut random_of(class.name, case)))
}

/// Each case of a class has its own seed.
fn random_of(class: &str, case: u64) -> Random {
    let name = class.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    Random::new(name ^ (case << 40))
}

/// Deletes a byte, doubles one or inserts a piece, `times` times, at positions before `reach`.
fn scratch(line: &mut Vec<u8>, times: usize, reach: usize, pieces: &[&[u8]], random: &mut Random) {
    for _ in 0..times {
        let place = random.below(line.len().min(reach));
        match random.below(3) {
            0 => drop(line.remove(place)),
            1 => line.insert(place, line[place]),
            _ => drop(line.splice(place..place, random.pick(pieces).iter().copied())),
        }
    }
}

/// The bytes as text for a message.
fn shown(line: &[u8]) -> String {
    let (start, more) = line.split_at(line.len().min(400));
    format!("{}{}", start.escape_ascii(), if more.is_empty() { "" } else { "..." })
}

//! The synthetic reviews that most tests read, and the dataset that a plain pipe makes from them.

use std::fs;
use std::sync::LazyLock;

use serde_json::{Value, json};
use synthetic::Facts;

use crate::pipe::{Pipe, mapped};

const LINES: u64 = 5_000;

/// A corpus and its results.
#[derive(Debug)]
pub struct Demo {
    /// Its lines.
    pub raw: Vec<u8>,
    /// The counts of a mapper.
    pub facts: Facts,
    /// The records of a mapper.
    pub records: Vec<u8>,
    /// The bytes of the dataset written by `mapper | sort | reducer` and `merge`.
    pub dataset: Vec<u8>,
}

/// The corpus of most tests.
pub static DEMO: LazyLock<Demo> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a test can make a folder");
    let (raw, facts) = raw(LINES, 1);
    let records = mapped(&raw, &folder.path().join("mapper.json"));
    let dataset = fs::read(Pipe::default().dataset_of_records(&records, folder.path())).expect("it was made");
    Demo { raw, facts, records, dataset }
});

/// A corpus of this number of lines.
pub fn raw(lines: u64, seed: u64) -> (Vec<u8>, Facts) {
    let mut raw = Vec::new();
    let facts = synthetic::write(lines, seed, &mut raw).expect("memory takes all");
    (raw, facts)
}

/// The text and the stars of each ordinary review of the demo corpus. A CR is replaced, because only JSON can
/// contain a CR within a line.
pub fn reviews() -> Vec<(String, u64)> {
    let lines = DEMO.raw.split(|&byte| byte == b'\n');
    let review = |line| {
        let review: Value = serde_json::from_slice(line).ok()?;
        let stars =
            review["overall"].as_f64().filter(|stars| (1.0..=5.0).contains(stars) && stars.fract() == 0.0)?;
        Some((review["reviewText"].as_str()?.replace('\r', " "), stars as u64))
    };
    let reviews: Vec<_> = lines.filter_map(review).collect();
    assert!(reviews.len() as u64 > DEMO.facts.reviews * 99 / 100, "{}", reviews.len());
    reviews
}

/// A line of JSON.
pub fn json_line(text: &str, stars: u64) -> String {
    json!({"reviewText": text, "overall": stars}).to_string() + "\n"
}

/// A column of a polarity file, escaped in one of the ways found in such files.
pub fn quoted(number: usize, text: &str) -> String {
    let quote = ["\"\"", "\\\""][number % 2];
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', quote).replace('\n', "\\n"))
}

//! The data card: a summary of a dataset on one screen. `merge` prints it, and a training keeps the card of
//! its dataset.

use corpus::settings::Keep;

use crate::dataset_file::DatasetSettings;
use crate::header::Digests;
use crate::rows::Row;
use crate::vocabulary::{UNKNOWN, Vocabulary};

/// Number of most frequent words shown.
const WORDS_SHOWN: usize = 20;

/// Statistics of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    rows: u64,
    positive: u64,
    votes: [u64; 5],
    tokens: u64,
    unknown: u64,
    /// Number of rows per number of tokens.
    lengths: Vec<u64>,
}

impl Summary {
    /// Adds a row.
    pub fn count(&mut self, row: &Row) {
        self.rows += 1;
        self.positive += u64::from(row.label);
        add_each(&mut self.votes, row.votes.0.map(u64::from));
        let length = row.tokens.len();
        self.tokens += length as u64;
        self.unknown += row.tokens.iter().filter(|&&id| id == UNKNOWN).count() as u64;
        self.lengths.resize(self.lengths.len().max(length + 1), 0);
        self.lengths[length] += 1;
    }

    /// Number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the statistics of other rows.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.positive += other.positive;
        add_each(&mut self.votes, other.votes);
        self.tokens += other.tokens;
        self.unknown += other.unknown;
        self.lengths.resize(self.lengths.len().max(other.lengths.len()), 0);
        add_each(&mut self.lengths, other.lengths);
    }
}

fn add_each(sums: &mut [u64], numbers: impl IntoIterator<Item = u64>) {
    sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
}

/// The lines of the card: names and values.
pub fn card(
    settings: &DatasetSettings,
    digests: &Digests,
    vocabulary: &Vocabulary,
    summary: &Summary,
) -> Vec<(&'static str, String)> {
    let reviews: u64 = summary.votes.iter().sum();
    let negative = summary.rows - summary.positive;
    let mut card = Vec::new();
    let mut line = |name, text: String| card.push((name, text));
    line("rows", format!("{} distinct texts of {reviews} reviews", summary.rows));
    let from = settings.rows.positive_from;
    line("label 1", format!("{} (rating {from} and more)", share(summary.positive, summary.rows)));
    line("label 0", share(negative, summary.rows));
    let stars = (1..).zip(summary.votes).map(|(rating, n)| format!("{rating}: {}", share(n, reviews)));
    line("ratings", stars.collect::<Vec<_>>().join("  "));
    line(
        "tokens",
        format!("{}, of which {} unknown", summary.tokens, share(summary.unknown, summary.tokens)),
    );
    line("row length", lengths(summary));
    let kept = match settings.rows.max_tokens {
        0 => "all words of a row kept".to_owned(),
        most => format!("{} of a row kept", kept_words(settings.rows.keep, most)),
    };
    line("settings", format!("{} stop words, {kept}", settings.rows.stop_words.len()));
    line("vocabulary", format!("{} words", vocabulary.words.len()));
    line("most often", frequent_words(vocabulary));
    line("row digest", digests.row_digest.to_string());
    line("id digest", digests.id_digest.to_string());
    line("vocabulary digest", digests.vocabulary_digest.to_string());
    card
}

fn kept_words(keep: Keep, most: u32) -> String {
    match keep {
        Keep::First => format!("the first {most} words"),
        Keep::Last => format!("the last {most} words"),
        Keep::Ends => format!("{most} words from both ends"),
    }
}

/// A number and its share of the whole.
fn share(n: u64, whole: u64) -> String {
    if whole == 0 { n.to_string() } else { format!("{n} ({:.1} %)", 100.0 * n as f64 / whole as f64) }
}

fn lengths(summary: &Summary) -> String {
    if summary.rows == 0 {
        return "no rows".to_owned();
    }
    let mean = summary.tokens as f64 / summary.rows as f64;
    let percentile = |percent: u64| {
        let rank = (summary.rows * percent).div_ceil(100).max(1);
        let mut below = 0;
        summary.lengths.iter().position(|n| {
            below += n;
            below >= rank
        })
    };
    let at = |percent| percentile(percent).map_or(0, |length| length);
    format!(
        "mean {mean:.1}, median {}, 90 % up to {}, 99 % up to {}, longest {}",
        at(50),
        at(90),
        at(99),
        at(100)
    )
}

/// These are cleaned words, so they contain no control characters and are safe on a terminal.
fn frequent_words(vocabulary: &Vocabulary) -> String {
    let words = vocabulary.words.iter().zip(&vocabulary.counts).take(WORDS_SHOWN);
    words
        .map(|(word, count)| format!("{} {count}", String::from_utf8_lossy(word)))
        .collect::<Vec<_>>()
        .join(", ")
}

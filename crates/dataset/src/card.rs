//! The data card: a summary of a dataset on one screen. `merge` and `sentimill` print it, and a training
//! folder contains the card of its dataset.

use std::fmt;

use corpus::clean::Rules;
use corpus::labels::Classes;
use corpus::scripts::unspaced;
use corpus::settings::Keep;
use serde::Serialize;

use crate::dataset_settings::DatasetSettings;
use crate::header::Digests;
use crate::row_columns::Row;
use crate::vocabulary::{UNKNOWN, Vocabulary};

/// The name of the line of a warning.
pub const WARNING: &str = "warning";

/// Number of most frequent words shown.
const WORDS_SHOWN: usize = 20;

/// Statistics of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    rows: u64,
    /// Number of rows per label.
    labels: [u64; 5],
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
        self.labels[usize::from(row.label)] += 1;
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
        add_each(&mut self.labels, other.labels);
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

/// The data card of a dataset: [`Card::text`] for people, as JSON for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// Rows, which are distinct texts.
    pub rows: u64,
    /// Reviews with these texts.
    pub reviews: u64,
    /// Rows with label 1. `None` with named classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_1: Option<u64>,
    /// Rows with label 0. `None` with named classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_0: Option<u64>,
    /// Lowest rating with label 1. `None` with named classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive_from: Option<u8>,
    /// The named classes, if the dataset has any, in the order of labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassRows>,
    /// Reviews with one, two, … five stars.
    pub ratings: [u64; 5],
    /// Tokens of all rows.
    pub tokens: u64,
    /// Tokens whose word is not in the vocabulary.
    pub unknown_tokens: u64,
    /// Tokens per row, if there are rows.
    pub row_length: Option<RowLength>,
    /// Whether numbers, punctuation and symbols are words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub punctuation: bool,
    /// Number of stop words.
    pub stop_words: usize,
    /// Maximum number of tokens per row; 0 keeps all.
    pub max_tokens: u32,
    /// Part of a longer row that is kept.
    pub keep: Keep,
    /// Share of the distinct texts that could become rows. `None` without a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<f64>,
    /// Words of the vocabulary.
    pub vocabulary: usize,
    /// The most frequent words, in descending order.
    pub most_often: Vec<Frequent>,
    /// What makes the rows useless, and the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Digests of rows, ids and vocabulary.
    pub digests: Digests,
}

/// A named class and its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassRows {
    /// The name.
    pub name: String,
    /// Its ratings, such as `3` or `4-5`.
    pub ratings: String,
    /// Number of rows.
    pub rows: u64,
}

/// Numbers of tokens per row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RowLength {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: usize,
    /// The 90th percentile.
    pub percentile_90: usize,
    /// The 99th percentile.
    pub percentile_99: usize,
    /// The maximum.
    pub longest: usize,
}

/// A word and its number of occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frequent {
    /// The word.
    pub word: String,
    /// Its occurrences.
    pub count: u64,
}

impl Card {
    /// Returns the card of a dataset with these parts.
    pub fn of(
        settings: &DatasetSettings,
        digests: &Digests,
        vocabulary: &Vocabulary,
        summary: &Summary,
    ) -> Self {
        // The vocabulary and its order may come from another dataset. The sort is stable: words of equal count stay
        // in the order of ids.
        let mut words: Vec<_> = vocabulary.words.iter().zip(&vocabulary.counts).collect();
        words.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
        let words = words.into_iter().filter(|&(_, &count)| count > 0).take(WORDS_SHOWN);
        let frequent = |(word, &count): (&[u8], &u64)| Frequent {
            word: String::from_utf8_lossy(word).into_owned(),
            count,
        };
        let labels = &settings.rows.labels;
        let positive_from = labels.positive_from();
        let of_class = |((ratings, name), &rows): ((String, &str), &u64)| ClassRows {
            name: name.to_owned(),
            ratings,
            rows,
        };
        let classes = labels.classes().into_iter().flat_map(Classes::each);
        let row_length = RowLength::of(summary);
        Self {
            rows: summary.rows,
            reviews: summary.votes.iter().sum(),
            label_1: positive_from.map(|_| summary.labels[1]),
            label_0: positive_from.map(|_| summary.labels[0]),
            positive_from,
            classes: classes.zip(&summary.labels).map(of_class).collect(),
            ratings: summary.votes,
            tokens: summary.tokens,
            unknown_tokens: summary.unknown,
            warning: row_length.and_then(|length| unspaced(vocabulary.words.iter(), length.mean)),
            row_length,
            punctuation: settings.rows.rules() == Some(Rules::Punctuation),
            stop_words: settings.rows.stop_words.len(),
            max_tokens: settings.rows.max_tokens,
            keep: settings.rows.keep,
            sample: settings.rows.sample.threshold().map(|_| settings.rows.sample.share()),
            vocabulary: vocabulary.words.len(),
            most_often: words.map(frequent).collect(),
            digests: *digests,
        }
    }

    /// The lines of the card: names and values.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let stars =
            (1..).zip(self.ratings).map(|(rating, n)| format!("{rating}: {}", share(n, self.reviews)));
        // These are cleaned words, so they contain no control characters and are safe on a terminal.
        let words = self.most_often.iter().map(|Frequent { word, count }| format!("{word} {count}"));
        let kept = match (self.max_tokens, self.keep) {
            (0, _) => "all words of a row kept".to_owned(),
            (most, Keep::First) => format!("the first {most} words of a row kept"),
            (most, Keep::Last) => format!("the last {most} words of a row kept"),
            (most, Keep::Ends) => format!("{most} words from both ends of a row kept"),
        };
        let punctuation = if self.punctuation { "numbers and punctuation are words, " } else { "" };
        let unknown = share(self.unknown_tokens, self.tokens);
        let Digests { row_digest, id_digest, vocabulary_digest } = self.digests;
        let mut lines = vec![("rows", format!("{} distinct texts of {} reviews", self.rows, self.reviews))];
        if let Some(share) = self.sample {
            lines.push(("sample", format!("{share} of the texts, by the hash of the text")));
        }
        lines.extend(self.label_lines());
        lines.extend(self.warning.iter().map(|warning| (WARNING, warning.clone())));
        lines.extend([
            ("ratings", stars.collect::<Vec<_>>().join("  ")),
            ("tokens", format!("{}, of which {unknown} unknown", self.tokens)),
            ("row length", self.row_length.map_or_else(|| "no rows".to_owned(), |length| length.to_string())),
            ("settings", format!("{punctuation}{} stop words, {kept}", self.stop_words)),
            ("vocabulary", format!("{} words", self.vocabulary)),
            ("most often", words.collect::<Vec<_>>().join(", ")),
            ("row digest", row_digest.to_string()),
            ("id digest", id_digest.to_string()),
            ("vocabulary digest", vocabulary_digest.to_string()),
        ]);
        lines
    }

    /// The rows per label, and the use of a dataset in which a label has none.
    fn label_lines(&self) -> Vec<(&'static str, String)> {
        const NAMES: [&str; 5] = ["label 0", "label 1", "label 2", "label 3", "label 4"];
        let of_class = |(label, class): (&'static str, &ClassRows)| {
            let ratings = if class.ratings.len() == 1 { "rating" } else { "ratings" };
            let rows = share(class.rows, self.rows);
            (label, format!("{rows} ({}, {ratings} {})", class.name, class.ratings))
        };
        let mut lines: Vec<_> = NAMES.into_iter().zip(&self.classes).map(of_class).collect();
        let mut needed = "all classes";
        let empty: Vec<&str> =
            self.classes.iter().filter(|class| class.rows == 0).map(|class| &class.name[..]).collect();
        let mut fault = (!empty.is_empty()).then(|| format!("no row has {}", empty.join(", ")));
        if let (Some(label_1), Some(label_0), Some(from)) = (self.label_1, self.label_0, self.positive_from) {
            lines.push(("label 1", format!("{} (rating {from} and more)", share(label_1, self.rows))));
            lines.push(("label 0", share(label_0, self.rows)));
            needed = "both labels";
            let label = u8::from(label_0 == 0);
            fault = (label_0 == 0 || label_1 == 0).then(|| format!("all have {label}"));
        }
        if let Some(fault) = fault.filter(|_| self.rows > 0) {
            let purpose = "pretraining and word vectors; a classifier needs rows of";
            lines.push(("use", format!("{purpose} {needed} ({fault})")));
        }
        lines
    }

    /// The lines as text.
    pub fn text(&self) -> String {
        self.lines().into_iter().map(|(name, value)| format!("{name:<17} {value}\n")).collect()
    }
}

impl RowLength {
    fn of(summary: &Summary) -> Option<Self> {
        if summary.rows == 0 {
            return None;
        }
        let percentile = |percent: u64| {
            let rank = (summary.rows * percent).div_ceil(100).max(1);
            let mut below = 0;
            let length = summary.lengths.iter().position(|n| {
                below += n;
                below >= rank
            });
            length.unwrap_or(0)
        };
        Some(Self {
            mean: summary.tokens as f64 / summary.rows as f64,
            median: percentile(50),
            percentile_90: percentile(90),
            percentile_99: percentile(99),
            longest: percentile(100),
        })
    }
}

impl fmt::Display for RowLength {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, median, percentile_90, percentile_99, longest } = self;
        write!(
            out,
            "mean {mean:.1}, median {median}, 90 % up to {percentile_90}, 99 % up to {percentile_99}, longest {longest}"
        )
    }
}

/// A number and its share of the whole.
fn share(n: u64, whole: u64) -> String {
    if whole == 0 { n.to_string() } else { format!("{n} ({:.1} %)", 100.0 * n as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use corpus::labels::Labels;

    use super::*;
    use crate::words::WordList;

    #[test]
    fn the_most_frequent_words_are_those_of_this_dataset_whatever_the_order_of_ids() {
        let mut words = WordList::default();
        [&b"the"[..], b"gift", b"card", b"film"].iter().for_each(|word| words.push(word));
        let vocabulary = Vocabulary { words, counts: vec![2, 9, 2, 0] };
        let settings = DatasetSettings {
            rows: Default::default(),
            vocabulary_size: 4,
            vocabulary_of: None,
            without: None,
        };
        let digests = Digests {
            row_digest: Default::default(),
            id_digest: Default::default(),
            vocabulary_digest: Default::default(),
        };
        let summary = Summary { rows: 2, labels: [2, 0, 0, 0, 0], ..Summary::default() };
        let card = Card::of(&settings, &digests, &vocabulary, &summary);
        assert!(card.text().contains("gift 9, the 2, card 2\n"), "{}", card.text());
        assert!(card.text().contains("both labels (all have 0)\n"), "{}", card.text());
    }

    #[test]
    fn only_a_sample_has_a_line_of_its_share() {
        let digests = Digests {
            row_digest: Default::default(),
            id_digest: Default::default(),
            vocabulary_digest: Default::default(),
        };
        let card = |share: &str| {
            let sample = share.parse().unwrap();
            let rows = corpus::settings::Settings { sample, ..Default::default() };
            let settings = DatasetSettings { rows, vocabulary_size: 4, vocabulary_of: None, without: None };
            Card::of(&settings, &digests, &Vocabulary::default(), &Summary::default())
        };
        let text = card("0.010").text();
        assert!(text.contains("\nsample            0.01 of the texts, by the hash of the text\n"), "{text}");
        assert!(!card("1").text().contains("sample"), "{}", card("1").text());
        assert_eq!((card("0.25").sample, card("1").sample), (Some(0.25), None));
    }

    #[test]
    fn named_classes_have_a_line_each_and_replace_the_two_labels() {
        let labels = Labels::Classes("1-2=negative,3=neutral,4-5=positive".parse().unwrap());
        let rows = corpus::settings::Settings { labels, ..Default::default() };
        let settings = DatasetSettings { rows, vocabulary_size: 4, vocabulary_of: None, without: None };
        let digests = Digests {
            row_digest: Default::default(),
            id_digest: Default::default(),
            vocabulary_digest: Default::default(),
        };
        let card = |labels| {
            let summary = Summary { rows: 4, labels, ..Summary::default() };
            Card::of(&settings, &digests, &Vocabulary::default(), &summary)
        };
        let full = card([2, 1, 1, 0, 0]);
        let expected = "label 0           2 (50.0 %) (negative, ratings 1-2)\n\
                        label 1           1 (25.0 %) (neutral, rating 3)\n\
                        label 2           1 (25.0 %) (positive, ratings 4-5)\n\
                        ratings ";
        assert!(full.text().contains(expected), "{}", full.text());
        assert_eq!((full.label_1, full.label_0, full.positive_from), (None, None, None));
        let text = card([4, 0, 0, 0, 0]).text();
        assert!(text.contains("rows of all classes (no row has neutral, positive)\n"), "{text}");
    }
}

//! The ledger: the counts of all lines and texts. Every line of the input is counted once, and the counts of
//! all stages must balance.
//!
//! The counts are also Hadoop counters. Their names are a closed list, and Hadoop reads them from stderr.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::lines::{LineContent, is_blank};
use crate::review::Reject;
use crate::settings::Settings;
use crate::settings_record::present;

/// The mapper's counts. Each line is counted once, under the first counter that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct MapperCounts {
    /// All lines.
    pub lines: u64,
    /// Lines of spaces and tabs only.
    pub blank: u64,
    /// Lines longer than the limit.
    pub line_too_long: u64,
    /// Lines that are not in the format.
    pub bad_line: u64,
    /// Lines whose text is absent, null or not a string.
    pub no_text: u64,
    /// Lines whose rating is not 1, 2, 3, 4 or 5.
    pub bad_rating: u64,
    /// Lines whose rating is one of `--unrated`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unrated: u64,
    /// Lines whose cleaned text is empty.
    pub empty_text: u64,
    /// Lines that became a record.
    pub reviews: u64,
    /// Lines with bytes that are not UTF-8. Each is also counted above, so this counter is not part of the
    /// sum.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalid_utf8: u64,
    /// Lines of the records of CSV and TSV, which `lines` counts as records. It is not part of the sum.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub table_lines: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

crate::read_from_objects!(MapperCounts, ReducerCounts);

/// Why a line is not a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The line is only spaces and tabs.
    Blank,
    /// The line is longer than the limit.
    TooLong,
    /// The line does not hold a review of the format.
    Rejected(Reject),
    /// The cleaned text is empty.
    EmptyText,
}

impl Fate {
    /// The counter of such lines.
    pub fn counter(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::TooLong => "line_too_long",
            Self::Rejected(Reject::BadLine) => "bad_line",
            Self::Rejected(Reject::NoText) => "no_text",
            Self::Rejected(Reject::BadRating) => "bad_rating",
            Self::Rejected(Reject::Unrated) => "unrated",
            Self::EmptyText => "empty_text",
        }
    }

    /// Returns the bytes of a line that is neither blank nor too long. These are the first two checks of a
    /// line.
    pub fn held(line: LineContent<'_>) -> Result<&[u8], Self> {
        match line {
            LineContent::TooLong { blank: true, .. } => Err(Self::Blank),
            LineContent::TooLong { .. } => Err(Self::TooLong),
            LineContent::Bytes(bytes) if is_blank(bytes) => Err(Self::Blank),
            LineContent::Bytes(bytes) => Ok(bytes),
        }
    }

    /// Whether the line counts as a bad line.
    pub fn is_bad(self) -> bool {
        BAD.contains(&self.counter())
    }
}

impl MapperCounts {
    /// The counter group.
    pub const GROUP: &str = "mapper";

    /// Counts a line that is not a review. Returns the number of such lines so far.
    pub fn count(&mut self, fate: Fate) -> u64 {
        let counter = self.counter_mut(fate.counter()).expect("each fate has a counter");
        *counter += 1;
        *counter
    }

    /// Names and values, in the order of the ledger. Without reviews that are unrated, this counter is left out.
    pub fn ledger(&self) -> Vec<(&'static str, u64)> {
        let unrated = (self.unrated > 0).then_some(("unrated", self.unrated));
        let before = [
            ("lines", self.lines),
            ("blank", self.blank),
            ("line_too_long", self.line_too_long),
            ("bad_line", self.bad_line),
            ("no_text", self.no_text),
            ("bad_rating", self.bad_rating),
        ];
        let after = [("empty_text", self.empty_text), ("reviews", self.reviews)];
        before.into_iter().chain(unrated).chain(after).collect()
    }

    /// All counters that are reported: the ledger, `invalid_utf8` and `table_lines`. A task reads no tables.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let beside = [("invalid_utf8", self.invalid_utf8), ("table_lines", self.table_lines)];
        self.ledger().into_iter().chain(beside.into_iter().filter(|&(_, n)| n > 0)).collect()
    }

    fn counter_mut(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "lines" => &mut self.lines,
            "blank" => &mut self.blank,
            "line_too_long" => &mut self.line_too_long,
            "bad_line" => &mut self.bad_line,
            "no_text" => &mut self.no_text,
            "bad_rating" => &mut self.bad_rating,
            "unrated" => &mut self.unrated,
            "empty_text" => &mut self.empty_text,
            "reviews" => &mut self.reviews,
            "invalid_utf8" => &mut self.invalid_utf8,
            "table_lines" => &mut self.table_lines,
            _ => return None,
        })
    }

    /// Number of bad lines.
    pub fn bad(&self) -> u64 {
        [self.line_too_long, self.bad_line, self.no_text, self.bad_rating]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Checks that the shares of lines that are not UTF-8 and of bad lines do not exceed their limits. Blank lines are
    /// excluded.
    pub fn judge(&self, limits: Limits, part: Part) -> Result<(), TooMany> {
        let lines = self.filled_lines();
        let exceed = |n: u64, most: Share| {
            let is_enough = match part {
                Part::All => n >= BAD_LINES_MIN,
                Part::Task => lines >= TASK_LINES_MIN,
            };
            (is_enough || most.0 == 0.0) && !most.allows(n, lines)
        };
        // Bytes of another encoding are also a cause of bad lines.
        if exceed(self.invalid_utf8, limits.invalid_utf8_max) {
            let share = limits.invalid_utf8_max;
            return Err(TooMany::InvalidUtf8(TooManyInvalid { invalid: self.invalid_utf8, lines, share }));
        }
        let (bad, share) = (self.bad(), limits.bad_lines_max);
        if !exceed(bad, share) {
            return Ok(());
        }
        let reasons = self.ledger().into_iter().filter(|(name, n)| *n > 0 && BAD.contains(name));
        let reasons = reasons.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ");
        Err(TooMany::Bad(TooManyBad { bad, lines, reasons, share }))
    }

    /// Number of lines that are not blank.
    pub fn filled_lines(&self) -> u64 {
        self.lines.saturating_sub(self.blank)
    }

    /// Checks that every line was counted once.
    pub fn check(&self) -> Result<(), Unbalanced> {
        let sum = self.ledger()[1..].iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
        if self.lines == sum { Ok(()) } else { Err(Unbalanced::Lines { lines: self.lines, sum }) }
    }

    /// Reads the counters of group `mapper` from the output of Hadoop's job client at the end of a job.
    /// Returns `None` if there is no such group.
    pub fn from_job_output(output: &str) -> Option<Self> {
        let mut counts = None;
        let mut in_group = false;
        for line in output.lines() {
            match line.trim().split_once('=') {
                Some((name, value)) if in_group => {
                    let value = value.parse().ok()?;
                    *counts.get_or_insert_with(Self::default).counter_mut(name)? = value;
                }
                Some(_) => {}
                None => in_group = line.trim() == Self::GROUP,
            }
        }
        counts
    }
}

/// The ledger without zero counts: `6 lines = 1 no_text + 5 reviews`.
impl fmt::Display for MapperCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.ledger().into_iter().skip(1).filter(|&(name, n)| n > 0 || name == "reviews");
        let kinds: Vec<_> = kinds.map(|(name, n)| format!("{n} {name}")).collect();
        write!(out, "{} lines = {}", self.lines, kinds.join(" + "))
    }
}

impl AddAssign for MapperCounts {
    fn add_assign(&mut self, other: Self) {
        for (name, value) in other.counters() {
            let sum = self.counter_mut(name).expect("counters and counter_mut list the same names");
            // Counts come from files, which can hold any value.
            *sum = sum.saturating_add(value);
        }
    }
}

/// Minimum number of bad lines for which the share is checked.
pub const BAD_LINES_MIN: u64 = 20;
/// Minimum number of lines for which a Hadoop task checks the share of bad lines.
pub const TASK_LINES_MIN: u64 = 1000;

/// Maximum share of bad lines for which a higher limit is advised. A greater share has a cause that a higher
/// limit would only hide.
const RAISED_SHARE_MAX: f64 = 0.1;

impl TooManyBad {
    /// Advice to raise the limit; empty unless only a few percent of the lines are bad.
    pub fn advice(&self) -> &'static str {
        if is_few(self.bad, self.lines) { ", or raise --bad-lines-max" } else { "" }
    }
}

impl TooManyInvalid {
    /// Advice to raise the limit, as for bad lines.
    pub fn advice(&self) -> &'static str {
        if is_few(self.invalid, self.lines) { ", or raise --invalid-utf8-max" } else { "" }
    }
}

fn is_few(n: u64, lines: u64) -> bool {
    n as f64 <= RAISED_SHARE_MAX * lines as f64
}

/// The counters of bad lines.
const BAD: [&str; 4] = ["line_too_long", "bad_line", "no_text", "bad_rating"];

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Share {
    /// The default limit of the share of bad lines.
    pub const OF_BAD_LINES: Self = Self(0.05);
    /// The default limit of the share of lines that are not UTF-8.
    pub const OF_INVALID_UTF8: Self = Self(0.05);
    /// The share 1.
    pub const ALL: Self = Self(1.0);

    /// Whether this number of lines does not exceed the share.
    pub fn allows(self, n: u64, lines: u64) -> bool {
        n as f64 <= self.0 * lines as f64
    }

    /// Whether the share is above the default of bad lines.
    pub fn is_raised(self) -> bool {
        self.0 > Self::OF_BAD_LINES.0
    }
}

impl FromStr for Share {
    type Err = NoShare;

    fn from_str(share: &str) -> Result<Self, NoShare> {
        share.parse().ok().filter(|share| (0.0..=1.0).contains(share)).map(Self).ok_or(NoShare)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The error for a text that is not a number from 0 to 1.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a number from 0 to 1")]
pub struct NoShare;

/// The limits of lines, as shares of those that are not blank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Maximum share of bad lines.
    pub bad_lines_max: Share,
    /// Maximum share of lines with bytes that are not UTF-8, or not in the encoding that was named.
    pub invalid_utf8_max: Share,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self { bad_lines_max: Share::ALL, invalid_utf8_max: Share::ALL };
}

impl Default for Limits {
    fn default() -> Self {
        Self { bad_lines_max: Share::OF_BAD_LINES, invalid_utf8_max: Share::OF_INVALID_UTF8 }
    }
}

/// What counts were made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole input. A limit applies from [`BAD_LINES_MIN`] lines that exceed it.
    All,
    /// The part of a Hadoop task. A limit applies from [`TASK_LINES_MIN`] lines.
    Task,
}

/// The limit that is exceeded.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum TooMany {
    /// That of bad lines.
    #[error(transparent)]
    Bad(TooManyBad),
    /// That of lines that are not UTF-8.
    #[error(transparent)]
    InvalidUtf8(TooManyInvalid),
}

/// The share of lines that are not UTF-8 exceeds the limit.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error("{invalid} of {lines} lines are not UTF-8 (--invalid-utf8-max {share})")]
pub struct TooManyInvalid {
    /// Number of lines with bytes that are not UTF-8.
    pub invalid: u64,
    /// Number of lines that are not blank.
    pub lines: u64,
    /// The limit.
    pub share: Share,
}

/// The share of bad lines exceeds the limit.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{bad} of {lines} lines are bad ({reasons}), expected at most {share} of them")]
pub struct TooManyBad {
    /// Number of bad lines.
    pub bad: u64,
    /// Number of lines that are not blank.
    pub lines: u64,
    /// Number of bad lines per reason.
    pub reasons: String,
    /// The limit.
    pub share: Share,
}

/// The reducer's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ReducerCounts {
    /// Number of reviews: the sum of all votes.
    pub reviews: u64,
    /// Distinct texts.
    pub distinct: u64,
    /// Texts outside the sample. `None` without a sample.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub not_sampled: Option<u64>,
    /// Texts whose rating has no class, which are dropped. `None` without named classes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub not_labelled: Option<u64>,
    /// Texts of stop words only, which are dropped.
    pub only_stopwords: u64,
    /// Texts that became a row.
    pub rows: u64,
}

impl ReducerCounts {
    /// The counter group.
    pub const GROUP: &str = "reducer";

    /// The counts before the first text of rows with these settings.
    pub fn none(settings: &Settings) -> Self {
        Self {
            not_sampled: settings.sample.threshold().map(|_| 0),
            not_labelled: settings.labels.classes().map(|_| 0),
            ..Self::default()
        }
    }

    /// Names and values, in the order of the ledger.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let counters = [
            ("reviews", Some(self.reviews)),
            ("distinct", Some(self.distinct)),
            ("not_sampled", self.not_sampled),
            ("not_labelled", self.not_labelled),
            ("only_stopwords", Some(self.only_stopwords)),
            ("rows", Some(self.rows)),
        ];
        counters.into_iter().filter_map(|(name, n)| Some((name, n?))).collect()
    }

    /// The ledger of texts: `3 distinct = 0 only_stopwords + 3 rows`.
    pub fn of_texts(&self) -> String {
        sum(&self.counters()[1..])
    }

    /// Number of texts that did not become a row.
    pub fn dropped(&self) -> u64 {
        let optional = self.not_sampled.unwrap_or(0).saturating_add(self.not_labelled.unwrap_or(0));
        optional.saturating_add(self.only_stopwords)
    }

    /// Checks that every text was counted once.
    pub fn check(&self) -> Result<(), Unbalanced> {
        let sum = self.dropped().saturating_add(self.rows);
        if self.distinct == sum { Ok(()) } else { Err(Unbalanced::Texts { distinct: self.distinct, sum }) }
    }
}

impl fmt::Display for ReducerCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = self.counters().into_iter().map(|(name, n)| format!("{n} {name}"));
        out.write_str(&counters.collect::<Vec<_>>().join(", "))
    }
}

impl AddAssign for ReducerCounts {
    fn add_assign(&mut self, other: Self) {
        self.reviews = self.reviews.saturating_add(other.reviews);
        self.distinct = self.distinct.saturating_add(other.distinct);
        self.not_sampled = optional_sum(self.not_sampled, other.not_sampled);
        self.not_labelled = optional_sum(self.not_labelled, other.not_labelled);
        self.only_stopwords = self.only_stopwords.saturating_add(other.only_stopwords);
        self.rows = self.rows.saturating_add(other.rows);
    }
}

fn optional_sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.map_or(other, |n| Some(n.saturating_add(other.unwrap_or(0))))
}

/// A ledger that does not balance: data was lost or counted twice.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unbalanced {
    /// The mappers' counts do not balance.
    #[error(
        "the mappers read {lines} lines and account for {sum}; a file of --counts was cut or altered, restore it"
    )]
    Lines {
        /// Number of lines read.
        lines: u64,
        /// Sum of the other counters.
        sum: u64,
    },
    /// The reducers' counts do not balance.
    #[error(
        "the reducers read {distinct} distinct texts and account for {sum}; a commit record was altered, restore it"
    )]
    Texts {
        /// Number of distinct texts.
        distinct: u64,
        /// Sum of the other counters.
        sum: u64,
    },
    /// The mappers' and the reducers' counts differ.
    #[error(
        "the mappers wrote {mapped} reviews and the shards contain {reduced}; pass --counts of this run, with the file of each mapper once"
    )]
    Reviews {
        /// Number of reviews of the mappers.
        mapped: u64,
        /// Number of votes in the shards.
        reduced: u64,
    },
}

/// Checks that no review was lost or duplicated between the mappers and the reducers.
pub fn check_run(mapper: &MapperCounts, reducer: &ReducerCounts) -> Result<(), Unbalanced> {
    mapper.check()?;
    reducer.check()?;
    if mapper.reviews == reducer.reviews {
        Ok(())
    } else {
        Err(Unbalanced::Reviews { mapped: mapper.reviews, reduced: reducer.reviews })
    }
}

/// The ledger in lines: every line of the input, every text of the shards, every row of the dataset. `rows` are those
/// of the dataset, without the `left_out` rows that another dataset has.
pub fn lines(mapper: Option<&MapperCounts>, reducer: &ReducerCounts, rows: u64, left_out: u64) -> String {
    let unknown = || "lines unknown without --counts: a mapper that failed goes unnoticed".to_owned();
    let mut lines =
        format!("ledger            {}\n", mapper.map_or_else(unknown, |mapper| sum(&mapper.ledger())));
    if let Some(n @ 1..) = mapper.map(|mapper| mapper.invalid_utf8) {
        lines += &format!("                  {n} lines with bytes that are not UTF-8 (invalid_utf8)\n");
    }
    if let Some(MapperCounts { lines: records, table_lines: n @ 1.., .. }) = mapper
        && n > records
    {
        lines += &format!("                  {records} records of tables in {n} lines (table_lines)\n");
    }
    lines += &format!("                  {} reviews, {}\n", reducer.reviews, reducer.of_texts());
    lines += &format!("                  {} rows = {rows} rows here + {left_out} left_out\n", reducer.rows);
    lines
}

/// A counter and the counters that it is the sum of.
fn sum(counters: &[(&str, u64)]) -> String {
    let (name, total) = counters[0];
    let parts: Vec<String> = counters[1..].iter().map(|(name, n)| format!("{n} {name}")).collect();
    format!("{total} {name} = {}", parts.join(" + "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;

    const COUNTS: MapperCounts = MapperCounts {
        lines: 10,
        blank: 1,
        line_too_long: 0,
        bad_line: 2,
        no_text: 1,
        bad_rating: 0,
        unrated: 0,
        empty_text: 1,
        reviews: 5,
        invalid_utf8: 2,
        table_lines: 0,
    };

    #[test]
    fn unrated_reviews_are_counted_apart_and_are_not_bad() {
        let mut counts = MapperCounts { lines: 13, unrated: 2, ..COUNTS };
        assert_eq!(counts.count(Fate::Rejected(Reject::Unrated)), 3);
        assert_eq!((counts.check(), counts.bad()), (Ok(()), COUNTS.bad()));
        assert!(counts.counters().contains(&("unrated", 3)) && !Fate::Rejected(Reject::Unrated).is_bad());
        let ledger = "13 lines = 1 blank + 2 bad_line + 1 no_text + 3 unrated + 1 empty_text + 5 reviews";
        assert_eq!(counts.to_string(), ledger);
        let written = serde_json::to_value(counts).unwrap();
        assert_eq!(serde_json::from_value::<MapperCounts>(written).unwrap(), counts);
        assert_eq!(serde_json::to_value(COUNTS).unwrap().get("unrated"), None);
    }

    #[test]
    fn a_ledger_that_lost_a_line_does_not_balance() {
        assert_eq!(COUNTS.check(), Ok(()));
        let lost = MapperCounts { blank: 0, ..COUNTS };
        assert_eq!(lost.check(), Err(Unbalanced::Lines { lines: 10, sum: 9 }));
    }

    #[test]
    fn each_fate_has_its_own_counter_and_four_are_bad() {
        let fates = [
            (Fate::Blank, "blank", false),
            (Fate::TooLong, "line_too_long", true),
            (Fate::Rejected(Reject::BadLine), "bad_line", true),
            (Fate::Rejected(Reject::NoText), "no_text", true),
            (Fate::Rejected(Reject::BadRating), "bad_rating", true),
            (Fate::EmptyText, "empty_text", false),
        ];
        for (fate, counter, is_bad) in fates {
            assert_eq!((fate.counter(), fate.is_bad()), (counter, is_bad));
            let mut counts = MapperCounts::default();
            assert_eq!([counts.count(fate), counts.count(fate)], [1, 2]);
            let counted = counts.counters().into_iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>();
            assert_eq!((counted, counts.bad()), (vec![(counter, 2)], if is_bad { 2 } else { 0 }));
        }
    }

    #[test]
    fn only_lines_that_are_not_blank_and_not_too_long_are_held() {
        assert_eq!(Fate::held(LineContent::Bytes(b"a b")), Ok(&b"a b"[..]));
        assert_eq!(Fate::held(LineContent::Bytes(b" \t")), Err(Fate::Blank));
    }

    #[test]
    fn reviews_of_mappers_and_reducers_must_agree() {
        let reduced =
            ReducerCounts { reviews: 5, distinct: 4, only_stopwords: 1, rows: 3, ..Default::default() };
        assert_eq!(check_run(&COUNTS, &reduced), Ok(()));
        let doubled = ReducerCounts { reviews: 6, ..reduced };
        assert_eq!(check_run(&COUNTS, &doubled), Err(Unbalanced::Reviews { mapped: 5, reduced: 6 }));
        let lost = ReducerCounts { rows: 2, ..reduced };
        assert_eq!(check_run(&COUNTS, &lost), Err(Unbalanced::Texts { distinct: 4, sum: 3 }));
    }

    #[test]
    fn texts_without_a_class_are_counted_only_with_named_classes() {
        let labels = |list: &str| Labels::Classes(list.parse().unwrap());
        let split = ReducerCounts::none(&Settings::default());
        let labels = labels("1-2=bad,5=good");
        let mut named = ReducerCounts::none(&Settings { labels, ..Settings::default() });
        assert_eq!(split.to_string(), "0 reviews, 0 distinct, 0 only_stopwords, 0 rows");
        assert_eq!(named.of_texts(), "0 distinct = 0 not_labelled + 0 only_stopwords + 0 rows");
        let counted =
            ReducerCounts { reviews: 5, distinct: 4, only_stopwords: 1, rows: 1, ..with_classes(2) };
        named += counted;
        assert_eq!((named, named.check()), (counted, Ok(())));
        named += counted;
        assert_eq!((named.not_labelled, named.check()), (Some(4), Ok(())));
        let lost = ReducerCounts { not_labelled: Some(1), ..counted };
        assert_eq!(lost.check(), Err(Unbalanced::Texts { distinct: 4, sum: 3 }));
        let written = |counts: &ReducerCounts| serde_json::to_value(counts).unwrap();
        assert_eq!(written(&split).get("not_labelled"), None);
        assert_eq!(written(&counted)["not_labelled"], 2);
        assert_eq!(serde_json::from_value::<ReducerCounts>(written(&counted)).unwrap(), counted);
        let null = serde_json::json!({
            "reviews": 0, "distinct": 0, "not_labelled": null, "only_stopwords": 0, "rows": 0
        });
        assert!(serde_json::from_value::<ReducerCounts>(null).is_err());
    }

    fn with_classes(not_labelled: u64) -> ReducerCounts {
        ReducerCounts { not_labelled: Some(not_labelled), ..ReducerCounts::default() }
    }

    #[test]
    fn texts_outside_a_sample_are_counted_only_with_a_sample() {
        let settings = |share: &str| Settings { sample: share.parse().unwrap(), ..Settings::default() };
        assert_eq!(ReducerCounts::none(&settings("1")), ReducerCounts::default());
        let mut sampled = ReducerCounts::none(&settings("0.25"));
        assert_eq!(sampled.of_texts(), "0 distinct = 0 not_sampled + 0 only_stopwords + 0 rows");
        let not_sampled = Some(5);
        let counted = ReducerCounts {
            reviews: 9,
            distinct: 9,
            not_sampled,
            only_stopwords: 1,
            rows: 1,
            ..with_classes(2)
        };
        let texts = "9 distinct = 5 not_sampled + 2 not_labelled + 1 only_stopwords + 1 rows";
        assert_eq!((counted.of_texts(), counted.check()), (texts.to_owned(), Ok(())));
        assert_eq!(counted.dropped(), 8);
        sampled += counted;
        sampled += counted;
        assert_eq!((sampled.not_sampled, sampled.check()), (Some(10), Ok(())));
        let lost = ReducerCounts { not_sampled: None, ..counted };
        assert_eq!(lost.check(), Err(Unbalanced::Texts { distinct: 9, sum: 4 }));
        let written = serde_json::to_value(counted).unwrap();
        assert_eq!(written["not_sampled"], 5);
        assert_eq!(serde_json::from_value::<ReducerCounts>(written).unwrap(), counted);
    }

    fn judged(counts: &MapperCounts, share: &str, part: Part) -> Option<TooManyBad> {
        let limits = Limits { bad_lines_max: share.parse().unwrap(), ..Limits::default() };
        match counts.judge(limits, part) {
            Ok(()) => None,
            Err(TooMany::Bad(found)) => Some(found),
            Err(found) => panic!("{found}"),
        }
    }

    #[test]
    fn the_share_of_bad_lines_of_a_task_is_checked_from_1000_lines() {
        let judged = |counts: &MapperCounts, share: &str| judged(counts, share, Part::Task);
        let counts = MapperCounts { lines: 1100, blank: 100, bad_line: 50, ..MapperCounts::default() };
        assert_eq!(judged(&counts, "0.05"), None);
        let more = MapperCounts { no_text: 1, ..counts };
        let expected = "51 of 1000 lines are bad (bad_line 50, no_text 1), expected at most 0.05 of them";
        assert_eq!(judged(&more, "0.05").unwrap().to_string(), expected);
        assert_eq!(judged(&more, "0.06"), None);
        let fewer_lines = MapperCounts { blank: 101, ..more };
        assert_eq!(judged(&fewer_lines, "0.001"), None);
        // 0 allows no bad line, however few lines there are.
        assert_eq!(judged(&fewer_lines, "0").unwrap().bad, 51);
    }

    #[test]
    fn the_share_of_bad_lines_of_all_input_is_checked_from_20_bad_lines() {
        let judged = |counts: &MapperCounts, share: &str| judged(counts, share, Part::All);
        let counts = MapperCounts { lines: 200, bad_line: 19, ..MapperCounts::default() };
        assert_eq!(judged(&counts, "0.001"), None);
        assert_eq!(judged(&counts, "0").unwrap().bad, 19);
        assert_eq!(judged(&MapperCounts { bad_line: 0, ..counts }, "0"), None);
        let more = MapperCounts { no_text: 1, ..counts };
        let expected = "20 of 200 lines are bad (bad_line 19, no_text 1), expected at most 0.05 of them";
        assert_eq!(judged(&more, "0.05").unwrap().to_string(), expected);
        assert_eq!(judged(&more, "0.1"), None);
        assert_eq!(judged(&MapperCounts { blank: 1, ..more }, "0.1").unwrap().lines, 199);
        assert_eq!(judged(&MapperCounts { lines: 400, ..more }, "0.05"), None);
        assert!(["1.1", "-0.1", "NaN", "five", ""].iter().all(|share| share.parse::<Share>().is_err()));
    }

    #[test]
    fn the_share_of_lines_that_are_not_utf8_is_checked_as_that_of_bad_lines_and_before_it() {
        let judged = |counts: &MapperCounts, share: &str, part| {
            let limits = Limits { invalid_utf8_max: share.parse().unwrap(), ..Limits::default() };
            counts.judge(limits, part).map_err(|found| found.to_string())
        };
        let counts = MapperCounts { lines: 400, blank: 1, invalid_utf8: 19, ..MapperCounts::default() };
        assert_eq!(judged(&counts, "0.01", Part::All), Ok(()));
        assert_eq!(judged(&MapperCounts { invalid_utf8: 0, ..counts }, "0", Part::All), Ok(()));
        let more = MapperCounts { bad_line: 399, invalid_utf8: 20, ..counts };
        let expected = "20 of 399 lines are not UTF-8 (--invalid-utf8-max 0.05)";
        assert_eq!(judged(&more, "0.05", Part::All).unwrap_err(), expected);
        assert!(judged(&more, "0.06", Part::All).unwrap_err().starts_with("399 of 399 lines are bad"));
        assert_eq!(judged(&more, "0.05", Part::Task), Ok(()));
        let task = MapperCounts { lines: 1000, invalid_utf8: 51, ..MapperCounts::default() };
        assert!(judged(&task, "0.05", Part::Task).is_err());
        assert_eq!(judged(&MapperCounts { invalid_utf8: 50, ..task }, "0.05", Part::Task), Ok(()));
        let found = |invalid| TooManyInvalid { invalid, lines: 100, share: Share::OF_INVALID_UTF8 };
        assert_eq!([found(10).advice(), found(11).advice()], [", or raise --invalid-utf8-max", ""]);
    }

    #[test]
    fn sums_of_hostile_counts_saturate() {
        let mut sum = MapperCounts { reviews: u64::MAX, bad_line: u64::MAX, ..COUNTS };
        sum += sum;
        assert_eq!((sum.reviews, sum.bad()), (u64::MAX, u64::MAX));
        assert!(sum.check().is_err());
    }

    #[test]
    fn sums_keep_every_counter() {
        let mut sum = COUNTS;
        sum += COUNTS;
        let doubled: Vec<_> = COUNTS.counters().into_iter().map(|(name, n)| (name, 2 * n)).collect();
        assert_eq!((sum.counters(), doubled.len()), (doubled, 9));
    }

    #[test]
    fn lines_that_are_not_utf8_are_reported_outside_the_ledger() {
        let none = MapperCounts { invalid_utf8: 0, ..COUNTS };
        assert_eq!(none.counters(), COUNTS.ledger());
        let written = |counts: &MapperCounts| serde_json::to_value(counts).unwrap();
        assert_eq!(written(&COUNTS)["invalid_utf8"], 2);
        assert_eq!(written(&none).get("invalid_utf8"), None);
        assert_eq!(serde_json::from_value::<MapperCounts>(written(&none)).unwrap(), none);
        assert_eq!(
            COUNTS.to_string(),
            "10 lines = 1 blank + 2 bad_line + 1 no_text + 1 empty_text + 5 reviews"
        );
        assert_eq!(MapperCounts::default().to_string(), "0 lines = 0 reviews");
    }

    #[test]
    fn lines_inside_records_of_tables_are_reported_outside_the_ledger() {
        let counts = MapperCounts { table_lines: 12, ..COUNTS };
        assert_eq!((counts.check(), counts.counters().last()), (Ok(()), Some(&("table_lines", 12))));
        let reducer = ReducerCounts::default();
        let text = |counts| lines(Some(&counts), &reducer, 0, 0);
        assert!(
            text(counts).contains("\n                  10 records of tables in 12 lines (table_lines)\n")
        );
        assert!(!text(MapperCounts { table_lines: 10, ..COUNTS }).contains("table_lines"));
    }

    #[test]
    fn counters_are_read_from_the_output_of_the_job_client() {
        let output = "INFO mapreduce.Job: Counters: 55\n\tFile System Counters\n\t\tFILE: Number of bytes read=7\n\
            \tmapper\n\t\tbad_line=2\n\t\tblank=1\n\t\tempty_text=1\n\t\tinvalid_utf8=2\n\t\tlines=10\n\t\tno_text=1\n\t\treviews=5\n\
            \treducer\n\t\treviews=5\n\tFile Input Format Counters \n\t\tBytes Read=100\n";
        assert_eq!(MapperCounts::from_job_output(output), Some(COUNTS));
        assert_eq!(MapperCounts::from_job_output("no counters"), None);
    }

    #[test]
    fn the_counters_of_mapred_job_status_are_read() {
        // Printed by `mapred job -status` of Hadoop 3.4.2, with parts removed.
        let output = "\nJob: job_1795410667730_0001\nUber job : false\nNumber of maps: 2\nmap() completion: 1.0\n\
                      Job state: SUCCEEDED\nretired: false\nreason for failure:  \nCounters: 73\n\tJob Counters \n\
                      \t\tLaunched map tasks=2\n\tmapper\n\t\tbad_line=3\n\t\tbad_rating=6\n\t\tblank=1\n\t\tempty_text=1\n\
                      \t\tinvalid_utf8=1\n\t\tline_too_long=0\n\t\tlines=2000\n\t\tno_text=3\n\t\treviews=1986\n\
                      \tFile Input Format Counters \n\t\tBytes Read=920783\n\treducer\n\t\treviews=1986\n";
        let counts = MapperCounts::from_job_output(output).unwrap();
        assert_eq!(
            (counts.lines, counts.bad_rating, counts.invalid_utf8, counts.reviews),
            (2000, 6, 1, 1986)
        );
        assert_eq!(counts.check(), Ok(()));
    }
}

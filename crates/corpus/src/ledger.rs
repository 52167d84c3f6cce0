//! The ledger: the counts of all lines and texts. Every line of the input is counted once, and the counts of
//! all stages must balance.
//!
//! The counts are also Hadoop counters. Their names are a closed list, and Hadoop reads them from stderr.

mod limits;

use std::fmt;
use std::ops::{AddAssign, SubAssign};

use program::exit::{Exit, Fails};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::entry::Reject;
use crate::lines::{LineContent, is_blank};
use crate::objects::present;
use crate::settings::Settings;

pub use limits::*;

/// The counters of bad lines.
const BAD: [&str; 4] = ["line_too_long", "bad_line", "no_text", "bad_rating"];

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
pub enum NoReview {
    /// The line is only spaces and tabs.
    Blank,
    /// The line is longer than the limit.
    TooLong,
    /// The line does not hold a review of the format.
    Rejected(Reject),
    /// The cleaned text is empty.
    EmptyText,
}

impl NoReview {
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
    #[inline]
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
    pub fn count(&mut self, reason: NoReview) -> u64 {
        let counter = self.counter_mut(reason.counter()).expect("each reason has a counter");
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

    /// Checks that the shares of lines that are not in this encoding and of bad lines do not exceed their limits. Blank lines
    /// are excluded.
    pub fn judge(&self, limits: Limits, part: Part, encoding: &'static str) -> Result<(), TooMany> {
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
            let (invalid, share) = (self.invalid_utf8, limits.invalid_utf8_max);
            return Err(TooMany::InvalidUtf8(TooManyInvalid { encoding, invalid, lines, share }));
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

/// Subtracts the counts of some of the texts.
impl SubAssign for ReducerCounts {
    fn sub_assign(&mut self, some: Self) {
        let less = |n: Option<u64>, m: Option<u64>| n.map(|n| n.saturating_sub(m.unwrap_or(0)));
        self.reviews = self.reviews.saturating_sub(some.reviews);
        self.distinct = self.distinct.saturating_sub(some.distinct);
        self.not_sampled = less(self.not_sampled, some.not_sampled);
        self.not_labelled = less(self.not_labelled, some.not_labelled);
        self.only_stopwords = self.only_stopwords.saturating_sub(some.only_stopwords);
        self.rows = self.rows.saturating_sub(some.rows);
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
        "the ledger does not balance: the mappers read {lines} lines and account for {sum}; a file of --counts was cut or altered, restore it"
    )]
    Lines {
        /// Number of lines read.
        lines: u64,
        /// Sum of the other counters.
        sum: u64,
    },
    /// The reducers' counts do not balance.
    #[error(
        "the ledger does not balance: the reducers read {distinct} distinct texts and account for {sum}; a commit record was altered, restore it"
    )]
    Texts {
        /// Number of distinct texts.
        distinct: u64,
        /// Sum of the other counters.
        sum: u64,
    },
    /// The mappers' and the reducers' counts differ.
    #[error(
        "the ledger does not balance: the mappers wrote {mapped} reviews and the shards contain {reduced}; pass --counts of this run, with the file of each mapper once"
    )]
    Reviews {
        /// Number of reviews of the mappers.
        mapped: u64,
        /// Number of votes in the shards.
        reduced: u64,
    },
}

impl Fails for Unbalanced {
    fn exit(&self) -> Exit {
        Exit::BadInput
    }
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
mod tests;

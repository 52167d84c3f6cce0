//! The ledger: every line of the input is counted once, and the counts of all stages balance.
//!
//! The counts are also Hadoop counters, a closed list, which reach the framework as lines on stderr.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::lines::{LineContent, is_blank};
use crate::review::Reject;

/// What became of the mapper's lines. Each line is counted once, by the first of these that fits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct MapperCounts {
    /// All lines.
    pub lines: u64,
    /// Lines of spaces and tabs alone.
    pub blank: u64,
    /// Lines longer than the limit.
    pub line_too_long: u64,
    /// Lines that are not in the format.
    pub bad_line: u64,
    /// Lines whose text is absent, null or no string.
    pub no_text: u64,
    /// Lines whose rating is not 1, 2, 3, 4 or 5.
    pub bad_rating: u64,
    /// Lines whose text has no letter left after cleaning.
    pub empty_text: u64,
    /// Lines that became a record.
    pub reviews: u64,
    /// Of all these, lines with bytes that are not UTF-8. It is information beside the ledger, no part of its sum.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalid_utf8: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

crate::read_from_objects!(MapperCounts, ReducerCounts);

/// What becomes of a line that is no review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is spaces and tabs alone.
    Blank,
    /// It is longer than the limit.
    TooLong,
    /// It is not a review of the format.
    Rejected(Reject),
    /// Its text has no letter left after cleaning.
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
            Self::EmptyText => "empty_text",
        }
    }

    /// The bytes of a line that is neither blank nor too long to be held, which are the first things to be looked for.
    pub fn held(line: LineContent<'_>) -> Result<&[u8], Self> {
        match line {
            LineContent::TooLong { blank: true, .. } => Err(Self::Blank),
            LineContent::TooLong { .. } => Err(Self::TooLong),
            LineContent::Bytes(bytes) if is_blank(bytes) => Err(Self::Blank),
            LineContent::Bytes(bytes) => Ok(bytes),
        }
    }

    /// Whether it says that something is wrong with the input.
    pub fn is_bad(self) -> bool {
        BAD.contains(&self.counter())
    }
}

impl MapperCounts {
    /// The counter group.
    pub const GROUP: &str = "mapper";

    /// Counts a line that is no review; gives the number of such lines so far.
    pub fn count(&mut self, fate: Fate) -> u64 {
        let counter = self.counter_mut(fate.counter()).expect("each fate has a counter");
        *counter += 1;
        *counter
    }

    /// Names and values, in the order of the ledger.
    pub fn ledger(&self) -> [(&'static str, u64); 8] {
        [
            ("lines", self.lines),
            ("blank", self.blank),
            ("line_too_long", self.line_too_long),
            ("bad_line", self.bad_line),
            ("no_text", self.no_text),
            ("bad_rating", self.bad_rating),
            ("empty_text", self.empty_text),
            ("reviews", self.reviews),
        ]
    }

    /// All counters that a task reports: the ledger, and what is to be said beside it.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let beside = (self.invalid_utf8 > 0).then_some(("invalid_utf8", self.invalid_utf8));
        self.ledger().into_iter().chain(beside).collect()
    }

    fn counter_mut(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "lines" => &mut self.lines,
            "blank" => &mut self.blank,
            "line_too_long" => &mut self.line_too_long,
            "bad_line" => &mut self.bad_line,
            "no_text" => &mut self.no_text,
            "bad_rating" => &mut self.bad_rating,
            "empty_text" => &mut self.empty_text,
            "reviews" => &mut self.reviews,
            "invalid_utf8" => &mut self.invalid_utf8,
            _ => return None,
        })
    }

    /// Lines that say that something is wrong with the input.
    pub fn bad(&self) -> u64 {
        [self.line_too_long, self.bad_line, self.no_text, self.bad_rating]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Checks that not more than this share of the lines, blank ones aside, is bad, where these are the counts of all
    /// input. Fewer than [`BAD_LINES_MIN`] bad lines say too little.
    pub fn judge(&self, bad_lines_max: Share) -> Result<(), TooManyBad> {
        if self.bad() < BAD_LINES_MIN { Ok(()) } else { self.judge_share(bad_lines_max) }
    }

    /// The same of the counts of one task of Hadoop, which sees a part of the input: fewer than [`TASK_LINES_MIN`] lines
    /// say too little.
    pub fn judge_task(&self, bad_lines_max: Share) -> Result<(), TooManyBad> {
        if self.filled_lines() < TASK_LINES_MIN { Ok(()) } else { self.judge_share(bad_lines_max) }
    }

    fn judge_share(&self, bad_lines_max: Share) -> Result<(), TooManyBad> {
        let (bad, lines) = (self.bad(), self.filled_lines());
        if bad as f64 <= bad_lines_max.0 * lines as f64 {
            return Ok(());
        }
        let reasons = self.ledger().into_iter().filter(|(name, n)| *n > 0 && BAD.contains(name));
        let reasons = reasons.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ");
        Err(TooManyBad { bad, lines, reasons, share: bad_lines_max })
    }

    /// Lines that are not blank.
    pub fn filled_lines(&self) -> u64 {
        self.lines.saturating_sub(self.blank)
    }

    /// Checks that every line was counted once.
    pub fn check(&self) -> Result<(), Unbalanced> {
        let sum = self.ledger()[1..].iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
        if self.lines == sum { Ok(()) } else { Err(Unbalanced::Lines { lines: self.lines, sum }) }
    }

    /// Reads the counters of group `mapper` out of what Hadoop's job client prints at the end of a job; `None`
    /// where there is no such group.
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

/// The ledger without what is 0: `6 lines = 1 no_text + 5 reviews`.
impl fmt::Display for MapperCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(name, lines), kinds @ ..] = self.ledger();
        let kinds = kinds.into_iter().filter(|&(name, n)| n > 0 || name == "reviews");
        let kinds: Vec<_> = kinds.map(|(name, n)| format!("{n} {name}")).collect();
        write!(out, "{lines} {name} = {}", kinds.join(" + "))
    }
}

impl AddAssign for MapperCounts {
    fn add_assign(&mut self, other: Self) {
        for (name, value) in other.counters() {
            let sum = self.counter_mut(name).expect("counters and counter_mut list the same names");
            // Counts come from files that anybody may have written.
            *sum = sum.saturating_add(value);
        }
    }
}

/// Number of bad lines from which on their share is judged.
pub const BAD_LINES_MIN: u64 = 20;
/// Number of lines from which on a Hadoop task judges the share of bad lines.
pub const TASK_LINES_MIN: u64 = 1000;

/// The counters of bad lines.
const BAD: [&str; 4] = ["line_too_long", "bad_line", "no_text", "bad_rating"];

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Share {
    /// The share of bad lines that is accepted if nothing else is said.
    pub const OF_BAD_LINES: Self = Self(0.05);
    /// Everything.
    pub const ALL: Self = Self(1.0);
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

/// What is no share.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a number from 0 to 1")]
pub struct NoShare;

/// More bad lines than are accepted.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{bad} of {lines} lines are bad ({reasons}), expected at most {share} of them")]
pub struct TooManyBad {
    /// Bad lines.
    pub bad: u64,
    /// Lines that are not blank.
    pub lines: u64,
    /// Bad lines by reason.
    pub reasons: String,
    /// The share that is accepted.
    pub share: Share,
}

/// What became of the reducer's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ReducerCounts {
    /// All votes.
    pub reviews: u64,
    /// Distinct texts.
    pub distinct: u64,
    /// Texts of stop words only, which are dropped.
    pub only_stopwords: u64,
    /// Texts that became a row.
    pub rows: u64,
}

impl ReducerCounts {
    /// The counter group.
    pub const GROUP: &str = "reducer";

    /// Names and values, in the order of the ledger.
    pub fn counters(&self) -> [(&'static str, u64); 4] {
        [
            ("reviews", self.reviews),
            ("distinct", self.distinct),
            ("only_stopwords", self.only_stopwords),
            ("rows", self.rows),
        ]
    }

    /// Checks that every text was counted once.
    pub fn check(&self) -> Result<(), Unbalanced> {
        let sum = self.only_stopwords.saturating_add(self.rows);
        if self.distinct == sum { Ok(()) } else { Err(Unbalanced::Texts { distinct: self.distinct, sum }) }
    }
}

impl fmt::Display for ReducerCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.counters().map(|(name, n)| format!("{n} {name}")).join(", "))
    }
}

impl AddAssign for ReducerCounts {
    fn add_assign(&mut self, other: Self) {
        self.reviews = self.reviews.saturating_add(other.reviews);
        self.distinct = self.distinct.saturating_add(other.distinct);
        self.only_stopwords = self.only_stopwords.saturating_add(other.only_stopwords);
        self.rows = self.rows.saturating_add(other.rows);
    }
}

/// A ledger that does not balance: something was lost or counted twice.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unbalanced {
    /// Within the mappers.
    #[error(
        "the mappers read {lines} lines and account for {sum}; a file of --counts was cut or altered, restore it"
    )]
    Lines {
        /// Lines read.
        lines: u64,
        /// The sum of what became of them.
        sum: u64,
    },
    /// Within the reducers.
    #[error(
        "the reducers saw {distinct} distinct texts and account for {sum}; a commit record was altered, restore it"
    )]
    Texts {
        /// Texts seen.
        distinct: u64,
        /// The sum of what became of them.
        sum: u64,
    },
    /// Between mappers and reducers.
    #[error(
        "the mappers wrote {mapped} reviews and the shards hold {reduced}; give --counts of this run, of every \
         mapper once"
    )]
    Reviews {
        /// Reviews of the mappers.
        mapped: u64,
        /// Votes in the shards.
        reduced: u64,
    },
}

/// Checks that no review was lost or doubled between the mappers and the reducers.
pub fn check_run(mapper: &MapperCounts, reducer: &ReducerCounts) -> Result<(), Unbalanced> {
    mapper.check()?;
    reducer.check()?;
    if mapper.reviews == reducer.reviews {
        Ok(())
    } else {
        Err(Unbalanced::Reviews { mapped: mapper.reviews, reduced: reducer.reviews })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: MapperCounts = MapperCounts {
        lines: 10,
        blank: 1,
        line_too_long: 0,
        bad_line: 2,
        no_text: 1,
        bad_rating: 0,
        empty_text: 1,
        reviews: 5,
        invalid_utf8: 2,
    };

    #[test]
    fn a_ledger_that_lost_a_line_does_not_balance() {
        assert_eq!(COUNTS.check(), Ok(()));
        let lost = MapperCounts { blank: 0, ..COUNTS };
        assert_eq!(lost.check(), Err(Unbalanced::Lines { lines: 10, sum: 9 }));
    }

    #[test]
    fn each_fate_has_a_counter_of_its_own_and_four_of_them_are_bad() {
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
    fn a_line_is_held_if_it_is_neither_blank_nor_too_long() {
        assert_eq!(Fate::held(LineContent::Bytes(b"a b")), Ok(&b"a b"[..]));
        assert_eq!(Fate::held(LineContent::Bytes(b" \t")), Err(Fate::Blank));
    }

    #[test]
    fn reviews_of_mappers_and_reducers_must_agree() {
        let reduced = ReducerCounts { reviews: 5, distinct: 4, only_stopwords: 1, rows: 3 };
        assert_eq!(check_run(&COUNTS, &reduced), Ok(()));
        let doubled = ReducerCounts { reviews: 6, ..reduced };
        assert_eq!(check_run(&COUNTS, &doubled), Err(Unbalanced::Reviews { mapped: 5, reduced: 6 }));
        let lost = ReducerCounts { rows: 2, ..reduced };
        assert_eq!(check_run(&COUNTS, &lost), Err(Unbalanced::Texts { distinct: 4, sum: 3 }));
    }

    #[test]
    fn bad_lines_of_a_task_are_judged_from_a_thousand_lines_on() {
        let counts = MapperCounts { lines: 1100, blank: 100, bad_line: 50, ..MapperCounts::default() };
        assert_eq!(counts.judge_task(Share::OF_BAD_LINES), Ok(()));
        let more = MapperCounts { no_text: 1, ..counts };
        let expected = "51 of 1000 lines are bad (bad_line 50, no_text 1), expected at most 0.05 of them";
        assert_eq!(more.judge_task(Share::OF_BAD_LINES).unwrap_err().to_string(), expected);
        assert_eq!(more.judge_task("0.06".parse().unwrap()), Ok(()));
        assert_eq!(MapperCounts { blank: 101, ..more }.judge_task("0".parse().unwrap()), Ok(()));
    }

    #[test]
    fn bad_lines_of_all_input_are_judged_from_twenty_of_them_on() {
        let counts = MapperCounts { lines: 200, bad_line: 19, ..MapperCounts::default() };
        assert_eq!(counts.judge("0".parse().unwrap()), Ok(()));
        let more = MapperCounts { no_text: 1, ..counts };
        let expected = "20 of 200 lines are bad (bad_line 19, no_text 1), expected at most 0.05 of them";
        assert_eq!(more.judge(Share::OF_BAD_LINES).unwrap_err().to_string(), expected);
        assert_eq!(more.judge("0.1".parse().unwrap()), Ok(()));
        assert_eq!(MapperCounts { blank: 1, ..more }.judge("0.1".parse().unwrap()).unwrap_err().lines, 199);
        assert_eq!(MapperCounts { lines: 400, ..more }.judge(Share::OF_BAD_LINES), Ok(()));
        assert!(["1.1", "-0.1", "NaN", "five", ""].iter().all(|share| share.parse::<Share>().is_err()));
    }

    #[test]
    fn sums_of_hostile_counts_stop_at_the_largest_number() {
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
    fn lines_that_are_not_utf8_are_told_beside_the_ledger() {
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
    fn counters_are_found_in_the_job_clients_output() {
        let output = "INFO mapreduce.Job: Counters: 55\n\tFile System Counters\n\t\tFILE: Number of bytes read=7\n\
            \tmapper\n\t\tbad_line=2\n\t\tblank=1\n\t\tempty_text=1\n\t\tinvalid_utf8=2\n\t\tlines=10\n\t\tno_text=1\n\t\treviews=5\n\
            \treducer\n\t\treviews=5\n\tFile Input Format Counters \n\t\tBytes Read=100\n";
        assert_eq!(MapperCounts::from_job_output(output), Some(COUNTS));
        assert_eq!(MapperCounts::from_job_output("no counters"), None);
    }
}

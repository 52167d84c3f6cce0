//! Decides from the counts of all lines whether the input is accepted, and which notices are printed.

use program::exit::{Exit, Fails};
use thiserror::Error;

use crate::classes::FoundValues;
use crate::encoding::{Encoding, Invalid, UTF_8};
use crate::ledger::{Limits, MapperCounts, Part, Share, TooMany, TooManyBad, TooManyInvalid};

/// Maximum number of bad lines per reason, and of files without a review, that are reported.
pub const TOLD: u64 = 3;

/// Why an input is refused.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// Too many bad lines.
    #[error("{found}; {cause}{}", found.advice())]
    BadLines {
        /// The number of bad lines.
        found: TooManyBad,
        /// The probable cause and the remedy.
        cause: String,
    },
    /// Too many lines are not in their encoding.
    #[error("{found}; {cause}{}", found.advice())]
    InvalidUtf8 {
        /// The number of lines.
        found: TooManyInvalid,
        /// The likely encoding and the remedy.
        cause: String,
    },
    /// The ratings are classes from 0.
    #[error("{found}")]
    FromZero {
        /// The values and the remedy.
        found: String,
    },
    /// No review in the whole input.
    #[error("found no review{found}, expected at least one; {cause}")]
    NoReview {
        /// The counts of lines.
        found: String,
        /// The probable cause and the remedy.
        cause: String,
    },
}

impl Fails for Refusal {
    fn exit(&self) -> Exit {
        Exit::BadInput
    }
}

/// What the lines of an input are, apart from their counts.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The values of ratings without stars.
    pub values: &'a FoundValues,
    /// The lines that are not in their encoding.
    pub invalid: &'a Invalid,
    /// The encoding that was named, or UTF-8.
    pub encoding: &'static Encoding,
    /// The remedy for an input that begins like a compressed file.
    pub packed: Option<&'a str>,
}

/// Accepts or refuses the whole input by its counts and the values of its ratings. `cause` returns the probable cause and
/// the remedy.
pub fn judge(
    counts: &MapperCounts,
    seen: &Seen<'_>,
    limits: Limits,
    cause: impl Fn() -> String,
) -> Result<(), Refusal> {
    // Values of lines in another encoding are no classes.
    judge_lines(counts, seen, Limits { bad_lines_max: Share::ALL, ..limits }, Part::All, &cause)?;
    // A user who raised the limit has accepted that these lines are bad.
    let most = limits.bad_lines_max;
    let are_accepted = most.is_raised() && most.allows(seen.values.n_zeros(), counts.filled_lines());
    if let Some(found) = seen.values.from_zero().filter(|_| !are_accepted) {
        return Err(Refusal::FromZero { found });
    }
    judge_lines(counts, seen, limits, Part::All, &cause)?;
    if counts.reviews > 0 {
        return Ok(());
    }
    let found = match counts.lines {
        0 => " and no line".to_owned(),
        _ => format!(" ({counts})"),
    };
    Err(Refusal::NoReview { found, cause: seen.cause(&cause) })
}

/// Accepts or refuses lines by their limits.
pub fn judge_lines(
    counts: &MapperCounts,
    seen: &Seen<'_>,
    limits: Limits,
    part: Part,
    cause: impl Fn() -> String,
) -> Result<(), Refusal> {
    counts.judge(limits, part, seen.encoding.name()).map_err(|found| match found {
        TooMany::Bad(found) => Refusal::BadLines { found, cause: seen.cause(&cause) },
        TooMany::InvalidUtf8(found) => {
            let cause = seen.packed.map_or_else(|| seen.invalid.cause(seen.encoding), str::to_owned);
            Refusal::InvalidUtf8 { found, cause }
        }
    })
}

impl Seen<'_> {
    /// The probable cause of bad lines.
    pub fn cause(&self, of_lines: &impl Fn() -> String) -> String {
        match self.packed {
            Some(remedy) => remedy.to_owned(),
            None if self.invalid.is_binary() => self.invalid.cause(self.encoding),
            None => of_lines(),
        }
    }
}

/// The notice about lines with bytes that are not in the encoding, if there are any.
pub fn invalid_utf8(counts: &MapperCounts, encoding: &'static Encoding) -> Option<String> {
    let remedy = match encoding == UTF_8 {
        true => "if all lines have another encoding, pass it with --encoding".to_owned(),
        false => format!("check --encoding {}", encoding.name()),
    };
    (counts.invalid_utf8 > 0).then(|| {
        format!("invalid_utf8 in {} of {} lines, read as spaces; {remedy}", counts.invalid_utf8, counts.lines)
    })
}

/// The notice about lines of fastText's format in which `ngrams train` reads other labels, if there are any.
pub fn other_labels(n: u64, counts: &MapperCounts) -> Option<String> {
    (n > 0).then(|| {
        format!(
            "warning: {n} of {} lines have a label besides that at the start of the line: it is omitted or a part of the text \
             here; ngrams train and the fastText program read each word that starts with __label__ as a label",
            counts.lines
        )
    })
}

/// Files that have lines but no review, with the names of the first ones.
#[derive(Clone, Debug, Default)]
pub struct WithoutReview {
    without_review: Names,
    empty: Names,
}

/// The first names of files, and the number of all.
#[derive(Clone, Debug, Default)]
struct Names {
    names: Vec<String>,
    n_files: u64,
}

impl WithoutReview {
    /// Adds a file with lines.
    pub fn add(&mut self, file: &str) {
        self.without_review.add(file);
    }

    /// Adds a file without a line.
    pub fn add_empty(&mut self, file: &str) {
        self.empty.add(file);
    }

    /// The warnings; none for an input without any review, which is an error.
    pub fn notices(&self, counts: &MapperCounts) -> Vec<String> {
        if counts.reviews == 0 {
            return Vec::new();
        }
        let without_review = self.without_review.notices("no line is a review; check its format");
        let empty = self.empty.notices("the file is empty; check that it was written completely");
        without_review.chain(empty).collect()
    }
}

impl Names {
    fn add(&mut self, file: &str) {
        self.n_files += 1;
        if self.n_files <= TOLD {
            self.names.push(file.to_owned());
        }
    }

    fn notices(&self, found: &str) -> impl Iterator<Item = String> {
        let one = move |name: &String| format!("warning: {name}: {found}");
        let more = self.n_files - self.names.len() as u64;
        let more = (more > 0).then(|| format!("warning: {more} more files: {found}"));
        self.names.iter().map(one).chain(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::UTF_8;
    use crate::entry::RatingValue;

    #[test]
    fn classes_from_zero_are_refused_unless_the_limit_was_raised_above_them() {
        let mut values = FoundValues::default();
        values.add_value(RatingValue::Number(0.0), true);
        let counts = MapperCounts { lines: 6, bad_rating: 1, reviews: 5, ..MapperCounts::default() };
        let judged = |limit: &str| {
            let limits = Limits { bad_lines_max: limit.parse().unwrap(), ..Limits::default() };
            let invalid = Invalid::default();
            let seen = Seen { values: &values, invalid: &invalid, encoding: UTF_8, packed: None };
            judge(&counts, &seen, limits, || "a cause".to_owned())
        };
        for limit in ["0.05", "0", "0.1"] {
            assert!(matches!(judged(limit), Err(Refusal::FromZero { .. })), "{limit}");
        }
        assert_eq!([judged("1"), judged("0.2")], [Ok(()), Ok(())]);
    }
}

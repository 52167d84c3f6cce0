//! Decides from the counts of all lines whether the input is accepted, and which notices are printed.

use thiserror::Error;

use crate::classes::UnratedClasses;
use crate::ledger::{MapperCounts, Share, TooManyBad};

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

/// Accepts or refuses the whole input by its counts and the values of its ratings. `cause` returns the probable cause and
/// the remedy.
pub fn judge(
    counts: &MapperCounts,
    values: &UnratedClasses,
    bad_lines_max: Share,
    cause: impl Fn() -> String,
) -> Result<(), Refusal> {
    if let Some(found) = values.from_zero() {
        return Err(Refusal::FromZero { found });
    }
    counts.judge(bad_lines_max).map_err(|found| Refusal::BadLines { found, cause: cause() })?;
    if counts.reviews > 0 {
        return Ok(());
    }
    let found = match counts.lines {
        0 => " and no line".to_owned(),
        _ => format!(" ({counts})"),
    };
    Err(Refusal::NoReview { found, cause: cause() })
}

/// The notice about lines with bytes that are not UTF-8, if there are any.
pub fn invalid_utf8(counts: &MapperCounts) -> Option<String> {
    (counts.invalid_utf8 > 0).then(|| {
        format!(
            "invalid_utf8 in {} of {} lines, read as spaces; convert input of another encoding with iconv",
            counts.invalid_utf8, counts.lines
        )
    })
}

/// The notice about lines of fastText's format in which `trainer ngrams` reads other labels, if there are any.
pub fn other_labels(n: u64, counts: &MapperCounts) -> Option<String> {
    (n > 0).then(|| {
        format!(
            "warning: {n} of {} lines have a label besides that at the start of the line: it is omitted or a part of the text \
             here; trainer ngrams and the fastText program read each word that starts with __label__ as a label",
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

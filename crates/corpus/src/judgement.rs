//! What became of all lines → whether the input is accepted, and what is said of it.

use thiserror::Error;

use crate::ledger::{MapperCounts, Share, TooManyBad};

/// So many bad lines of each reason, and files without a review, are told.
pub const TOLD: u64 = 3;

/// Why an input is refused.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// Too many bad lines.
    #[error("{found}; {cause}, or raise --bad-lines-max")]
    BadLines {
        /// How many there are.
        found: TooManyBad,
        /// What may be the matter, and what to do.
        cause: String,
    },
    /// No review in all input.
    #[error("found no review{found}, expected at least one; {cause}")]
    NoReview {
        /// What became of the lines.
        found: String,
        /// What may be the matter, and what to do.
        cause: String,
    },
}

/// Judges all lines of all input by their counts; `cause` guesses what may be the matter, and says what to do.
pub fn judge(counts: &MapperCounts, bad_lines_max: Share, cause: impl Fn() -> String) -> Result<(), Refusal> {
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

/// What is said of lines with bytes that are not UTF-8, if there are any.
pub fn invalid_utf8(counts: &MapperCounts) -> Option<String> {
    (counts.invalid_utf8 > 0).then(|| {
        format!(
            "invalid_utf8 in {} of {} lines, read as spaces; convert input of another encoding by iconv",
            counts.invalid_utf8, counts.lines
        )
    })
}

/// Files with lines of which none is a review: the first few by name.
#[derive(Clone, Debug, Default)]
pub struct WithoutReview {
    names: Vec<String>,
    n_files: u64,
}

impl WithoutReview {
    /// Adds a file.
    pub fn add(&mut self, file: &str) {
        self.n_files += 1;
        if self.n_files <= TOLD {
            self.names.push(file.to_owned());
        }
    }

    /// What is said of them; nothing where there is no review at all, which is an error of its own.
    pub fn notices(&self, counts: &MapperCounts) -> Vec<String> {
        if counts.reviews == 0 {
            return Vec::new();
        }
        let one = |name: &String| format!("warning: {name}: no line is a review; is it of another format?");
        let more = self.n_files - self.names.len() as u64;
        let more = (more > 0).then(|| format!("warning: no line is a review in {more} more files"));
        self.names.iter().map(one).chain(more).collect()
    }
}

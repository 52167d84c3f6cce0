//! The limits of bad lines and of lines that are not in their encoding.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

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

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub(super) f64);

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
#[error("{invalid} of {lines} lines are not {encoding}, expected at most {share} of them")]
pub struct TooManyInvalid {
    /// The name of the encoding.
    pub encoding: &'static str,
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

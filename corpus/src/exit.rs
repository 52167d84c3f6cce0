//! The exit codes of all programs, after BSD's sysexits.

use std::process::ExitCode;

/// Why a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The arguments make no sense.
    Usage = 64,
    /// The input is bad past its limit.
    BadInput = 65,
    /// An input is missing or does not match its digest.
    MissingInput = 66,
    /// A remote service stayed away.
    Unavailable = 69,
    /// An internal promise broke.
    Internal = 70,
    /// Reading or writing failed.
    Io = 74,
    /// Worth trying again.
    TryAgain = 75,
    /// The settings make no sense.
    Settings = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error with all its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message.replace(['\r', '\n'], " ")
}

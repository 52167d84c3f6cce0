//! When a log is synced.

use std::str::FromStr;

/// When accepted pushes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSync {
    /// Before they are acknowledged.
    Always,
    /// Each second. If the machine fails, the last second may be lost.
    Interval,
    /// When the operating system does. If the machine fails, what it has not written is lost.
    Off,
}

impl FromStr for LogSync {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "always" => Ok(Self::Always),
            "interval" => Ok(Self::Interval),
            "off" => Ok(Self::Off),
            _ => Err("expected always, interval or off".to_owned()),
        }
    }
}

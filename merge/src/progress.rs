//! How far a merge is: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// Tells what is being done.
pub struct Progress {
    on_terminal: bool,
}

impl Progress {
    /// A bar where standard error is a terminal, else lines.
    pub fn to_stderr() -> Self {
        Self { on_terminal: stderr().is_terminal() }
    }

    /// Begins a part of the work, of so many units.
    pub(crate) fn stage(&self, doing: &str, units: u64) -> ProgressBar {
        if !self.on_terminal {
            eprintln!("merge: {doing} ({units})");
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len} {eta:>5}");
        let bar = ProgressBar::new(units).with_message(doing.to_owned());
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

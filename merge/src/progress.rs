//! How far a dataset is: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// Tells what is being done.
pub struct Progress {
    program: &'static str,
    shown: Shown,
}

enum Shown {
    Bars,
    Lines,
    Nothing,
}

impl Progress {
    /// A bar where standard error is a terminal, else lines.
    pub fn to_stderr(program: &'static str) -> Self {
        Self { program, shown: if stderr().is_terminal() { Shown::Bars } else { Shown::Lines } }
    }

    /// For a caller who tells of it in another way.
    pub fn to_nobody() -> Self {
        Self { program: "", shown: Shown::Nothing }
    }

    /// Begins a part of the work, of so many units.
    pub fn stage(&self, doing: &str, units: u64) -> ProgressBar {
        match self.shown {
            Shown::Bars => {}
            Shown::Lines => {
                eprintln!("{}: {doing} ({units})", self.program);
                return ProgressBar::hidden();
            }
            Shown::Nothing => return ProgressBar::hidden(),
        }
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len} {eta:>5}");
        let bar = ProgressBar::new(units).with_message(doing.to_owned());
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

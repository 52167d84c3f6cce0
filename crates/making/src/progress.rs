//! Shows progress: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// Progress output.
pub struct ProgressBars {
    program: &'static str,
    shown: Shown,
}

enum Shown {
    Bars,
    Lines,
    Nothing,
}

impl ProgressBars {
    /// Shows bars if standard error is a terminal, else lines.
    pub fn to_stderr(program: &'static str) -> Self {
        Self { program, shown: if stderr().is_terminal() { Shown::Bars } else { Shown::Lines } }
    }

    /// Shows nothing, for a caller with its own progress output.
    pub fn to_nobody() -> Self {
        Self { program: "", shown: Shown::Nothing }
    }

    /// Starts a stage with this number of units.
    pub fn stage(&self, doing: &str, units: u64) -> ProgressBar {
        let bar =
            self.bar(Some(units), &format!("{doing} ({units})"), "{msg:24} {wide_bar} {pos}/{len} {eta:>5}");
        bar.with_message(doing.to_owned())
    }

    /// Starts reading this number of bytes, if it is known.
    pub fn reading(&self, bytes: Option<u64>) -> ProgressBar {
        let template = match bytes {
            Some(_) => "reading, {msg:15} {wide_bar} {bytes}/{total_bytes} {eta:>5}",
            None => "reading, {msg:15} {bytes} in {elapsed}",
        };
        let doing = bytes.map_or_else(|| "reading".to_owned(), |bytes| format!("reading ({bytes} bytes)"));
        self.bar(bytes, &doing, template)
    }

    /// Prints a notice that is not about progress.
    pub fn notice(&self, notice: &str) {
        if !matches!(self.shown, Shown::Nothing) {
            // The work continues where nobody reads standard error.
            let _ = writeln!(stderr(), "{}: {notice}", self.program);
        }
    }

    fn bar(&self, units: Option<u64>, doing: &str, template: &str) -> ProgressBar {
        match self.shown {
            Shown::Bars => {}
            Shown::Lines => {
                // A closed standard error does not stop the work.
                let _ = writeln!(stderr(), "{}: {doing}", self.program);
                return ProgressBar::hidden();
            }
            Shown::Nothing => return ProgressBar::hidden(),
        }
        let bar = units.map_or_else(ProgressBar::no_length, ProgressBar::new);
        bar.with_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        )
    }
}

//! What commands print on standard output: lines, JSON and tables of metrics.

use std::io::{self, Write};

use program::exit::printable;
use scoring::{Interval, ProbabilityQuality};
use serde::Serialize;

use crate::error::{Error, Result, STANDARD_OUTPUT};

/// Prints an object as a line of JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print_line(&serde_json::to_string(value).map_err(|error| Error::internal(&error))?)
}

/// Prints a line, or several, as [`printable`] has it.
pub fn print_line(line: &str) -> Result<()> {
    writeln!(io::stdout(), "{}", printable(line))
        .map_err(|source| Error::io(STANDARD_OUTPUT.as_ref(), source))
}

/// A table of metrics and their confidence intervals, as text.
pub struct MetricTable {
    lines: Vec<String>,
}

impl MetricTable {
    /// A table for this number of rows of a dataset or file.
    pub fn of(dataset: &str, n_rows: u64) -> Self {
        Self { lines: vec![format!("{dataset}: {n_rows} rows; 95 % confidence intervals")] }
    }

    /// Adds a metric.
    pub fn add(&mut self, name: &str, value: Option<f64>, interval: Option<Interval>) {
        let value = value.map_or_else(|| "none".to_owned(), |value| format!("{value:.4}"));
        let interval =
            interval.map_or_else(String::new, |Interval(low, high)| format!("{low:.4} to {high:.4}"));
        self.lines.push(format!("{name:<18}  {value:>8}  {interval}").trim_end().to_owned());
    }

    /// Adds the quality of probabilities, also of those before the calibration. `brier` is the interval of the Brier score.
    pub fn add_quality(&mut self, of: &ProbabilityQuality, brier: Option<Interval>) {
        let ProbabilityQuality { quality, uncalibrated } = of;
        self.add("Brier score", Some(quality.brier), brier);
        if let Some(before) = uncalibrated {
            self.add("  uncalibrated", Some(before.brier), None);
        }
        self.add("calibration error", Some(quality.calibration_error), None);
        if let Some(before) = uncalibrated {
            self.add("  uncalibrated", Some(before.calibration_error), None);
        }
    }

    /// Adds a line of other content.
    pub fn add_line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Prints it.
    pub fn print(&self) -> Result<()> {
        print_line(&self.lines.join("\n"))
    }
}

/// Names of F1, precision and recall for this number of classes.
pub fn names_of_means(n_classes: usize) -> [&'static str; 3] {
    match n_classes {
        2 => ["F1", "precision", "recall"],
        _ => ["macro F1", "macro precision", "macro recall"],
    }
}

//! `trainer predict` with an n-gram model.

use std::io;
use std::path::Path;

use super::{report_invalid, text_format, threads};
use crate::arguments::Predict;
use crate::commands::lines::{inputs, read_each};
use crate::error::Result;
use crate::families::ngrams::Classifier;
use crate::families::ngrams::predict::{Choice, Options, run};

/// Predicts line by line.
pub(in crate::commands) fn predict(arguments: &Predict, model: &Path) -> Result<()> {
    let format = text_format(&arguments.lines)?;
    let inputs = inputs(&arguments.files, &arguments.storage.options())?;
    // All inputs are checked before the first line is read.
    inputs.iter().try_for_each(|input| input.check())?;
    let classifier = Classifier::read(model)?;
    let mut options = Options {
        file: None,
        format,
        line_bytes_max: usize::try_from(arguments.lines.line_bytes_max).unwrap_or(usize::MAX),
        choice: Choice { top: arguments.top, threshold: arguments.threshold },
        threads: threads(),
    };
    read_each(&inputs, |input| {
        options.file = input.name();
        let counts = run(input.open()?, io::stdout().lock(), &classifier, &options)?;
        report_invalid(&options.place(), &counts);
        Ok(counts)
    })
}

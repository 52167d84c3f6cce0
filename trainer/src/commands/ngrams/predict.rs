//! `trainer predict` with an n-gram model.

use std::io;
use std::path::Path;

use super::{invalid_utf8, threads};
use crate::arguments::Predict;
use crate::commands::lines::{FastTextLine, check, inputs, options, read_each};
use crate::error::Result;
use crate::families::ngrams::Classifier;
use crate::families::ngrams::predict::{Choice, Options, run};

/// Predicts line by line.
pub(in crate::commands) fn predict(arguments: &Predict, model: &Path) -> Result<()> {
    let mut lines = options(&arguments.lines, FastTextLine::Words)?;
    let inputs = inputs(&arguments.files, &arguments.storage.options())?;
    check(&inputs, &arguments.model)?;
    let classifier = Classifier::read(model)?;
    let options =
        Options { choice: Choice { top: arguments.top, threshold: arguments.threshold }, threads: threads() };
    read_each(&inputs, &mut lines, invalid_utf8(&classifier), |input, lines| {
        Ok(run(input, io::stdout().lock(), lines, &classifier, &options)?)
    })
}

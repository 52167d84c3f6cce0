//! `ngrams predict`.

use std::io;

use training::Result;
use training::arguments::threads;
use training::lines::{FastTextLine, Formats, read_each, sources};

use super::{invalid_utf8, model_at};
use crate::arguments::Predict;
use crate::classifier::Classifier;
use crate::classifier::predict::{Choice, Options, run};

/// Predicts line by line.
pub(super) fn predict(arguments: &Predict) -> Result<()> {
    let s3 = arguments.storage.options();
    let model = model_at(&arguments.of_all.model, &s3, "predict")?;
    let formats = Formats::of(&arguments.of_all.lines, &model, FastTextLine::Words)?;
    let sources = sources(&arguments.of_all.files, &arguments.of_all.model, &s3)?;
    let classifier = Classifier::read(&model)?;
    let options =
        Options { choice: Choice { top: arguments.top, threshold: arguments.threshold }, threads: threads() };
    read_each(&sources, &formats, invalid_utf8(&classifier), |input, lines| {
        Ok(run(input, io::stdout().lock(), lines, &classifier, &options)?)
    })
}

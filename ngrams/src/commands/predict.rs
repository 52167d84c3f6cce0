//! `ngrams predict`.

use classifiers::Classifier;
use training::Result;
use training::arguments::threads;
use training::lines::{FastTextLine, Formats, predict_each, sources};

use super::{invalid_utf8, model_at};
use crate::arguments::Predict;
use crate::classifier::predict::{Options, Shown, run};

/// Predicts line by line.
pub(super) fn predict(arguments: &Predict) -> Result<()> {
    arguments.of_all.check_out()?;
    let s3 = arguments.storage.options();
    let model = model_at(&arguments.of_all.model, &s3, "predict")?;
    let formats = Formats::of(&arguments.of_all.lines, &model, FastTextLine::Words)?;
    let sources = sources(&arguments.of_all.files, &arguments.of_all.model, &s3)?;
    let classifier = Classifier::read(&model)?;
    let names = classifier.labels().names();
    // Two classes have their probabilities in any case.
    let all = (arguments.of_all.probabilities && names.len() > 2).then_some(names.len());
    let shown = Shown { top: arguments.top.or(all), threshold: arguments.threshold };
    let options = Options { shown, threads: threads(), answers_unknown: false };
    let file = arguments.of_all.file(names, false)?;
    predict_each(&sources, &formats, invalid_utf8(&classifier), file, |input, output, lines| {
        Ok(run(input, output, lines, &classifier, &options)?)
    })
}

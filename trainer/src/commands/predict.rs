//! `trainer predict`: reads lines of files or of standard input, and writes one prediction per line to
//! standard output. With `--soft`, it reads a dataset and writes the probabilities of its rows.

use std::io;

use kernels::TokenRows;

use super::lines::{format, inputs, read_each};
use super::{device, model, soft_labels};
use crate::arguments::Predict;
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::{SavedClassifier, read_classifier};
use crate::predict::{Options, Tokenizer, run};
use crate::tell::tell;

/// Predicts line by line.
pub fn predict(arguments: &Predict) -> Result<()> {
    if let (Some(out), [dataset]) = (&arguments.soft, &arguments.files[..]) {
        return soft_labels::write(arguments, dataset, out);
    }
    let format = format(&arguments.lines)?;
    let s3 = arguments.storage.options();
    let inputs = inputs(&arguments.files, &s3)?;
    // All inputs are checked before the first line is read.
    inputs.iter().try_for_each(|input| input.check())?;
    let compute = device::choose(&arguments.computing, arguments.backend.compute)?;
    let SavedClassifier { model, vocabulary, config, scoring, .. } =
        read_classifier(&model::folder(&arguments.model, &s3, "MODEL")?, compute.device())?;
    let mut tokenizer =
        Tokenizer::new(&config.preparation, &vocabulary, config.tokens_max).map_err(Error::Predict)?;
    let mut options = Options {
        file: None,
        format,
        line_bytes_max: usize::try_from(arguments.lines.line_bytes_max).unwrap_or(usize::MAX),
        batch_rows: arguments.batch as usize,
        decision: config.decision(scoring),
        classes: config.preparation.labels.given_names(),
    };
    let mut answers = Answers::of(&model, &compute);
    read_each(&inputs, |input| {
        options.file = input.name();
        let lines = input.open()?;
        let counts = run(lines, io::stdout().lock(), &mut tokenizer, &options, |texts: TokenRows<'_>| {
            answers.of_rows(texts)
        })?;
        if counts.invalid_utf8 > 0 {
            tell(&format!(
                "{}: invalid UTF-8 in {} of {} lines (read as spaces); convert files of another encoding with iconv",
                options.place(),
                counts.invalid_utf8,
                counts.lines
            ));
        }
        Ok(counts)
    })
}

//! `trainer explain`: reads texts, and writes the words that spoke for and against each prediction to standard output.

use std::io::{self, Read};

use kernels::TokenRows;

use super::lines::{format, inputs, read_each};
use super::{device, model};
use crate::arguments::Explain;
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::{SavedClassifier, read_classifier};
use crate::predict::explain::{Form, Options, run};
use crate::predict::{Format, Tokenizer};

/// Explains a text, or lines.
pub fn explain(arguments: &Explain) -> Result<()> {
    let Explain { lines, text, .. } = arguments;
    let s3 = arguments.storage.options();
    let inputs = if text.is_some() { Vec::new() } else { inputs(&arguments.input, &s3)? };
    // All inputs are checked before the first line is read.
    inputs.iter().try_for_each(|input| input.check())?;
    let compute = device::choose(&arguments.computing, arguments.backend.compute)?;
    let SavedClassifier { model, vocabulary, config, scoring, .. } =
        read_classifier(&model::folder(&arguments.model, &s3, "MODEL")?, compute.device())?;
    let mut tokenizer =
        Tokenizer::new(&config.preparation, &vocabulary, config.tokens_max).map_err(Error::Predict)?;
    let mut options = Options {
        file: None,
        format: if text.is_some() { Format::Text } else { format(lines)? },
        line_bytes_max: usize::try_from(lines.line_bytes_max).unwrap_or(usize::MAX),
        decision: config.decision(scoring),
        names: config.preparation.labels.names().into_iter().map(str::to_owned).collect(),
        top: arguments.top,
        form: Form::of_output(arguments.json),
    };
    let mut answers = Answers::of(&model, &compute);
    let mut explain = |lines: &mut dyn Read, options: &Options| {
        run(lines, io::stdout().lock(), &mut tokenizer, options, |texts: TokenRows<'_>| {
            answers.of_rows(texts)
        })
    };
    if let Some(text) = text {
        // A text with line ends is one text.
        let line = text.replace(['\n', '\r'], " ");
        explain(&mut line.as_bytes(), &options)?;
        return Ok(());
    }
    read_each(&inputs, |input| {
        options.file = input.name();
        explain(&mut input.open()?, &options)
    })
}

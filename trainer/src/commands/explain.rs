//! `trainer explain`: reads texts, and writes the words that spoke for and against each prediction to standard output.

use std::io::{self, IsTerminal, Read};

use tch::{Device, Kind};

use super::predict::{Unread, format, inputs};
use super::{device, model};
use crate::arguments::Explain;
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::{SavedClassifier, read_classifier};
use crate::predict::explain::{Form, Options, run};
use crate::predict::{Format, Tokenizer};
use crate::tell::tell;
use kernels::TokenRows;

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
        form: match arguments.json {
            true => Form::Json,
            false if io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() => Form::Colours,
            false => Form::Text,
        },
    };
    let mut answers = Answers::of(&model, &compute);
    let mut answer = |texts: TokenRows<'_>| -> Result<Vec<Vec<f64>>> {
        let outputs = answers.outputs(texts)?;
        Ok(Vec::try_from(&outputs.to_kind(Kind::Double).to_device(Device::Cpu))?)
    };
    let mut explain = |lines: &mut dyn Read, options: &Options| {
        run(lines, io::stdout().lock(), &mut tokenizer, options, &mut answer)
    };
    if let Some(text) = text {
        // A text with line ends is one text.
        let line = text.replace(['\n', '\r'], " ");
        explain(&mut line.as_bytes(), &options)?;
        return Ok(());
    }
    let n_inputs = inputs.len();
    let mut unread = Unread::default();
    for input in inputs {
        options.file = input.name();
        let of_input = Unread::of(&explain(&mut input.open()?, &options)?);
        if n_inputs > 1 && of_input.is_all() {
            tell(&format!("warning: {}", of_input.error(options.place())));
        }
        unread.add(&of_input);
    }
    match unread.is_all() {
        true if n_inputs > 1 => Err(unread.error("all files".to_owned()).into()),
        true => Err(unread.error(options.place()).into()),
        false => Ok(()),
    }
}

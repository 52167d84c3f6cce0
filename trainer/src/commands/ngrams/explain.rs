//! `trainer explain` with an n-gram model.

use std::io::{self, Read};
use std::path::Path;

use super::text_format;
use crate::arguments::Explain;
use crate::commands::lines::{inputs, read_each};
use crate::error::Result;
use crate::families::ngrams::Classifier;
use crate::families::ngrams::explain::{Options, run};
use crate::families::ngrams::text::Format;
use crate::predict::explain::Form;

/// Explains a text, or lines.
pub(in crate::commands) fn explain(arguments: &Explain, model: &Path) -> Result<()> {
    let Explain { lines, text, .. } = arguments;
    let format = if text.is_some() { Format::Text } else { text_format(lines)? };
    let s3 = arguments.storage.options();
    let inputs = if text.is_some() { Vec::new() } else { inputs(&arguments.input, &s3)? };
    // All inputs are checked before the first line is read.
    inputs.iter().try_for_each(|input| input.check())?;
    let classifier = Classifier::read(model)?;
    let mut options = Options {
        file: None,
        format,
        line_bytes_max: usize::try_from(lines.line_bytes_max).unwrap_or(usize::MAX),
        top: arguments.top,
        form: Form::of_output(arguments.json),
    };
    let explain =
        |lines: &mut dyn Read, options: &Options| run(lines, io::stdout().lock(), &classifier, options);
    if let Some(text) = text {
        // A text with line ends is one text.
        let line = text.replace(['\n', '\r'], " ");
        explain(&mut line.as_bytes(), &options)?;
        return Ok(());
    }
    read_each(&inputs, |input| {
        options.file = input.name();
        Ok(explain(&mut input.open()?, &options)?)
    })
}

//! `trainer predict`: lines on standard input, what a saved model thinks of each on standard output.

use std::io;

use corpus::format::Asked;
use tch::{Device, Kind};

use super::device;
use crate::arguments::{LineFormat, Predict};
use crate::compute::{Answers, Tokens};
use crate::error::{Error, Result};
use crate::models::{Classifier, read_classifier};
use crate::predict::{Error as PredictError, Format, Options, Texts, Tokenizer, run};

/// Answers line by line.
pub fn predict(arguments: &Predict) -> Result<()> {
    let format = format(arguments)?;
    let stdin = program::stdin().map_err(|error| Error::Predict(PredictError::Read(error)))?;
    let compute = device::choose(&arguments.running)?;
    let Classifier { lstm, objective, vocabulary, config } =
        read_classifier(&arguments.model, compute.device())?;
    let mut tokenizer =
        Tokenizer::new(&config.preparation, &vocabulary, config.tokens_max).map_err(Error::Predict)?;
    let options = Options {
        format,
        line_bytes_max: arguments.line_bytes_max,
        batch_rows: arguments.batch as usize,
        scoring: objective.scoring(config.preparation.positive_from),
    };
    let mut answers = Answers::of(&lstm, &compute);
    let answer = |texts: &Texts| -> Result<Vec<Vec<f64>>> {
        let Texts { tokens, longest, lengths } = texts;
        let outputs = answers.outputs(Tokens { tokens, longest: *longest, lengths })?;
        Ok(Vec::try_from(&outputs.to_kind(Kind::Double).to_device(Device::Cpu))?)
    };
    run(stdin.lock(), io::stdout().lock(), &mut tokenizer, &options, answer)?;
    Ok(())
}

/// What was asked for, before anything is read. The rating and the class of a line play no part.
fn format(arguments: &Predict) -> Result<Format> {
    let Predict { preset, text_field, with_title, .. } = arguments.clone();
    let asked = Asked { preset, text_field, with_title, ..Asked::default() };
    Ok(match arguments.format {
        LineFormat::Review(name) => Format::Review(Asked { name, ..asked }.format()?),
        LineFormat::Text => {
            asked.nothing_for("text")?;
            Format::Text
        }
    })
}

//! `trainer predict`: lines on standard input, what a saved model thinks of each on standard output.

use std::io;

use corpus::format::Asked;
use tch::{Device, Tensor};

use super::device;
use crate::arguments::{LineFormat, Predict};
use crate::error::{Error, Result};
use crate::inputs::whole_numbers;
use crate::models::{Dropout, read_model};
use crate::predict::{Format, Options, Texts, Tokenizer, run};

/// Answers line by line.
pub fn predict(arguments: &Predict) -> Result<()> {
    let format = format(arguments)?;
    let device = device::choose(&arguments.running)?;
    let (model, words, config) = read_model(&arguments.model, device)?;
    let mut tokenizer =
        Tokenizer::new(&config.preparation, &words, config.tokens_max).map_err(Error::Predict)?;
    let options = Options {
        format,
        line_bytes_max: arguments.line_bytes_max,
        batch_rows: arguments.batch as usize,
        scoring: config.scoring,
    };
    let answer = |texts: &Texts| -> Result<Vec<Vec<f64>>> {
        let shape = [texts.lengths.len() as i64, texts.longest as i64];
        let tokens = whole_numbers(&texts.tokens, device).view(shape);
        let lengths = whole_numbers(&texts.lengths, device);
        let outputs = tch::no_grad(|| model.lstm.forward(&tokens, &lengths, Dropout::default()))?;
        let outputs: Tensor = outputs.to_kind(tch::Kind::Double).to_device(Device::Cpu);
        Ok(Vec::try_from(&outputs)?)
    };
    run(io::stdin().lock(), io::stdout().lock(), &mut tokenizer, &options, answer)?;
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

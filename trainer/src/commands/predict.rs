//! `trainer predict`: predicts lines of files or standard input, and writes to standard output.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use corpus::format::Asked;
use tch::{Device, Kind};

use super::{device, model};
use crate::arguments::{LineFormat, Predict};
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::{SavedClassifier, read_classifier};
use crate::predict::{self, Format, Options, Tokenizer, run};
use crate::tell::tell;
use kernels::TokenRows;

/// Predicts line by line.
pub fn predict(arguments: &Predict) -> Result<()> {
    let format = format(arguments)?;
    let inputs = inputs(&arguments.files);
    // Checks all inputs before the first prediction.
    inputs.iter().try_for_each(|input| input.check())?;
    let compute = device::choose(&arguments.computing)?;
    let SavedClassifier { model, vocabulary, config, .. } =
        read_classifier(&model::folder(&arguments.model), compute.device())?;
    let mut tokenizer =
        Tokenizer::new(&config.preparation, &vocabulary, config.tokens_max).map_err(Error::Predict)?;
    let mut options = Options {
        file: None,
        format,
        line_bytes_max: arguments.line_bytes_max,
        batch_rows: arguments.batch as usize,
        scoring: model.settings().objective.scoring(config.preparation.positive_from),
    };
    let mut answers = Answers::of(&model, &compute);
    let mut answer = |texts: TokenRows<'_>| -> Result<Vec<Vec<f64>>> {
        let outputs = answers.outputs(texts)?;
        Ok(Vec::try_from(&outputs.to_kind(Kind::Double).to_device(Device::Cpu))?)
    };
    for input in inputs {
        options.file = input.name();
        let lines = input.open()?;
        let counts = run(lines, io::stdout().lock(), &mut tokenizer, &options, &mut answer)?;
        if counts.invalid_utf8 > 0 {
            tell(&format!(
                "{}: invalid_utf8 in {} of {} lines, read as spaces; convert input of another encoding by iconv",
                options.place(),
                counts.invalid_utf8,
                counts.lines
            ));
        }
        let unread = ["bad_line", "no_text"].map(|reason| counts.refused.get(reason).copied().unwrap_or(0));
        if counts.predicted == 0 && unread != [0, 0] {
            tell(&format!(
                "{}: no line has a prediction (bad_line {}, no_text {}); check --format, --preset and --text-field",
                options.place(),
                unread[0],
                unread[1]
            ));
        }
    }
    Ok(())
}

/// The source of lines.
#[derive(Clone, Copy)]
enum Input<'a> {
    Standard,
    File(&'a Path),
}

fn inputs(files: &[std::path::PathBuf]) -> Vec<Input<'_>> {
    if files.is_empty() {
        return vec![Input::Standard];
    }
    files
        .iter()
        .map(|file| if file.as_os_str() == "-" { Input::Standard } else { Input::File(file) })
        .collect()
}

impl<'a> Input<'a> {
    fn name(self) -> Option<String> {
        match self {
            Self::Standard => None,
            Self::File(path) => Some(path.to_string_lossy().into_owned()),
        }
    }

    /// Refuses an input that cannot be read.
    fn check(self) -> predict::Result<()> {
        match self {
            Self::Standard => program::stdin().map(drop).map_err(|source| self.unread(source)),
            // A pipe is not opened twice, because closing it ends its writer.
            Self::File(path) => fs::metadata(path)
                .and_then(|there| match there.is_dir() {
                    true => Err(io::ErrorKind::IsADirectory.into()),
                    false if there.is_file() => File::open(path).map(drop),
                    false => Ok(()),
                })
                .map_err(|source| predict::Error::Open { place: path.display().to_string(), source }),
        }
    }

    /// Opens the input; decompresses and decodes it.
    fn open(self) -> predict::Result<Box<dyn Read + 'a>> {
        let opened: io::Result<Box<dyn Read + 'a>> = match self {
            Self::Standard => {
                program::stdin().and_then(|stdin| Ok(Box::new(input::of(stdin.lock())?) as Box<dyn Read>))
            }
            Self::File(path) => input::open(path).map(|input| Box::new(input) as Box<dyn Read>),
        };
        opened.map_err(|source| self.unread(source))
    }

    fn unread(self, source: io::Error) -> predict::Error {
        predict::Error::Read { place: self.name().unwrap_or_else(|| "standard input".to_owned()), source }
    }
}

/// The line format, checked before anything is read. The rating and the class of a line have no effect.
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

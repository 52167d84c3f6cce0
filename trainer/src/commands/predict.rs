//! `trainer predict`: reads lines of files or of standard input, and writes one prediction per line to
//! standard output.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use corpus::format::Asked;
use program::location::Location;
use store::{Object, S3Options};
use tch::{Device, Kind};

use super::{device, model};
use crate::arguments::{LineFormat, Lines, Predict};
use crate::error::{Error, Result};
use crate::families::classifier::Answers;
use crate::families::{SavedClassifier, read_classifier};
use crate::predict::{self, Format, Options, Tokenizer, run};
use crate::tell::tell;
use kernels::TokenRows;

/// Predicts line by line.
pub fn predict(arguments: &Predict) -> Result<()> {
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
    let mut answer = |texts: TokenRows<'_>| -> Result<Vec<Vec<f64>>> {
        let outputs = answers.outputs(texts)?;
        Ok(Vec::try_from(&outputs.to_kind(Kind::Double).to_device(Device::Cpu))?)
    };
    let n_inputs = inputs.len();
    let mut unread = Unread::default();
    for input in inputs {
        options.file = input.name();
        let lines = input.open()?;
        let counts = run(lines, io::stdout().lock(), &mut tokenizer, &options, &mut answer)?;
        if counts.invalid_utf8 > 0 {
            tell(&format!(
                "{}: invalid UTF-8 in {} of {} lines (read as spaces); convert files of another encoding with iconv",
                options.place(),
                counts.invalid_utf8,
                counts.lines
            ));
        }
        let of_input = Unread::of(&counts);
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

/// Counts of lines that could not be parsed in the format, and of predictions.
#[derive(Default)]
pub(super) struct Unread {
    bad_line: u64,
    no_text: u64,
    predicted: u64,
}

impl Unread {
    pub(super) fn of(counts: &predict::Counts) -> Self {
        let of = |reason| counts.refused.get(reason).copied().unwrap_or(0);
        Self { bad_line: of("bad_line"), no_text: of("no_text"), predicted: counts.predicted }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.bad_line += other.bad_line;
        self.no_text += other.no_text;
        self.predicted += other.predicted;
    }

    /// Whether the lines are probably in another format, because none has a prediction.
    pub(super) fn is_all(&self) -> bool {
        self.predicted == 0 && self.bad_line + self.no_text > 0
    }

    pub(super) fn error(&self, place: String) -> predict::Error {
        let Self { bad_line, no_text, .. } = *self;
        predict::Error::OtherFormat { place, bad_line, no_text }
    }
}

/// Source of lines.
pub(super) enum Input<'a> {
    Standard,
    File(&'a Path),
    Object(Box<Object>),
}

/// The sources, in the order in which they were named. Objects below a prefix are ordered by name.
pub(super) fn inputs<'a>(files: &'a [Location], s3: &S3Options) -> Result<Vec<Input<'a>>> {
    if files.is_empty() {
        return Ok(vec![Input::Standard]);
    }
    let mut inputs = Vec::new();
    for file in files {
        match file {
            Location::Local(path) if path.as_os_str() == "-" => inputs.push(Input::Standard),
            Location::Local(path) => inputs.push(Input::File(path)),
            Location::S3(url) => {
                let found = store::objects(&url.to_string(), s3)?;
                inputs.extend(found.into_iter().map(|object| Input::Object(Box::new(object))));
            }
        }
    }
    Ok(inputs)
}

impl<'a> Input<'a> {
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Standard => None,
            Self::File(path) => Some(path.to_string_lossy().into_owned()),
            Self::Object(object) => Some(object.url()),
        }
    }

    /// Refuses a file that cannot be read.
    pub(super) fn check(&self) -> predict::Result<()> {
        match self {
            // The listing has found it.
            Self::Object(_) => Ok(()),
            Self::Standard => program::stdin().map(drop).map_err(|source| self.unread(source)),
            // A named pipe must not be opened twice: closing it stops its writer.
            Self::File(path) => fs::metadata(path)
                .and_then(|there| match there.is_dir() {
                    true => Err(io::ErrorKind::IsADirectory.into()),
                    false if there.is_file() => File::open(path).map(drop),
                    false => Ok(()),
                })
                .map_err(|source| predict::Error::Open { place: path.display().to_string(), source }),
        }
    }

    /// Opens the input. Compressed input is decompressed, and UTF-16 is decoded.
    pub(super) fn open(&self) -> predict::Result<Box<dyn Read + 'a>> {
        let opened: io::Result<Box<dyn Read + 'a>> = match self {
            Self::Object(object) => {
                object.reader().and_then(input::of).map(|input| Box::new(input) as Box<dyn Read>)
            }
            Self::Standard => {
                program::stdin().and_then(|stdin| Ok(Box::new(input::of(stdin.lock())?) as Box<dyn Read>))
            }
            Self::File(path) => input::open(path).map(|input| Box::new(input) as Box<dyn Read>),
        };
        opened.map_err(|source| self.unread(source))
    }

    fn unread(&self, source: io::Error) -> predict::Error {
        predict::Error::Read { place: self.name().unwrap_or_else(|| "standard input".to_owned()), source }
    }
}

/// The format of lines. Ratings and classes are not read.
pub(super) fn format(lines: &Lines) -> Result<Format> {
    let Lines { preset, text_field, with_title, .. } = lines.clone();
    let asked = Asked { preset, text_field, with_title, ..Asked::default() };
    Ok(match lines.format {
        LineFormat::Review(name) => Format::Review(Asked { name, ..asked }.format()?),
        LineFormat::Text => {
            asked.nothing_for("text")?;
            Format::Text
        }
    })
}

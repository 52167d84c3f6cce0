//! The lines that `predict` and `explain` read: their sources, their format, and lines of another format.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use corpus::format::Asked;
use program::location::Location;
use store::{Object, S3Options};

use crate::arguments::{LineFormat, Lines};
use crate::error::Result;
use crate::predict::{self, Format};
use crate::tell::tell;

/// Reads the inputs one by one. `read` returns the counts of an input. Fails if no line of any input is in the format,
/// and warns of one such input among several.
pub(super) fn read_each(
    inputs: &[Input<'_>],
    mut read: impl FnMut(&Input<'_>) -> Result<predict::Counts>,
) -> Result<()> {
    let mut unread = Unread::default();
    for input in inputs {
        let of_input = Unread::of(&read(input)?);
        if inputs.len() > 1 && of_input.is_all() {
            tell(&format!("warning: {}", of_input.error(input.place())));
        }
        unread.add(&of_input);
    }
    match (unread.is_all(), inputs) {
        (false, _) => Ok(()),
        (true, [input]) => Err(unread.error(input.place()).into()),
        (true, _) => Err(unread.error("all files".to_owned()).into()),
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

    /// Name of the input for messages.
    fn place(&self) -> String {
        self.name().unwrap_or_else(|| "standard input".to_owned())
    }

    fn unread(&self, source: io::Error) -> predict::Error {
        predict::Error::Read { place: self.place(), source }
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

/// Counts of lines that could not be parsed in the format, and of predictions.
#[derive(Default)]
struct Unread {
    bad_line: u64,
    no_text: u64,
    predicted: u64,
}

impl Unread {
    fn of(counts: &predict::Counts) -> Self {
        let of = |reason| counts.refused.get(reason).copied().unwrap_or(0);
        Self { bad_line: of("bad_line"), no_text: of("no_text"), predicted: counts.predicted }
    }

    fn add(&mut self, other: &Self) {
        self.bad_line += other.bad_line;
        self.no_text += other.no_text;
        self.predicted += other.predicted;
    }

    /// Whether the lines are probably in another format, because none has a prediction.
    fn is_all(&self) -> bool {
        self.predicted == 0 && self.bad_line + self.no_text > 0
    }

    fn error(&self, place: String) -> predict::Error {
        let Self { bad_line, no_text, .. } = *self;
        predict::Error::OtherFormat { place, bad_line, no_text }
    }
}

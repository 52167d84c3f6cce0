//! Converts each line of the input into an explanation: the words or n-grams that spoke for the predicted label, and those
//! that spoke against it. Each family of models has a module that computes their weights.

mod show;

use std::cell::Cell;
use std::io::{self, IsTerminal, Read, Write};

use dataset::vocabulary::UNKNOWN;

use self::show::{View, show};
use super::lines::{Next, Texts};
use super::{Counts, Error, LineOptions, Refusal};

/// Options of explanations.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the labels.
    pub names: Vec<String>,
    /// Maximum number of words for the label, and against it.
    pub top: usize,
    /// The form of the output.
    pub form: Form,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One object per line.
    Json,
    /// A paragraph per line.
    Text,
    /// A paragraph per line, with colours for a terminal.
    Colours,
}

impl Form {
    /// JSON, or text with colours if standard output is a terminal.
    pub fn of_output(json: bool) -> Self {
        match json {
            true => Self::Json,
            false if io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() => Self::Colours,
            false => Self::Text,
        }
    }
}

/// The explanation of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The predicted label.
    pub label: u32,
    /// The score; three or more classes have none.
    pub score: Option<f32>,
    /// The probability of label 1; for three or more classes, of the predicted one.
    pub probability: Option<f64>,
    /// Distinct words with a weight, the largest first. Equal weights are in the order of the text.
    pub words: Vec<Weighed>,
    /// All words of the cleaned text.
    pub text: Vec<(String, Reading)>,
}

/// A word and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The word, or n-gram.
    pub word: String,
    /// Its weight.
    pub weight: f64,
    /// Number of occurrences that the model reads.
    pub times: usize,
}

/// How a model reads a word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A word of the vocabulary.
    Id(u32),
    /// As the unknown word, because the vocabulary does not have it.
    Unknown,
    /// Not at all: a stop word.
    Stop,
    /// Not at all: a word behind the limits of the row or of the model.
    Cut,
}

impl Reading {
    /// The id that the model reads.
    pub fn id(self) -> Option<u32> {
        match self {
            Self::Id(id) => Some(id),
            Self::Unknown => Some(UNKNOWN),
            Self::Stop | Self::Cut => None,
        }
    }
}

/// Reads all lines of `input` and writes to `output` what `explain` returns for the text of each.
pub fn run<E: From<Error>>(
    input: impl Read,
    mut output: impl Write,
    lines: &LineOptions,
    options: &Options,
    mut explain: impl FnMut(&[u8]) -> Result<Result<Explained, Refusal>, E>,
) -> Result<Counts, E> {
    let Options { names, top, form } = options;
    let view = View { file: lines.file.as_deref(), names, top: *top, form: *form };
    let never = Cell::new(false);
    let mut texts = Texts::new(input, lines, &never);
    let mut counts = Counts::default();
    loop {
        let explained = match texts.next()? {
            Next::Text(Ok(text)) => explain(text)?,
            Next::Text(Err(refusal)) => Err(refusal),
            Next::Pause => continue,
            Next::End => break,
        };
        counts.add(explained.as_ref().map(drop).map_err(|&refusal| refusal));
        let shown = show(counts.lines, explained, view);
        output.write_all(shown.as_bytes()).and_then(|()| output.flush()).map_err(Error::Write)?;
    }
    texts.report(&mut counts);
    Ok(counts)
}

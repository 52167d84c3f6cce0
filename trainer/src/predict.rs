//! Converts each line of the input into one line of JSON, in the same order. It has the prediction for the text of
//! the line, or the reason why there is none. If files were named, it also has the name of the file. Line numbers
//! start at 1 in each file.
//!
//! ```text
//! {"line":1,"label":1,"score":2.5,"probability":0.9241418}
//! {"line":2,"error":"bad_line"}
//! {"file":"more.json.gz","line":1,"label":0,"score":-0.5,"probability":0.37754068}
//! ```
//!
//! Lines are split, parsed and cleaned as in the mapper, and words get the ids of the model's training dataset.
//! [`Scoring`] defines the score, and [`Decision`] the label and the probability of label 1: the sigmoid of a logit, or
//! the summed probability of the ratings with label 1, calibrated if the model has a calibration. A model that
//! predicts the rating as a number has no probability: then `probability` is `null` and `rating` is added.
//!
//! If the model's dataset was made with `--labels`, `class` is the name of the predicted class. With three or more
//! classes, a line has the probability of each of them in place of `score` and `probability`:
//!
//! ```text
//! {"line":1,"label":2,"class":"positive","probabilities":{"negative":0.125,"neutral":0.25,"positive":0.625}}
//! ```
//!
//! The rating of a review is not read. `error` is the mapper's name of the problem (`blank`, `line_too_long`,
//! `bad_line`, `no_text`, `empty_text`), or one of three further names: `only_stopwords` (all words are stop
//! words), `only_unknown` (none of the words that the model reads is in the vocabulary), `not_finite` (the
//! model's output is not finite).
//!
//! Texts are passed to the model in batches of similar length, from a window of several batches. A window ends early
//! if the input may be waiting at the end of a line, so that a program which sends one line and waits receives its
//! prediction. Memory is independent of the length of the input and of its lines.

pub mod explain;
pub(crate) mod pause;
#[cfg(test)]
mod tests;
pub(crate) mod tokenizer;
mod window;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use corpus::ledger::Fate;
use corpus::lines::{LineContent, LineReader};
use corpus::review::ReviewParser;
use program::exit::Exit;
use serde::{Serialize, Serializer};
use thiserror::Error;

use self::pause::{Pausing, is_pause};
pub use self::tokenizer::Tokenizer;
use self::window::Window;
use kernels::TokenRows;
use scoring::{Decision, Probabilities, Scoring};

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A review, in a format of the mapper.
    Review(corpus::format::Format),
    /// A plain text.
    Text,
}

/// Options of a prediction.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the input file, if one was named.
    pub file: Option<String>,
    /// Content of a line.
    pub format: Format,
    /// Maximum length of a line.
    pub line_bytes_max: usize,
    /// Maximum texts per batch.
    pub batch_rows: usize,
    /// How scores become probabilities and labels.
    pub decision: Decision,
    /// The names of the classes, if they have names.
    pub classes: Vec<String>,
}

impl Options {
    /// Name of the input for messages.
    pub fn place(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard input".to_owned())
    }
}

/// Why a line has no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The mapper rejects the line too.
    Line(Fate),
    /// All words are stop words.
    OnlyStopwords,
    /// None of the words read is in the vocabulary.
    OnlyUnknown,
    /// An output of the model is not finite.
    NotFinite,
    /// The text has too many words to be explained.
    TooLong,
}

impl Refusal {
    /// The name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line(fate) => fate.counter(),
            Self::OnlyStopwords => "only_stopwords",
            Self::OnlyUnknown => "only_unknown",
            Self::NotFinite => "not_finite",
            Self::TooLong => "too_long",
        }
    }
}

/// Counts of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All lines.
    pub lines: u64,
    /// Lines with a prediction.
    pub predicted: u64,
    /// Lines without a prediction, by the name of the reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Lines with bytes that are not UTF-8. Each invalid sequence is read as U+FFFD.
    pub invalid_utf8: u64,
}

/// Errors that end a prediction.
#[derive(Debug, Error)]
pub enum Error {
    /// An input does not exist, or this user may not read it.
    #[error("{place}: cannot be opened, expected a file of lines; check the path and its permissions")]
    Open {
        /// The file.
        place: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The input could not be read, or is damaged.
    #[error("{place}: cannot be read")]
    Read {
        /// The file, or standard input.
        place: String,
        /// The error of the operating system, or the damage.
        source: io::Error,
    },
    /// No line could be read in the format.
    #[error(
        "{place}: no line could be read (bad_line {bad_line}, no_text {no_text}); check --format, --preset and --text-field"
    )]
    OtherFormat {
        /// The file, or standard input.
        place: String,
        /// Lines that are not in the format.
        bad_line: u64,
        /// Lines without the field of the text.
        no_text: u64,
    },
    /// The output could not be written. If the reader closed the pipe, this is an error too, because output
    /// is lost.
    #[error("cannot write predictions")]
    Write(#[source] io::Error),
    /// The model's texts were cleaned with other rules.
    #[error("the model's {what} is {found}, expected {expected}; predict with the sentimill that saved it")]
    OtherCleaning {
        /// What differs.
        what: &'static str,
        /// The model's value.
        found: String,
        /// This program's value.
        expected: String,
    },
    /// An internal invariant is violated; this is a defect.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The violated invariant.
        promise: String,
    },
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Open { .. } => Exit::MissingInput,
            Self::OtherFormat { .. } => Exit::BadInput,
            Self::Read { source, .. } if input::fault(source).is_some() => Exit::BadInput,
            Self::Read { source, .. } => of_store(source).map_or(Exit::Io, store::Error::exit),
            Self::Write(_) => Exit::Io,
            Self::OtherCleaning { .. } => Exit::Settings,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// The error of a store in an error of a reader.
fn of_store(error: &io::Error) -> Option<&store::Error> {
    error.get_ref()?.downcast_ref()
}

/// A result with this module's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reads all lines of `input` and writes a prediction for each to `output`. The model must return as many outputs per
/// text as the scoring requires.
pub fn run<E: From<Error>>(
    input: impl Read,
    mut output: impl Write,
    tokenizer: &mut Tokenizer,
    options: &Options,
    mut model: impl FnMut(TokenRows<'_>) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Counts, E> {
    let answers_owed = Cell::new(false);
    let mut lines = LineReader::new(Pausing::new(input, &answers_owed), options.line_bytes_max);
    let mut parser = Parser::of(&options.format);
    let mut window = Window::new(options.batch_rows);
    let mut model = |texts: TokenRows<'_>| {
        let answers = model(texts)?;
        check_answers(texts, options.decision.scoring(), &answers)?;
        Ok::<_, E>(answers)
    };
    let mut counts = Counts::default();
    loop {
        answers_owed.set(!window.is_empty());
        let ends = match lines.next_line() {
            Ok(Some(line)) => {
                counts.invalid_utf8 += u64::from(is_invalid(line.content));
                window.push(ids(&mut parser, tokenizer, line.content));
                if !window.is_full() {
                    continue;
                }
                false
            }
            Err(error) if is_pause(&error) => false,
            Ok(None) => true,
            Err(source) => return Err(Error::Read { place: options.place(), source }.into()),
        };
        let outputs = window.outputs(&mut model)?;
        let written = write_lines(&mut output, options, &outputs, &mut counts);
        written.map_err(Error::Write)?;
        if ends {
            return Ok(counts);
        }
    }
}

fn check_answers(texts: TokenRows<'_>, scoring: Scoring, answers: &[Vec<f64>]) -> Result<(), Error> {
    let (found, expected) = (answers.len(), texts.lengths.len());
    if found != expected {
        return Err(Error::Internal {
            promise: format!("a model returned results for {found} of {expected} texts"),
        });
    }
    let expected = scoring.n_outputs();
    match answers.iter().map(Vec::len).find(|&found| found != expected) {
        None => Ok(()),
        Some(found) => {
            let promise = format!("a model has {found} outputs for a text, not {expected}");
            Err(Error::Internal { promise })
        }
    }
}

pub(crate) fn is_invalid(line: LineContent<'_>) -> bool {
    Fate::held(line).is_ok_and(|bytes| std::str::from_utf8(bytes).is_err())
}

enum Parser {
    Review(Box<ReviewParser>),
    Text,
}

impl Parser {
    fn of(format: &Format) -> Self {
        match format {
            Format::Review(format) => Self::Review(Box::new(ReviewParser::new(format.clone()))),
            Format::Text => Self::Text,
        }
    }
}

/// The ids of a line.
fn ids<'a>(
    parser: &mut Parser,
    tokenizer: &'a mut Tokenizer,
    line: LineContent<'_>,
) -> Result<&'a [u32], Refusal> {
    tokenizer.ids(&text_of(parser, line)?)
}

/// The text of a line. Problems are checked in the mapper's order.
fn text_of<'a>(parser: &'a mut Parser, line: LineContent<'a>) -> Result<Cow<'a, str>, Refusal> {
    let bytes = Fate::held(line).map_err(Refusal::Line)?;
    match parser {
        Parser::Review(parser) => {
            let text = parser.parse_text(bytes).map_err(|reject| Refusal::Line(Fate::Rejected(reject)))?;
            Ok(Cow::Borrowed(text))
        }
        Parser::Text => Ok(String::from_utf8_lossy(bytes)),
    }
}

/// A line of the output.
#[derive(Serialize)]
struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(flatten)]
    answer: Answer<'a>,
}

/// The prediction of an input line, or the reason why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Prediction {
        line: u64,
        label: u8,
        score: f32,
        probability: Option<f32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rating: Option<f32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<&'a str>,
    },
    Classes {
        line: u64,
        label: u8,
        class: &'a str,
        probabilities: OfClasses<'a>,
    },
    Refusal {
        line: u64,
        error: &'static str,
    },
}

/// Writes the lines of a window in one call, and counts them.
fn write_lines(
    output: &mut impl Write,
    options: &Options,
    outputs: &[Result<Vec<f64>, Refusal>],
    counts: &mut Counts,
) -> io::Result<()> {
    let mut lines = Vec::new();
    for outputs in outputs {
        counts.lines += 1;
        let answer = outputs.as_ref().map_err(|&refusal| refusal);
        let answer = match answer.and_then(|outputs| predicted(counts.lines, options, outputs)) {
            Ok(prediction) => {
                counts.predicted += 1;
                prediction
            }
            Err(refusal) => {
                *counts.refused.entry(refusal.name()).or_default() += 1;
                Answer::Refusal { line: counts.lines, error: refusal.name() }
            }
        };
        serde_json::to_writer(&mut lines, &Said { file: options.file.as_deref(), answer })?;
        lines.push(b'\n');
    }
    output.write_all(&lines)?;
    output.flush()
}

fn predicted<'a>(line: u64, options: &'a Options, outputs: &[f64]) -> Result<Answer<'a>, Refusal> {
    if !outputs.iter().all(|output| output.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let decision = options.decision;
    let class = |label: u8| options.classes.get(usize::from(label)).map(String::as_str);
    if !decision.scoring().is_of_label() {
        let probabilities = decision.probabilities(outputs);
        let label = probabilities.predicted();
        let class = class(label).unwrap_or_default();
        let probabilities = OfClasses { names: &options.classes, probabilities };
        return Ok(Answer::Classes { line, label, class, probabilities });
    }
    let score = decision.score(outputs);
    if !score.is_finite() {
        return Err(Refusal::NotFinite);
    }
    let label = u8::from(decision.is_positive(score));
    let probability = decision.probability(score).map(|probability| probability as f32);
    let rating = matches!(decision.scoring(), Scoring::Rating { .. }).then(|| outputs[0] as f32);
    Ok(Answer::Prediction { line, label, score, probability, rating, class: class(label) })
}

/// The probability of each class, in the order of the labels.
struct OfClasses<'a> {
    names: &'a [String],
    probabilities: Probabilities,
}

impl Serialize for OfClasses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(self.probabilities.all()))
    }
}

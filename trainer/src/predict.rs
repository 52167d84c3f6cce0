//! Lines in, one JSON line out for each, in their order: what a model says of a text, or why it says nothing. Where the
//! lines are of files that were named, each is told with its file, and lines are counted anew in each.
//!
//! ```text
//! {"line":1,"label":1,"score":2.5,"probability":0.9241418}
//! {"line":2,"error":"bad_line"}
//! {"file":"more.json.gz","line":1,"label":0,"score":-0.5,"probability":0.37754068}
//! ```
//!
//! Lines are cut, read and cleaned as the mapper does it, and words become ids as in the dataset that the model was
//! trained on. The score is that of [`Scoring`], and the label follows from it. `probability` is that of label 1:
//! the sigmoid of a logit, the summed probability of the positive ratings of five; a model of the rating as a number
//! has none, it is `null` and `rating` stands beside it.
//!
//! A review's rating is not read: what is asked for is what the model thinks. `error` is the mapper's name for what is
//! wrong with a line (`blank`, `line_too_long`, `bad_line`, `no_text`, `empty_text`), or one of three more: `only_stopwords`, no word is kept; `only_unknown`, none of the
//! words that are read is in the vocabulary; `not_finite`, the model's answer is no finite number.
//!
//! Texts are put to the model in batches of similar length, out of a window of some batches. A window ends early
//! where the input may have paused at the end of a line, so that a program that asks one line at a time gets its
//! answer. Memory does not grow with the input, nor with a line.

mod pause;
#[cfg(test)]
mod tests;
mod tokenizer;
mod window;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use corpus::ledger::Fate;
use corpus::lines::{LineContent, LineReader};
use corpus::review::ReviewParser;
use program::exit::Exit;
use serde::Serialize;
use thiserror::Error;

use self::pause::{Pausing, is_pause};
pub use self::tokenizer::Tokenizer;
use self::window::Window;
use kernels::TokenRows;
use scoring::Scoring;

/// What a line holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A review, in any format that the mapper reads.
    Review(corpus::format::Format),
    /// A text and nothing else.
    Text,
}

/// How to predict.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file that the lines are of, where one was named.
    pub file: Option<String>,
    /// What a line holds.
    pub format: Format,
    /// The longest line that is read.
    pub line_bytes_max: usize,
    /// The most texts that are put to the model at once.
    pub batch_rows: usize,
    /// What the model's outputs mean.
    pub scoring: Scoring,
}

impl Options {
    /// What lines are read from, for people.
    pub fn place(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard input".to_owned())
    }
}

/// Why a line has no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The mapper has no review of it either.
    Line(Fate),
    /// All words are stop words.
    OnlyStopwords,
    /// None of the words that are read is in the vocabulary.
    OnlyUnknown,
    /// The model answered with something that is no finite number.
    NotFinite,
}

impl Refusal {
    /// The name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line(fate) => fate.counter(),
            Self::OnlyStopwords => "only_stopwords",
            Self::OnlyUnknown => "only_unknown",
            Self::NotFinite => "not_finite",
        }
    }
}

/// What became of the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All lines.
    pub lines: u64,
    /// Lines with a prediction.
    pub predicted: u64,
    /// The others, by the names of their refusals.
    pub refused: BTreeMap<&'static str, u64>,
    /// Lines with bytes that are not UTF-8, each invalid sequence of which is read as U+FFFD.
    pub invalid_utf8: u64,
}

/// Why predicting ended early.
#[derive(Debug, Error)]
pub enum Error {
    /// An input is not there, or not to be read by this user.
    #[error("{place}: cannot be opened, expected a file of lines; check its name and permissions")]
    Open {
        /// The file.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// The input could not be read, or it is damaged.
    #[error("{place}: cannot be read")]
    Read {
        /// The file, or standard input.
        place: String,
        /// What the system said, or what is wrong with the file.
        source: io::Error,
    },
    /// The output could not be written; a reader that went away is lost output.
    #[error("cannot write predictions")]
    Write(#[source] io::Error),
    /// The model was trained on texts that were cleaned by other rules.
    #[error("the model's {what} is {found}, expected {expected}; predict with the sentimill that saved it")]
    OtherCleaning {
        /// What differs.
        what: &'static str,
        /// That of the model.
        found: String,
        /// That of this program.
        expected: String,
    },
    /// A promise between parts of this project was not kept.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The promise.
        promise: String,
    },
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Open { .. } => Exit::MissingInput,
            Self::Read { source, .. } if input::fault(source).is_some() => Exit::BadInput,
            Self::Read { .. } | Self::Write(_) => Exit::Io,
            Self::OtherCleaning { .. } => Exit::Settings,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// The result of predicting.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reads all lines of `input` and writes what `model` says of each to `output`. The model gives, for each of the
/// texts, as many outputs as the scoring needs.
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
        check_answers(texts, options.scoring, &answers)?;
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
        return Err(Error::Internal { promise: format!("a model answers {found} of {expected} texts") });
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

fn is_invalid(line: LineContent<'_>) -> bool {
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

/// A line's ids. Reasons are looked for in the mapper's order.
fn ids<'a>(
    parser: &mut Parser,
    tokenizer: &'a mut Tokenizer,
    line: LineContent<'_>,
) -> Result<&'a [u32], Refusal> {
    let bytes = Fate::held(line).map_err(Refusal::Line)?;
    match parser {
        Parser::Review(parser) => {
            let text = parser.parse_text(bytes).map_err(|reject| Refusal::Line(Fate::Rejected(reject)))?;
            tokenizer.ids(text)
        }
        Parser::Text => tokenizer.ids(&String::from_utf8_lossy(bytes)),
    }
}

/// A line of the output.
#[derive(Serialize)]
struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(flatten)]
    answer: Answer,
}

/// What stands in it of the line of the input.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Prediction {
        line: u64,
        label: u8,
        score: f32,
        probability: Option<f32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rating: Option<f32>,
    },
    Refusal {
        line: u64,
        error: &'static str,
    },
}

/// Writes a window's lines, all of them at once, and counts them.
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
        let answer = match answer.and_then(|outputs| predicted(counts.lines, options.scoring, outputs)) {
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

fn predicted(line: u64, scoring: Scoring, outputs: &[f64]) -> Result<Answer, Refusal> {
    let score = scoring.score(outputs);
    if !score.is_finite() || !outputs.iter().all(|output| output.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let probability = scoring.probability(score).map(|probability| probability as f32);
    let rating = matches!(scoring, Scoring::Rating { .. }).then(|| outputs[0] as f32);
    Ok(Answer::Prediction { line, label: u8::from(scoring.is_positive(score)), score, probability, rating })
}

//! Converts each line of the input into one line of JSON, in the same order. It has the prediction for the text of
//! the line, or the reason why there is none. If files were named, it also has the name of the file. Line numbers
//! start at 1 in each file. Each family of models has a module that computes predictions.
//!
//! ```text
//! {"line":1,"label":1,"score":2.5,"probability":0.9241418}
//! {"line":2,"error":"bad_line"}
//! {"file":"more.json.gz","line":1,"label":0,"score":-0.5,"probability":0.37754068}
//! ```
//!
//! Reviews are split into lines and parsed as in the mapper; the elements of a JSON array take the place of lines. A plain
//! text ends at LF or CRLF. `probability` is that of
//! label 1, `score` its log-odds before calibration, and `class` the name of the predicted label, if labels have names.
//! A model that predicts the rating as a number has no probability: then `probability` is `null` and `rating` is added.
//!
//! With three or more labels, a line has the probability of each of them in place of `score` and `probability`:
//!
//! ```text
//! {"line":1,"label":2,"class":"positive","probabilities":{"negative":0.125,"neutral":0.25,"positive":0.625}}
//! ```
//!
//! A model of n-grams prints the most probable labels, in descending order. If none has the probability of
//! `--threshold`, `label` and `class` are `null`.
//!
//! The rating of a review is read only for wrong predictions. `error` is the mapper's name of the problem (`blank`, `line_too_long`,
//! `bad_line`, `no_text`, `empty_text`), or one of three further names: `only_stopwords` (all words are stop
//! words), `only_unknown` (none of the words that the model reads is in its vocabulary), `not_finite` (the
//! model's output is not finite).
//!
//! A model gets a window of several texts at once. A window ends early if the input may be waiting at the end of a
//! line, so that a program which sends one line and waits receives its prediction. Memory is independent of the length
//! of the input and of its lines.

mod cell;
pub mod explain;
pub mod file;
mod lines;
mod output;
mod pause;
pub mod wrong;

use std::collections::BTreeMap;
use std::io;

use corpus::json_array::ArrayError;
use corpus::ledger::NoReview;
use program::exit::{Exit, Failed, Fails};
use program::system::cause_and_remedy;
use thiserror::Error;

pub use self::lines::{Content, Format, LineOptions};
pub use self::output::{Answer, Output, TextWindow, run};

/// Why a line has no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The mapper rejects the line too.
    Line(NoReview),
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
            Self::Line(reason) => reason.counter(),
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
    /// What most lines without a text have in its place, and the remedy, if that is known.
    pub without_text: Option<String>,
}

impl Counts {
    /// Counts the next line.
    fn add(&mut self, answer: Result<(), Refusal>) {
        self.lines += 1;
        match answer {
            Ok(()) => self.predicted += 1,
            Err(refusal) => *self.refused.entry(refusal.name()).or_default() += 1,
        }
    }

    /// Whether no line could be read, so that the input is probably in another format.
    pub fn is_unread(&self) -> bool {
        let unread = self.n_refused("bad_line") + self.n_refused("no_text");
        unread > 0 && unread + self.n_refused("blank") + self.n_refused("line_too_long") == self.lines
    }

    /// The error of an input of which no line could be read.
    pub fn unread(&self, place: &str) -> Failed {
        let [bad_line, no_text] = ["bad_line", "no_text"].map(|reason| self.n_refused(reason));
        let without_text = self.without_text.as_deref().filter(|_| no_text > bad_line);
        let remedy = without_text.unwrap_or(
            "check --format (csv, tsv, json, or text: one text per line), --preset and --text-field",
        );
        let found = format!("no line could be read (bad_line {bad_line}, no_text {no_text})");
        Failed::new(Exit::BadInput, format!("{place}: {found}; {remedy}"))
    }

    fn n_refused(&self, reason: &str) -> u64 {
        self.refused.get(reason).copied().unwrap_or(0)
    }

    /// Adds what is known at the end of an input.
    fn end(&mut self, found: lines::Found) {
        self.invalid_utf8 = found.invalid_utf8;
        self.without_text = found.without_text.filter(|_| self.predicted == 0);
    }

    /// Adds the lines of another input.
    pub fn merge(&mut self, other: &Self) {
        self.lines += other.lines;
        self.predicted += other.predicted;
        self.invalid_utf8 += other.invalid_utf8;
        self.without_text = self.without_text.take().or_else(|| other.without_text.clone());
        for (&reason, n) in &other.refused {
            *self.refused.entry(reason).or_default() += n;
        }
    }

    /// A message about the lines with an error and its reasons, if there are any.
    pub fn refusals(&self) -> Option<String> {
        let n_refused: u64 = self.refused.values().sum();
        let reasons: Vec<String> = self.refused.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
        (n_refused > 0).then(|| {
            let (lines, reasons) = (self.lines, reasons.join(", "));
            format!("{n_refused} of {lines} lines: an error in place of a result ({reasons})")
        })
    }
}

/// Errors that end a prediction.
#[derive(Debug, Error)]
pub enum AnswersError {
    /// The output could not be written. If the reader closed the pipe, this is an error too, because output
    /// is lost.
    #[error("cannot write predictions: {}", cause_and_remedy(.0))]
    Write(#[source] io::Error),
    /// A table could not be read.
    #[error(transparent)]
    Reading(#[from] reading::Error),
    /// Another error, which callers only pass on.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl AnswersError {
    /// The input could not be read, or is damaged.
    pub(crate) fn read(place: &str, source: &io::Error) -> Self {
        let exit = match is_bad(source) {
            true => Exit::BadInput,
            false => of_store(source).map_or(Exit::Io, store::Error::exit),
        };
        Failed::caused(exit, format!("{place}: cannot be read"), source).into()
    }
}

impl Fails for AnswersError {
    fn exit(&self) -> Exit {
        match self {
            Self::Write(_) => Exit::Io,
            Self::Reading(error) => error.exit(),
            Self::Failed(failed) => failed.exit,
        }
    }
}

/// Whether the content of an input is the error of a reader.
fn is_bad(error: &io::Error) -> bool {
    input::content_error(error).is_some() || error.get_ref().is_some_and(|error| error.is::<ArrayError>())
}

/// The error of a store in an error of a reader.
fn of_store(error: &io::Error) -> Option<&store::Error> {
    error.get_ref()?.downcast_ref()
}

/// A result with this module's error.
pub type Result<T, E = AnswersError> = std::result::Result<T, E>;

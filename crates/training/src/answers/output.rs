//! Passes the texts of lines to a model, in windows, and writes its answers.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::lines::{Content, Done, Next, each_text};
use super::{AnswersError, Counts, LineOptions, Refusal};

/// The prediction for a text.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer<'a> {
    /// One of two labels.
    OfTwo {
        /// The predicted label.
        label: u32,
        /// The log-odds of label 1.
        score: f32,
        /// The probability of label 1.
        probability: Option<f32>,
        /// The predicted rating, of a model that predicts one.
        #[serde(skip_serializing_if = "Option::is_none")]
        rating: Option<f32>,
        /// The name of the label.
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<&'a str>,
    },
    /// Labels and their probabilities, in the order in which they are printed.
    OfMany {
        /// The most probable label.
        label: Option<u32>,
        /// Its name.
        class: Option<&'a str>,
        /// Names and probabilities.
        #[serde(serialize_with = "as_object")]
        probabilities: Vec<(&'a str, f32)>,
    },
}

/// Texts that a model answers together.
pub trait TextWindow<'a> {
    /// An error of the model.
    type Error: From<AnswersError>;

    /// Adds the text of the next line, or the reason why it has none.
    fn push(&mut self, text: Result<&[u8], Refusal>);

    /// Whether it has no line.
    fn is_empty(&self) -> bool;

    /// Whether it must be answered before the next line.
    fn is_full(&self) -> bool;

    /// Answers all lines, in their order, and forgets them.
    fn answers(&mut self) -> Result<Vec<Result<Answer<'a>, Refusal>>, Self::Error>;
}

/// Reads all texts of `input` and writes a prediction for each to `output`. If none of its lines can be read, nothing is
/// written.
pub fn run<'a, 'i, W: TextWindow<'a>>(
    input: impl Into<Content<'i>>,
    output: impl Write,
    options: &LineOptions,
    window: &mut W,
) -> Result<Counts, W::Error> {
    let input = input.into();
    let mut output = Answers::new(output, &input);
    let mut counts = Counts::default();
    let found = each_text(input, options, |next| {
        output.is_asked_for = matches!(next, Next::Pause);
        if let Next::Text(text) = next {
            window.push(text);
            if !window.is_full() {
                return Ok(Done::Owed);
            }
        }
        let lines = shown(options, window.answers()?, &mut counts).map_err(AnswersError::Write)?;
        Ok::<_, W::Error>(output.write(&lines, &counts)?)
    })?;
    let lines = shown(options, window.answers()?, &mut counts).map_err(AnswersError::Write)?;
    output.write(&lines, &counts)?;
    counts.end(found);
    Ok(counts)
}

/// Lines after which an input is in another format, if none of them could be read.
const UNREAD_MAX: u64 = 1000;

/// An output that gets no answers for an input in another format, of which no line can be read.
pub(super) struct Answers<W> {
    output: W,
    held: Vec<u8>,
    /// Whether the program that writes the input may be waiting for the answers, so that they are written in any case.
    pub is_asked_for: bool,
    is_task: bool,
}

impl<W: Write> Answers<W> {
    /// The output for the answers of an input.
    pub fn new(output: W, input: &Content<'_>) -> Self {
        let is_task = matches!(input, Content::Task(_));
        Self { output, held: Vec::new(), is_asked_for: false, is_task }
    }

    /// Writes answers in one call, or holds them.
    pub fn write(&mut self, answers: &[u8], counts: &Counts) -> Result<Done, AnswersError> {
        self.held.extend_from_slice(answers);
        let is_other = counts.is_unread() && !self.is_task;
        if !is_other || self.is_asked_for {
            let written = self.output.write_all(&self.held).and_then(|()| self.output.flush());
            self.held.clear();
            written.map_err(AnswersError::Write)?;
        }
        Ok(if is_other && counts.lines >= UNREAD_MAX { Done::Enough } else { Done::Answered })
    }
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split_start: Option<u64>,
    line: u64,
    #[serde(flatten)]
    content: AnswerOrRefusal<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnswerOrRefusal<'a> {
    Answer(Answer<'a>),
    Refusal { error: &'static str },
}

/// The lines of a window, which are counted.
fn shown(
    options: &LineOptions,
    answers: Vec<Result<Answer<'_>, Refusal>>,
    counts: &mut Counts,
) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for answer in answers {
        counts.add(answer.as_ref().map(drop).map_err(|&refusal| refusal));
        let content = match answer {
            Ok(answer) => AnswerOrRefusal::Answer(answer),
            Err(refusal) => AnswerOrRefusal::Refusal { error: refusal.name() },
        };
        let line = Line {
            file: options.file.as_deref(),
            split_start: options.split_start,
            line: counts.lines,
            content,
        };
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn as_object<S: Serializer>(pairs: &[(&str, f32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

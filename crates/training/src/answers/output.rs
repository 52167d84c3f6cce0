//! Passes the texts of lines to a model, in windows, and writes its answers.

use std::cell::Cell;
use std::io::{self, Read, Write};

use serde::{Serialize, Serializer};

use super::lines::{Next, Texts};
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

/// Reads all lines of `input` and writes a prediction for each to `output`.
pub fn run<'a, W: TextWindow<'a>>(
    input: impl Read,
    mut output: impl Write,
    options: &LineOptions,
    window: &mut W,
) -> Result<Counts, W::Error> {
    let answers_owed = Cell::new(false);
    let mut texts = Texts::new(input, options, &answers_owed);
    let mut counts = Counts::default();
    loop {
        answers_owed.set(!window.is_empty());
        let ends = match texts.next()? {
            Next::Text(text) => {
                window.push(text);
                if !window.is_full() {
                    continue;
                }
                false
            }
            Next::Pause => false,
            Next::End => true,
        };
        let answers = window.answers()?;
        write(&mut output, options, answers, &mut counts).map_err(AnswersError::Write)?;
        if ends {
            texts.report(&mut counts);
            return Ok(counts);
        }
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

/// Writes the lines of a window in one call, and counts them.
fn write(
    output: &mut impl Write,
    options: &LineOptions,
    answers: Vec<Result<Answer<'_>, Refusal>>,
    counts: &mut Counts,
) -> io::Result<()> {
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
    output.write_all(&lines)?;
    output.flush()
}

fn as_object<S: Serializer>(pairs: &[(&str, f32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

//! Passes the texts of lines to a model, in windows, and writes its answers.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::file::{AnswerFile, KeptRow};
use super::lines::{Content, Done, EntryText, Next, Written, each_text};
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
        /// Labels, their names and probabilities.
        #[serde(serialize_with = "as_object")]
        probabilities: Vec<(u32, &'a str, f32)>,
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

impl Answer<'_> {
    /// The predicted label.
    pub(super) fn label(&self) -> Option<u32> {
        match *self {
            Self::OfTwo { label, .. } => Some(label),
            Self::OfMany { label, .. } => label,
        }
    }

    /// How certain the predicted label is: its probability, or its distance from the threshold.
    pub(super) fn confidence(&self) -> f32 {
        self.probability().unwrap_or(match self {
            Self::OfTwo { score, .. } => score.abs(),
            Self::OfMany { .. } => 0.0,
        })
    }

    /// The probability of the predicted label, if it is known.
    pub(super) fn probability(&self) -> Option<f32> {
        let label = self.label()?;
        self.probabilities().into_iter().find(|(of, _)| *of == label).map(|(_, probability)| probability)
    }

    /// The probabilities of labels, as far as they are known.
    pub(super) fn probabilities(&self) -> Vec<(u32, f32)> {
        match self {
            Self::OfTwo { probability, .. } => probability
                .map(|probability| [(0, 1.0 - probability), (1, probability)])
                .into_iter()
                .flatten()
                .collect(),
            Self::OfMany { probabilities, .. } => {
                probabilities.iter().map(|&(label, _, probability)| (label, probability)).collect()
            }
        }
    }
}

/// Where answers are written.
pub enum Output<'o> {
    /// A line each.
    Lines(Box<dyn Write + 'o>),
    /// A file, with the columns of the input.
    File(&'o mut AnswerFile),
}

impl<'o, W: Write + 'o> From<W> for Output<'o> {
    fn from(lines: W) -> Self {
        Self::Lines(Box::new(lines))
    }
}

/// Reads all texts of `input` and writes a prediction for each to `output`. If none of its lines can be read, no line is
/// written.
pub fn run<'a, 'i, 'o, W: TextWindow<'a>>(
    input: impl Into<Content<'i>>,
    output: impl Into<Output<'o>>,
    options: &LineOptions,
    window: &mut W,
) -> Result<Counts, W::Error> {
    let input = input.into();
    let mut sink = match output.into() {
        Output::Lines(output) => Sink::Lines(Answers::new(output, &input)),
        Output::File(file) => Sink::File { file, kept: Vec::new(), n_bytes: 0 },
    };
    let mut counts = Counts::default();
    let found = each_text(input, options, |next| {
        match (next, &mut sink) {
            (Next::Text(entry, written), sink) => {
                let is_full = sink.keep(entry, written, options)?;
                window.push(entry.map(|entry| entry.text));
                if !is_full && !window.is_full() {
                    return Ok(Done::Owed);
                }
            }
            (Next::Pause, Sink::Lines(answers)) => answers.is_asked_for = true,
            (Next::Pause, Sink::File { .. }) => return Ok(Done::Answered),
        }
        Ok::<_, W::Error>(sink.write(options, window.answers()?, &mut counts)?)
    })?;
    sink.write(options, window.answers()?, &mut counts)?;
    counts.end(found);
    Ok(counts)
}

/// Memory for the columns of a window.
pub(super) const KEPT_BYTES: usize = 16 << 20;

/// Where the answers of an input are written.
enum Sink<'o> {
    Lines(Answers<Box<dyn Write + 'o>>),
    File {
        file: &'o mut AnswerFile,
        /// The entries of the window.
        kept: Vec<KeptRow>,
        n_bytes: usize,
    },
}

impl Sink<'_> {
    /// Keeps the columns of an entry. Returns whether their memory is full.
    fn keep(
        &mut self,
        entry: Result<EntryText<'_>, Refusal>,
        written: Written<'_>,
        options: &LineOptions,
    ) -> Result<bool, AnswersError> {
        let Self::File { file, kept, n_bytes } = self else { return Ok(false) };
        let row = file.keep(written, entry.ok(), options)?;
        *n_bytes += row.bytes();
        kept.push(row);
        Ok(*n_bytes >= KEPT_BYTES)
    }

    /// Writes the answers of a window, and counts them.
    fn write(
        &mut self,
        options: &LineOptions,
        answers: Vec<Result<Answer<'_>, Refusal>>,
        counts: &mut Counts,
    ) -> Result<Done, AnswersError> {
        match self {
            Self::Lines(output) => {
                let lines = shown(options, answers, counts).map_err(AnswersError::Write)?;
                let done = output.write(&lines, counts)?;
                output.is_asked_for = false;
                Ok(done)
            }
            Self::File { file, kept, n_bytes } => {
                answers.iter().for_each(|answer| counts.add(answer.as_ref().map(drop).map_err(|&why| why)));
                file.write(kept.drain(..), &answers, options.file.as_deref())?;
                *n_bytes = 0;
                let is_other = counts.is_unread() && counts.lines >= UNREAD_MAX && !file.is_of_wrong();
                Ok(if is_other { Done::Enough } else { Done::Answered })
            }
        }
    }
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
        Self { output, held: Vec::new(), is_asked_for: matches!(input, Content::Stream(_)), is_task }
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
        Ok(match self.held.is_empty() {
            _ if is_other && counts.lines >= UNREAD_MAX => Done::Enough,
            true => Done::Answered,
            // A program that waits for them gets them at the next pause.
            false => Done::Owed,
        })
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

fn as_object<S: Serializer>(labels: &[(u32, &str, f32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(labels.iter().map(|&(_, name, probability)| (name, probability)))
}

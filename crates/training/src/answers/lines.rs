//! Reads lines and finds their texts. All families of models read lines here.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Read;

use crate::texts::without_labels;
use corpus::encoding::Encoding;
use corpus::ledger::NoReview;
use corpus::lines::{LineContent, LineEnds, LineReader};
use corpus::review::ReviewParser;

use super::pause::{Pausing, is_pause};
use super::{AnswersError, Counts, Refusal, Result};

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A review, in a format of the mapper.
    Review(corpus::format::Format),
    /// Words between white space; those with fastText's prefix of labels are no part of the text.
    FastText,
    /// A plain text.
    Text,
}

impl Format {
    /// Where lines end. Reviews are split as in the mapper. A text may contain a CR.
    fn ends(&self) -> LineEnds {
        match self {
            Self::Review(_) => LineEnds::Any,
            Self::FastText | Self::Text => LineEnds::Lf,
        }
    }
}

/// How lines are read.
#[derive(Clone, Debug)]
pub struct LineOptions {
    /// Name of the input file, if one was named.
    pub file: Option<String>,
    /// Offset in the file of the input split of a Hadoop task.
    pub split_start: Option<u64>,
    /// Content of a line.
    pub format: Format,
    /// The encoding of the input.
    pub encoding: &'static Encoding,
    /// Maximum length of a line.
    pub line_bytes_max: usize,
}

impl LineOptions {
    /// Name of the input for messages.
    pub fn place(&self) -> String {
        self.file.clone().unwrap_or_else(|| "standard input".to_owned())
    }
}

/// The texts of an input.
pub struct Texts<'a, R> {
    options: &'a LineOptions,
    lines: LineReader<Pausing<'a, R>>,
    parser: Parser,
    /// The texts of the elements of a list that follow. Each element takes the place of a line.
    elements: VecDeque<Result<Vec<u8>, Refusal>>,
    /// The last element.
    element: Vec<u8>,
    invalid_utf8: u64,
}

/// What follows in an input.
pub enum Next<'a> {
    /// The text of a line, or the reason why it has none.
    Text(Result<&'a [u8], Refusal>),
    /// Nothing yet, and answers are owed.
    Pause,
    /// Nothing.
    End,
}

impl<'a, R: Read> Texts<'a, R> {
    /// Reads `input`. It pauses while `answers_owed` is set.
    pub fn new(input: R, options: &'a LineOptions, answers_owed: &'a Cell<bool>) -> Self {
        let ends = options.format.ends();
        let input = Pausing::new(input, ends, answers_owed);
        let lines = LineReader::new(input, options.line_bytes_max).ending_at(ends);
        Self {
            options,
            lines,
            parser: Parser::of(&options.format),
            elements: VecDeque::new(),
            element: Vec::new(),
            invalid_utf8: 0,
        }
    }

    /// The text of the next line. Problems are checked in the mapper's order.
    pub fn next(&mut self) -> Result<Next<'_>> {
        if matches!(&self.options.format, Format::Review(format) if format.has_list()) {
            return self.next_element();
        }
        match self.lines.next_line() {
            Ok(Some(line)) => {
                self.invalid_utf8 += u64::from(is_invalid(line.content));
                Ok(Next::Text(self.parser.text(line.content)))
            }
            Ok(None) => Ok(Next::End),
            Err(error) if is_pause(&error) => Ok(Next::Pause),
            Err(source) => Err(AnswersError::read(&self.options.place(), &source)),
        }
    }

    /// The text of the next element of a list.
    fn next_element(&mut self) -> Result<Next<'_>> {
        while self.elements.is_empty() {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(Next::End),
                Err(error) if is_pause(&error) => return Ok(Next::Pause),
                Err(source) => return Err(AnswersError::read(&self.options.place(), &source)),
            };
            self.invalid_utf8 += u64::from(is_invalid(line.content));
            let elements = &mut self.elements;
            match (&mut self.parser, NoReview::held(line.content)) {
                (Parser::Review(parser), Ok(bytes)) => parser.each(bytes, &mut |_, entry| {
                    let refusal = |reject| Refusal::Line(NoReview::Rejected(reject));
                    elements.push_back(entry.map(|entry| entry.text.as_bytes().to_vec()).map_err(refusal));
                }),
                (_, held) => elements.push_back(held.map(<[u8]>::to_vec).map_err(Refusal::Line)),
            }
        }
        match self.elements.pop_front().unwrap_or(Err(Refusal::Line(NoReview::Blank))) {
            Ok(text) => {
                self.element = text;
                Ok(Next::Text(Ok(&self.element)))
            }
            Err(refusal) => Ok(Next::Text(Err(refusal))),
        }
    }

    /// Adds what is known at the end of the input.
    pub fn report(&self, counts: &mut Counts) {
        counts.invalid_utf8 = self.invalid_utf8;
        if let Parser::Review(parser) = &self.parser
            && counts.predicted == 0
        {
            counts.without_text = parser.without_text();
        }
    }
}

fn is_invalid(line: LineContent<'_>) -> bool {
    NoReview::held(line).is_ok_and(|bytes| std::str::from_utf8(bytes).is_err())
}

/// Finds the text of a line.
enum Parser {
    Review(Box<ReviewParser>),
    FastText { text: Vec<u8> },
    Text,
}

impl Parser {
    fn of(format: &Format) -> Self {
        match format {
            Format::Review(format) => Self::Review(Box::new(ReviewParser::new(format.clone()))),
            Format::FastText => Self::FastText { text: Vec::new() },
            Format::Text => Self::Text,
        }
    }

    fn text<'a>(&'a mut self, line: LineContent<'a>) -> Result<&'a [u8], Refusal> {
        let bytes = NoReview::held(line).map_err(Refusal::Line)?;
        match self {
            Self::Review(parser) => {
                // A line to predict may have no rating.
                let entry =
                    parser.parse(bytes).map_err(|reject| Refusal::Line(NoReview::Rejected(reject)))?;
                Ok(entry.text.as_bytes())
            }
            Self::FastText { text } => {
                text.clear();
                without_labels(bytes, text);
                Ok(text)
            }
            Self::Text => Ok(bytes),
        }
    }
}

//! Reads lines, and rows of tables, and finds their texts. All families of models read them here.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use corpus::csv::Columns;
use corpus::encoding::Encoding;
use corpus::entry::{Entry, Rating, Reject};
use corpus::ledger::NoReview;
use corpus::lines::{LineContent, LineEnds, LineReader};
use corpus::rejects;
use corpus::review::ReviewParser;
use reading::{InputEntry, Reading, RowValue};

use crate::texts::without_labels;

use super::pause::{Pausing, is_pause};
use super::{AnswersError, Refusal, Result};

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

/// The content of an input.
pub enum Content<'a> {
    /// Lines of a file.
    Lines(Box<dyn Read + 'a>),
    /// Lines of a program, which may wait for the answer of each.
    Stream(Box<dyn Read + 'a>),
    /// The lines of a Hadoop task, one of many. Each has an answer, whatever the others are.
    Task(Box<dyn Read + 'a>),
    /// The records or rows of a table, read by one thread.
    Table(&'a Reading),
}

impl<'a, R: Read + 'a> From<R> for Content<'a> {
    fn from(lines: R) -> Self {
        Self::Stream(Box::new(lines))
    }
}

/// What follows in an input.
pub enum Next<'a> {
    /// The text of an entry, or the reason why it has none, and the entry.
    Text(Result<EntryText<'a>, Refusal>, Written<'a>),
    /// Nothing yet, and answers are owed.
    Pause,
}

/// The text of an entry, and its rating if it has one.
#[derive(Clone, Copy)]
pub struct EntryText<'a> {
    /// The text.
    pub text: &'a [u8],
    /// The rating, or the label that takes its place.
    pub rating: Option<(Rating, Option<&'a [u8]>)>,
}

/// An entry as it is written.
#[derive(Clone, Copy)]
pub enum Written<'a> {
    /// A line.
    Line(&'a [u8]),
    /// A record of a table.
    Record(&'a [u8], &'a Columns),
    /// A row: the names of its columns, and their values.
    Row(&'a [Arc<str>], &'a [RowValue<'a>]),
    /// Nothing but its text is known.
    Text,
}

/// What was done with a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// All answers so far are written.
    Answered,
    /// Its answer is owed.
    Owed,
    /// No further text is wanted.
    Enough,
}

/// What is known at the end of an input.
pub struct Found {
    /// Entries with bytes that are not UTF-8.
    pub invalid_utf8: u64,
    /// What most entries without a text have in its place, and the remedy, if that is known.
    pub without_text: Option<String>,
}

/// Passes on the text of each entry, in order.
pub fn each_text<E: From<AnswersError>>(
    content: Content<'_>,
    options: &LineOptions,
    mut visit: impl FnMut(Next<'_>) -> Result<Done, E>,
) -> Result<Found, E> {
    let may_wait = matches!(content, Content::Stream(_));
    let lines = match content {
        Content::Lines(lines) | Content::Stream(lines) | Content::Task(lines) => lines,
        Content::Table(reading) => return each_row(reading, options, visit),
    };
    let answers_owed = Cell::new(false);
    let mut texts = Texts::new(lines, options, &answers_owed);
    while let Some(next) = texts.next()? {
        match visit(next)? {
            Done::Enough => break,
            done => answers_owed.set(may_wait && done == Done::Owed),
        }
    }
    Ok(Found { invalid_utf8: texts.invalid_utf8, without_text: texts.parser.without_text() })
}

fn each_row<E: From<AnswersError>>(
    reading: &Reading,
    options: &LineOptions,
    mut visit: impl FnMut(Next<'_>) -> Result<Done, E>,
) -> Result<Found, E> {
    let mut parser = Parser::of(&options.format);
    // A table is read by itself.
    let names = reading.row_columns(0).map_or(&[][..], |columns| &columns.names);
    let (mut done, mut invalid_utf8) = (Ok(Done::Answered), 0);
    let read = reading.each(|entry| {
        if matches!(done, Ok(Done::Answered | Done::Owed)) {
            invalid_utf8 += u64::from(matches!(entry.what, rejects::Content::Line(line) if is_invalid(line)));
            let written = match (entry.what, entry.columns) {
                (rejects::Content::Line(LineContent::Bytes(record)), Some(columns)) => {
                    Written::Record(record, columns)
                }
                _ if !names.is_empty() => Written::Row(names, entry.values),
                _ => Written::Text,
            };
            done = visit(Next::Text(parser.row(&entry), written));
        } else {
            reading.stop();
        }
        Ok::<_, reading::Error>(())
    });
    done?;
    read.map_err(AnswersError::from)?;
    Ok(Found { invalid_utf8, without_text: parser.without_text() })
}

/// The texts of lines.
struct Texts<'a, R> {
    options: &'a LineOptions,
    lines: LineReader<Pausing<'a, R>>,
    parser: Parser,
    /// The elements of a list that follow. Each takes the place of a line.
    elements: VecDeque<Result<Element, Refusal>>,
    /// The last element.
    element: Element,
    invalid_utf8: u64,
}

impl<'a, R: Read> Texts<'a, R> {
    /// Reads `input`. It pauses while `answers_owed` is set.
    fn new(input: R, options: &'a LineOptions, answers_owed: &'a Cell<bool>) -> Self {
        let ends = options.format.ends();
        let input = Pausing::new(input, ends, answers_owed);
        let lines = LineReader::new(input, options.line_bytes_max).ending_at(ends);
        Self {
            options,
            lines,
            parser: Parser::of(&options.format),
            elements: VecDeque::new(),
            element: Element::default(),
            invalid_utf8: 0,
        }
    }

    /// The text of the next line; `None` at the end. Problems are checked in the mapper's order.
    fn next(&mut self) -> Result<Option<Next<'_>>> {
        if matches!(&self.options.format, Format::Review(format) if format.has_list()) {
            return self.next_element();
        }
        match self.lines.next_line() {
            Ok(Some(line)) => {
                self.invalid_utf8 += u64::from(is_invalid(line.content));
                let written = match line.content {
                    LineContent::Bytes(line) => Written::Line(line),
                    LineContent::TooLong { .. } => Written::Text,
                };
                Ok(Some(Next::Text(self.parser.text(line.content), written)))
            }
            Ok(None) => Ok(None),
            Err(error) if is_pause(&error) => Ok(Some(Next::Pause)),
            Err(source) => Err(AnswersError::read(&self.options.place(), &source)),
        }
    }

    /// The text of the next element of a list.
    fn next_element(&mut self) -> Result<Option<Next<'_>>> {
        while self.elements.is_empty() {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(error) if is_pause(&error) => return Ok(Some(Next::Pause)),
                Err(source) => return Err(AnswersError::read(&self.options.place(), &source)),
            };
            self.invalid_utf8 += u64::from(is_invalid(line.content));
            let elements = &mut self.elements;
            match (&mut self.parser, NoReview::held(line.content)) {
                (Parser::Review(parser), Ok(bytes)) => parser.each(bytes, &mut |_, entry| {
                    let refusal = |reject| Refusal::Line(NoReview::Rejected(reject));
                    elements
                        .push_back(entry.map(|entry| Element::of(EntryText::from(entry))).map_err(refusal));
                }),
                (_, held) => {
                    let element = held.map(|text| Element::of(EntryText { text, rating: None }));
                    elements.push_back(element.map_err(Refusal::Line));
                }
            }
        }
        match self.elements.pop_front().unwrap_or(Err(Refusal::Line(NoReview::Blank))) {
            Ok(element) => {
                self.element = element;
                let Element { text, rating } = &self.element;
                let rating = rating.as_ref().map(|(rating, label)| (*rating, label.as_deref()));
                Ok(Some(Next::Text(Ok(EntryText { text, rating }), Written::Text)))
            }
            Err(refusal) => Ok(Some(Next::Text(Err(refusal), Written::Text))),
        }
    }
}

/// An element of a list.
#[derive(Default)]
struct Element {
    text: Vec<u8>,
    rating: Option<(Rating, Option<Vec<u8>>)>,
}

impl Element {
    fn of(EntryText { text, rating }: EntryText<'_>) -> Self {
        let rating = rating.map(|(rating, label)| (rating, label.map(<[u8]>::to_vec)));
        Self { text: text.to_vec(), rating }
    }
}

impl<'a> From<Entry<'a>> for EntryText<'a> {
    fn from(Entry { text, rating, label }: Entry<'a>) -> Self {
        Self { text: text.as_bytes(), rating: rating.ok().map(|rating| (rating, label)) }
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

    fn text<'a>(&'a mut self, line: LineContent<'a>) -> Result<EntryText<'a>, Refusal> {
        let bytes = NoReview::held(line).map_err(Refusal::Line)?;
        match self {
            Self::Review(parser) => text_of(parser.parse(bytes)),
            Self::FastText { text } => {
                text.clear();
                without_labels(bytes, text);
                Ok(EntryText { text, rating: None })
            }
            Self::Text => Ok(EntryText { text: bytes, rating: None }),
        }
    }

    /// The text of a row or record of a table.
    fn row<'a>(&'a mut self, entry: &InputEntry<'a>) -> Result<EntryText<'a>, Refusal> {
        match (entry.what, entry.columns, self) {
            (rejects::Content::Row { text, rating }, _, Self::Review(parser)) => {
                text_of(parser.row(text, rating))
            }
            (rejects::Content::Line(line), Some(columns), Self::Review(parser)) => {
                match NoReview::held(line).map_err(Refusal::Line)? {
                    // Concatenated files repeat it.
                    header if columns.is_header(header) => Err(Refusal::Line(NoReview::Blank)),
                    record => text_of(parser.parse_record(record, columns)),
                }
            }
            (rejects::Content::Line(line), _, parser) => parser.text(line),
            (rejects::Content::Row { text, .. }, _, _) => {
                let text = text.ok_or(Refusal::Line(NoReview::Blank))?;
                Ok(EntryText { text, rating: None })
            }
        }
    }

    /// What most lines without a text have in its place.
    fn without_text(&self) -> Option<String> {
        if let Self::Review(parser) = self { parser.without_text() } else { None }
    }
}

fn text_of(entry: Result<Entry<'_>, Reject>) -> Result<EntryText<'_>, Refusal> {
    entry.map(EntryText::from).map_err(|reject| Refusal::Line(NoReview::Rejected(reject)))
}

//! The lines that `predict` and `explain` read: their sources, their format, and lines of another format.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use corpus::encoding::{Encoding, UTF_8};
use corpus::entry::Reject;
use corpus::format::{FormatName, FormatOptions};
use corpus::ledger::{Limits, MapperCounts, NoReview, Part, TooMany};
use input::ContentError;
use program::exit::{Exit, Failed};
use program::hadoop::{Runner, Variable, report_counters};
use program::location::Location;
use program::system::cause;
use reading::JsonLines;
use store::{Object, S3Options};

use crate::answers::{self, Counts, Format, LineOptions};
use crate::arguments::{LineArguments, LineFormat};
use crate::error::{Error, Result};
use crate::model::is_model;
use crate::tell::{program_name, tell};

/// Reads the inputs one by one. `run` reads the lines of an input and returns their counts. Fails if no line of any input
/// is in the format, warns of one such input among several, and reports the number of lines with an error.
pub fn read_each<E: From<Error>>(
    inputs: &[Input<'_>],
    options: &mut LineOptions,
    invalid: InvalidUtf8,
    mut run: impl FnMut(Box<dyn Read + '_>, &LineOptions) -> Result<Counts, E>,
) -> Result<(), E> {
    let mut all = Counts::default();
    let runner = Runner::of_this_process();
    for input in inputs {
        options.file = input.name();
        if runner == Runner::Hadoop && matches!(input, Input::Standard) {
            options.file = Variable::InputFile.value();
            options.split_start = Variable::InputStart.value().and_then(|start| start.parse().ok());
        }
        let counts = run(input.lines(options).map_err(Error::from)?, options)?;
        invalid.report(&input.place(), &counts);
        let of_input = Unread::of(&counts);
        if inputs.len() > 1 && of_input.is_all() {
            tell(&format!("warning: {}", of_input.error(&input.place())));
        }
        all.merge(&counts);
    }
    if runner == Runner::Hadoop && matches!(inputs, [Input::Standard]) {
        return Ok(end_task(&all, options.encoding)?);
    }
    let unread = Unread::of(&all);
    match (unread.is_all(), inputs) {
        (false, _) => {
            if let Some(refusals) = all.refusals() {
                tell(&refusals);
            }
            Ok(())
        }
        (true, [input]) => Err(Error::from(unread.error(&input.place())).into()),
        (true, _) => Err(Error::from(unread.error("all files")).into()),
    }
}

/// Reports the counts of a Hadoop task, which is one of many. Fails if too many of its lines are bad, as in the mapper.
fn end_task(all: &Counts, encoding: &'static Encoding) -> Result<()> {
    let reasons = all.refused.iter().map(|(reason, n)| (*reason, *n));
    let counters: Vec<(&str, u64)> =
        [("lines", all.lines), ("predicted", all.predicted)].into_iter().chain(reasons).collect();
    report_counters(&mut io::stderr(), program_name(), &counters)
        .map_err(|source| Error::io("standard error".as_ref(), source))?;
    let of = |reason: NoReview| all.refused.get(reason.counter()).copied().unwrap_or(0);
    let counts = MapperCounts {
        lines: all.lines,
        blank: of(NoReview::Blank),
        line_too_long: of(NoReview::TooLong),
        bad_line: of(NoReview::Rejected(Reject::BadLine)),
        no_text: of(NoReview::Rejected(Reject::NoText)),
        invalid_utf8: all.invalid_utf8,
        ..MapperCounts::default()
    };
    let refused = |found: &dyn Display, remedy| Failed::new(Exit::BadInput, format!("{found}; {remedy}"));
    counts.judge(Limits::default(), Part::Task, encoding.name()).map_err(|found| match found {
        TooMany::Bad(found) => refused(&found, "check --format and --text-field").into(),
        TooMany::InvalidUtf8(found) => {
            refused(&found, "pass the encoding of the lines with --encoding").into()
        }
    })
}

/// Source of lines.
pub enum Input<'a> {
    /// Standard input.
    Standard,
    /// A file.
    File(&'a Path),
    /// An object in S3.
    Object(Box<Object>),
}

/// Refuses inputs that cannot be read, and models among them, before the first line is read.
pub fn check(inputs: &[Input<'_>], model: &Location) -> Result<()> {
    for input in inputs {
        if let Input::File(path) = input
            && is_model(path)
        {
            let message = format!(
                "found two models, {model} and {}, expected one model and files of lines; omit one of the models",
                path.display()
            );
            return Err(Failed::new(Exit::Usage, message).into());
        }
        input.check()?;
    }
    Ok(())
}

/// The sources, in the order in which they were named. Objects below a prefix are ordered by name.
pub fn inputs<'a>(files: &'a [Location], s3: &S3Options) -> Result<Vec<Input<'a>>> {
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
    /// The path or URL; `None` for standard input.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Standard => None,
            Self::File(path) => Some(path.to_string_lossy().into_owned()),
            Self::Object(object) => Some(object.url()),
        }
    }

    /// Refuses a file that cannot be read.
    fn check(&self) -> answers::Result<()> {
        match self {
            // The listing has found it.
            Self::Object(_) => Ok(()),
            Self::Standard => program::stdin().map(drop).map_err(|source| self.unread(&source)),
            // A named pipe must not be opened twice: closing it stops its writer.
            Self::File(path) => fs::metadata(path)
                .and_then(|there| match there.is_dir() {
                    true => Err(io::ErrorKind::IsADirectory.into()),
                    false if there.is_file() => File::open(path).map(drop),
                    false => Ok(()),
                })
                .map_err(|error| {
                    let expected = "a file of lines; check the path and its permissions";
                    let message = format!("{}: {}, expected {expected}", path.display(), cause(&error));
                    Failed::new(Exit::MissingInput, message).into()
                }),
        }
    }

    /// Opens the input, which is in this encoding. Compressed input is decompressed.
    pub fn open(&self, encoding: &'static Encoding) -> answers::Result<Box<dyn Read + 'a>> {
        fn decoded<'a, R: Read + 'a>(
            input: input::Input<R>,
            encoding: &'static Encoding,
        ) -> Box<dyn Read + 'a> {
            Box::new(input.in_utf8(encoding))
        }
        let opened: io::Result<Box<dyn Read + 'a>> = match self {
            Self::Object(object) => {
                let input = object.reader().and_then(|reader| input::of_encoding(reader, encoding));
                input.map(|input| decoded(input, encoding))
            }
            Self::Standard => {
                program::stdin().and_then(|stdin| match Runner::of_this_process() {
                    Runner::User => {
                        input::of_encoding(stdin.lock(), encoding).map(|input| decoded(input, encoding))
                    }
                    // Hadoop decompresses the input of a task.
                    Runner::Hadoop => {
                        let input = input::as_it_comes(stdin.lock(), encoding);
                        input.map(|input| Box::new(input) as Box<dyn Read>)
                    }
                })
            }
            Self::File(path) => input::open_as(path, encoding).map(|input| decoded(input, encoding)),
        };
        opened.map_err(|source| self.unread(&source))
    }

    /// Opens the input. The elements of a JSON array become lines.
    fn lines(&self, options: &LineOptions) -> answers::Result<Box<dyn Read + 'a>> {
        let opened = self.open(options.encoding)?;
        match options.format {
            Format::Review(corpus::format::Format::Json(_)) => {
                let lines = JsonLines::of(opened, options.line_bytes_max);
                Ok(Box::new(lines.map_err(|source| self.unread(&source))?))
            }
            Format::Review(_) | Format::FastText | Format::Text => Ok(opened),
        }
    }

    /// Name of the input for messages.
    fn place(&self) -> String {
        self.name().unwrap_or_else(|| "standard input".to_owned())
    }

    /// The error of a read that failed.
    pub fn unread(&self, source: &io::Error) -> answers::AnswersError {
        let place = self.place();
        match input::content_error(source) {
            Some(ContentError::Packed { packed, .. }) if packed.table.is_some() => {
                let read = if packed.table == Some("Arrow") { "read_feather" } else { "read_parquet" };
                let message = format!(
                    "{place}: found {}, expected lines; write them with pandas: {read}(FILE).to_json(\"lines.json\", \
                     orient=\"records\", lines=True)",
                    packed.name
                );
                Failed::new(Exit::BadInput, message).into()
            }
            _ => answers::AnswersError::read(&place, source),
        }
    }
}

/// How a model reads bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidUtf8 {
    /// As spaces.
    Spaces,
    /// As they are.
    Bytes,
}

impl InvalidUtf8 {
    fn report(self, place: &str, counts: &Counts) {
        let Counts { lines, invalid_utf8, .. } = counts;
        let read = match self {
            Self::Spaces => " (read as spaces)",
            Self::Bytes => "",
        };
        if *invalid_utf8 > 0 {
            tell(&format!(
                "{place}: invalid UTF-8 in {invalid_utf8} of {lines} lines{read}; pass the encoding of the lines with --encoding"
            ));
        }
    }
}

/// What a line of fastText's format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastTextLine {
    /// A review with one class, as in the mapper.
    Review,
    /// Words, with any labels among them, as in the fastText program.
    Words,
}

/// How lines are read. Ratings and classes are not read.
pub fn options(lines: &LineArguments, fasttext: FastTextLine) -> Result<LineOptions> {
    let LineArguments { preset, text_field, with_title, encoding, .. } = lines.clone();
    let asked = FormatOptions { preset, text_field, with_title, ..FormatOptions::default() };
    let format = match lines.format {
        LineFormat::Review(FormatName::FastText) if fasttext == FastTextLine::Words => {
            asked.nothing_for("fasttext")?;
            Format::FastText
        }
        LineFormat::Review(name) => Format::Review(FormatOptions { name, ..asked }.format()?),
        LineFormat::Text => {
            asked.nothing_for("text")?;
            Format::Text
        }
    };
    let line_bytes_max = usize::try_from(lines.line_bytes_max).unwrap_or(usize::MAX);
    let encoding = encoding.unwrap_or(UTF_8);
    Ok(LineOptions { file: None, split_start: None, format, encoding, line_bytes_max })
}

/// A text as one line of plain text.
pub fn one_line(text: &str) -> (String, LineOptions) {
    // A text with line ends is one text.
    let line = text.replace(['\n', '\r'], " ");
    (
        line,
        LineOptions {
            file: None,
            split_start: None,
            format: Format::Text,
            encoding: UTF_8,
            line_bytes_max: usize::MAX,
        },
    )
}

/// Counts of lines that could not be parsed in the format, and of predictions.
struct Unread {
    bad_line: u64,
    no_text: u64,
    predicted: u64,
    without_text: Option<String>,
}

impl Unread {
    fn of(counts: &Counts) -> Self {
        let of = |reason| counts.refused.get(reason).copied().unwrap_or(0);
        let without_text = counts.without_text.clone().filter(|_| of("no_text") > of("bad_line"));
        Self { bad_line: of("bad_line"), no_text: of("no_text"), predicted: counts.predicted, without_text }
    }

    /// Whether the lines are probably in another format, because none has a prediction.
    fn is_all(&self) -> bool {
        self.predicted == 0 && self.bad_line + self.no_text > 0
    }

    fn error(&self, place: &str) -> Failed {
        let Self { bad_line, no_text, without_text, .. } = self;
        let remedy = without_text
            .as_deref()
            .unwrap_or("check --format (text: one text per line), --preset and --text-field");
        let found = format!("no line could be read (bad_line {bad_line}, no_text {no_text})");
        Failed::new(Exit::BadInput, format!("{place}: {found}; {remedy}"))
    }
}

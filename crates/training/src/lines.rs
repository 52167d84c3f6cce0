//! The texts that `predict`, `explain` and `evaluate --wrong` read: their sources, and the format of each.
//!
//! A flag decides the format, then the name of the file, then the training of the model.

use std::fmt::Display;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::Path;

use corpus::encoding::UTF_8;
use corpus::entry::Reject;
use corpus::format::{FormatName, FormatOptions};
use corpus::ledger::{Limits, MapperCounts, NoReview, Part, TooMany};
use program::exit::{Exit, Failed};
use program::hadoop::{Runner, Variable, report_counters};
use program::location::Location;
use reading::{JsonLines, KeptColumns, Reading, ReadingOptions, RowColumns, Source};
use store::S3Options;

use crate::answers::file::AnswerFile;
use crate::answers::{AnswersError, Content, Counts, Format, LineOptions, Output};
use crate::arguments::{LineArguments, LineFormat};
use crate::error::{Error, Result};
use crate::formats::{Trained, Unknown};
use crate::model::is_model;
use crate::tell::{program_name, tell};
use crate::texts::BATCHES_BYTES;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// Reads the sources one by one. `run` reads the texts of a source and returns their counts. Fails if a source is in another
/// format, and reports the number of entries with an error.
pub fn read_each<E: From<Error>>(
    sources: &[Source],
    formats: &Formats,
    invalid: InvalidUtf8,
    run: impl FnMut(Content<'_>, &LineOptions) -> Result<Counts, E>,
) -> Result<(), E> {
    read_columns_of_each(sources, formats, (invalid, KeptColumns::OfFields), run)
}

fn read_columns_of_each<E: From<Error>>(
    sources: &[Source],
    formats: &Formats,
    (invalid, columns): (InvalidUtf8, KeptColumns),
    mut run: impl FnMut(Content<'_>, &LineOptions) -> Result<Counts, E>,
) -> Result<(), E> {
    let mut all = Counts::default();
    let (runner, mut task) = (Runner::of_this_process(), None);
    for source in sources {
        let is_table = source.is_table().map_err(Error::from)?;
        let mut options = formats.options(&source.name, is_table)?;
        options.file = (!is_standard_input(source)).then(|| source.name.clone());
        let counts = if runner == Runner::Hadoop && is_standard_input(source) {
            if let Format::Review(format) = &options.format
                && format.is_delimited()
            {
                let found =
                    format!("--format {}: found a Hadoop task, which gets a part of a table", format.name());
                return Err(
                    Error::from(Failed::new(Exit::Usage, format!("{found}; {LINES_IN_TASKS}"))).into()
                );
            }
            options.file = Variable::InputFile.value();
            options.split_start = Variable::InputStart.value().and_then(|start| start.parse().ok());
            task = Some(options.encoding);
            // Hadoop decompresses the input of a task.
            let lines = program::stdin().and_then(|stdin| input::as_it_comes(stdin.lock(), options.encoding));
            let lines = lines.map_err(|error| Error::from(AnswersError::read(&source.name, &error)))?;
            run(Content::Task(Box::new(lines)), &options)?
        } else {
            let (counts, notices) =
                read((source, is_table), &options, columns, |content| run(content, &options))?;
            notices.iter().for_each(|notice| tell(notice));
            counts
        };
        invalid.report(&options.place(), &counts);
        all.merge(&counts);
        if task.is_none() && counts.is_unread() {
            return Err(Error::from(counts.unread(&options.place())).into());
        }
    }
    match (task, all.refusals()) {
        (Some(encoding), _) => end_task(&all, encoding.name())?,
        (None, Some(refusals)) => tell(&refusals),
        (None, None) => {}
    }
    Ok(())
}

/// Reads the content of a source, and reports columns that are left out. Also returns the notices of a table.
pub(crate) fn read<E: From<Error>>(
    (source, is_table): (&Source, bool),
    options: &LineOptions,
    columns: KeptColumns,
    run: impl FnOnce(Content<'_>) -> Result<Counts, E>,
) -> Result<(Counts, Vec<String>), E> {
    if let Some(reading) = table((source, is_table), options, columns)? {
        if let Some(RowColumns { others, .. }) = reading.row_columns(0)
            && !others.is_empty()
        {
            let (place, others) = (options.place(), others.join(", "));
            let why = "only columns of texts, numbers and booleans are kept";
            tell(&format!("warning: {place}: the columns {others} are left out; {why}"));
        }
        let counts = run(Content::Table(&reading))?;
        return Ok((counts, reading.tables().notices));
    }
    let lines = lines(source, options)?;
    let counts = run(if source.is_stream() { Content::Stream(lines) } else { Content::Lines(lines) })?;
    Ok((counts, Vec::new()))
}

/// As [`read_each`], for predictions that are written to a file or to standard output.
pub fn predict_each<E: From<Error>>(
    sources: &[Source],
    formats: &Formats,
    invalid: InvalidUtf8,
    mut file: Option<AnswerFile>,
    mut run: impl FnMut(Content<'_>, Output<'_>, &LineOptions) -> Result<Counts, E>,
) -> Result<(), E> {
    if file.is_some() && Runner::of_this_process() == Runner::Hadoop && sources.iter().any(is_standard_input)
    {
        let found = "--out: found a Hadoop task, which writes to standard output; omit --out";
        return Err(Error::from(Failed::new(Exit::Usage, found)).into());
    }
    if sources.len() > 1 {
        file.iter_mut().for_each(AnswerFile::name_files);
    }
    let columns = if file.is_some() { KeptColumns::All } else { KeptColumns::OfFields };
    read_columns_of_each(sources, formats, (invalid, columns), |input, lines| {
        let Some(file) = &mut file else { return run(input, io::stdout().lock().into(), lines) };
        let Content::Table(table) = input else { return run(input, Output::File(file), lines) };
        let counts = run(input, Output::File(file), lines)?;
        if let Some(columns) = table.columns() {
            file.open(&columns, &lines.place()).map_err(Error::from)?;
        }
        Ok(counts)
    })?;
    Ok(file.map_or(Ok(()), AnswerFile::finish)?)
}

/// The rows or records of a source that is a table.
fn table(
    (source, is_table): (&Source, bool),
    options: &LineOptions,
    columns: KeptColumns,
) -> Result<Option<Reading>> {
    let format = match &options.format {
        Format::Review(format) if is_table || format.is_delimited() => format.clone(),
        Format::Review(_) | Format::FastText | Format::Text => return Ok(None),
    };
    let options = ReadingOptions {
        format,
        encoding: options.encoding,
        line_bytes_max: options.line_bytes_max,
        // One thread reads entries in their order.
        threads: NonZeroUsize::MIN,
        streams_max: NonZeroUsize::MIN,
        batches_bytes: BATCHES_BYTES,
        columns,
    };
    Ok(Some(Reading::start(vec![source.clone()], &options)?))
}

/// The lines of a source. The elements of a JSON array become lines.
fn lines(source: &Source, options: &LineOptions) -> Result<Box<dyn Read>> {
    let content = source.content(options.encoding)?;
    match &options.format {
        Format::Review(format) if format.is_json() => {
            let lines = JsonLines::of(content, options.line_bytes_max);
            Ok(Box::new(lines.map_err(|error| source.failed(error))?))
        }
        Format::Review(_) | Format::FastText | Format::Text => Ok(Box::new(content)),
    }
}

/// What a Hadoop task can read.
const LINES_IN_TASKS: &str =
    "expected json, polarity-csv, fasttext or text; convert the table into JSON lines";

fn is_standard_input(source: &Source) -> bool {
    source.is_stream() && source.name == STANDARD_INPUT
}

/// Reports the counts of a Hadoop task, which is one of many. Fails if too many of its lines are bad, as in the mapper.
fn end_task(all: &Counts, encoding: &'static str) -> Result<()> {
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
    counts.judge(Limits::default(), Part::Task, encoding).map_err(|found| match found {
        TooMany::Bad(found) => refused(&found, "check --format and --text-field").into(),
        TooMany::InvalidUtf8(found) => {
            refused(&found, "pass the encoding of the lines with --encoding").into()
        }
    })
}

/// The sources of these inputs, in their order; standard input if there are none. A model among them is refused.
pub fn sources(inputs: &[Location], model: &Location, s3: &S3Options) -> Result<Vec<Source>> {
    check_no_model(inputs, model)?;
    let mut names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
    if names.is_empty() {
        names.push("-".to_owned());
    }
    Ok(reading::find(&names, s3)?)
}

/// Refuses a model among the inputs of another one.
pub fn check_no_model(inputs: &[Location], model: &Location) -> Result<()> {
    for input in inputs {
        if let Location::Local(path) = input
            && is_model(path)
        {
            let message = format!(
                "found two models, {model} and {}, expected one model and files of texts; omit one of the models",
                path.display()
            );
            return Err(Failed::new(Exit::Usage, message).into());
        }
    }
    Ok(())
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

/// How the inputs of a command are read. Ratings and labels are not read.
#[derive(Clone, Debug)]
pub struct Formats {
    flags: LineArguments,
    trained: Trained,
    fasttext: FastTextLine,
}

impl Formats {
    /// The formats by flags, and by the training folder in which the model is.
    pub fn of(flags: &LineArguments, model: &Path, fasttext: FastTextLine) -> Result<Self> {
        let formats = Self { flags: flags.clone(), trained: Trained::of(model), fasttext };
        // Flags that contradict each other are refused before the model is read.
        if flags.format.is_some() {
            formats.options("", false)?;
        }
        Ok(formats)
    }

    /// How an input of this name is read.
    fn options(&self, name: &str, is_table: bool) -> Result<LineOptions> {
        let LineArguments { format, preset, text_field, with_title, delimiter, quote, encoding, .. } =
            self.flags.clone();
        let line_bytes_max = usize::try_from(self.flags.line_bytes_max).unwrap_or(usize::MAX);
        let asked =
            FormatOptions { preset, text_field, with_title, delimiter, quote, ..FormatOptions::default() };
        let (by_training, of_training) = self.trained.format(Unknown {
            name,
            asked: None,
            has_fields: asked.preset.is_some() || asked.text_field.is_some(),
            is_table,
            is_asking: name == STANDARD_INPUT,
        });
        let encoding = encoding.or(of_training).unwrap_or(UTF_8);
        let name = match format {
            Some(LineFormat::Review(FormatName::Json)) | None if is_table => Some(FormatName::Json),
            Some(_) if is_table => {
                let found = "found a Parquet or Arrow file, whose columns are read; omit --format";
                return Err(Failed::new(Exit::Usage, format!("{name}: {found}")).into());
            }
            Some(LineFormat::Text) => None,
            Some(LineFormat::Review(name)) => Some(name),
            None => Some(by_training),
        };
        let format = match name {
            None => {
                asked.nothing_for("text")?;
                Format::Text
            }
            Some(FormatName::FastText) if self.fasttext == FastTextLine::Words => {
                asked.nothing_for("fasttext")?;
                Format::FastText
            }
            Some(name) => {
                let of_texts =
                    |setting: &str| self.trained.without_ratings(setting).filter(|_| setting != "unrated");
                let format = FormatOptions { name: Some(name), ..asked }.or_of_training(of_texts).format()?;
                let is_table = is_table || format.is_delimited();
                Format::Review(if is_table { format.without_ratings() } else { format })
            }
        };
        Ok(LineOptions { file: None, split_start: None, format, encoding, line_bytes_max })
    }
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

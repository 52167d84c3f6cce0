//! Converts raw review lines into records and counts every line.
//!
//! A line that is not a review is counted by the first reason that applies. The first few bad lines of each
//! reason are reported with their position. With `--rejects`, bad lines are written instead of records. A bad
//! line does not stop the mapper. Too many of them make it fail at the end, with the probable cause.

pub mod arguments;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use corpus::cause;
use corpus::classes::FoundValues;
use corpus::clean::Rules;
use corpus::cleaned::{CleanedReviews, Review};
use corpus::encoding::{Encoding, Invalid, LineDecoder};
use corpus::format::{Format, FormatName};
use corpus::json_array::{FirstLine, is_array};
use corpus::judgement::{Refusal, Seen, TOLD, WithoutReview, invalid_utf8, judge, judge_lines, other_labels};
use corpus::ledger::{Limits, MapperCounts, NoReview, Part};
use corpus::lines::{Line, LineContent, LineReader};
use corpus::record::{RECORD_BYTES_MAX, Votes, write_record};
use corpus::rejects::{Content, Position, write_reject};
use input::ContentError;
use program::exit::{Exit, Failed};
use program::hadoop::{Runner, report_counters};
use program::place::local_path;
use program::system::Failure;

/// Approximate size of one write.
const WRITE_BYTES: usize = 256 << 10;
/// Options of a mapper.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format of lines.
    pub format: Format,
    /// The rules of cleaning.
    pub rules: Rules,
    /// Maximum length of a line.
    pub line_bytes_max: usize,
    /// The encoding of lines.
    pub encoding: &'static Encoding,
    /// Limits of bad lines and of lines that are not in their encoding.
    pub limits: Limits,
    /// The kind of output.
    pub output: Output,
    /// What runs the mapper.
    pub runner: Runner,
}

/// The output of a mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A record for each review.
    Records,
    /// A JSON object for each bad line.
    Rejects,
}

/// The source of lines, as named in messages and rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSplit {
    /// Name of the file; `-` is standard input.
    pub file: String,
    /// Offset of the mapper's input split in the file, if it has one.
    pub split_start: Option<u64>,
}

/// What an input has been up to a line.
enum Start {
    /// Nothing or blank lines.
    Blank,
    /// A line that is a whole array. It is a line only if other lines follow.
    Array(FirstLine),
    /// Lines.
    Lines,
}

/// The error for an input that could not be read.
pub fn unreadable(file: &str, error: &io::Error, runner: Runner) -> Failed {
    let exit = match input::content_error(error) {
        Some(ContentError::Packed { packed, .. }) if packed.table.is_some() => {
            return table(file, packed.name, runner);
        }
        Some(_) => Exit::BadInput,
        None if error.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
        None => Exit::Io,
    };
    Failed::new(exit, format!("{file}: {}", Failure::reading("read lines", error)))
}

/// The error for an input that is not lines that can be split between tasks.
fn table(input: &str, found: &str, runner: Runner) -> Failed {
    let remedy = "pass the whole file to sentimill, which reads it";
    Failed::new(
        refused_by(runner, Exit::BadInput),
        format!("{input}: found {found}, expected lines; {remedy}"),
    )
}

/// The exit code for what a user must change: in a job, it is a setting.
fn refused_by(runner: Runner, of_user: Exit) -> Exit {
    match runner {
        Runner::User => of_user,
        Runner::Hadoop => Exit::Settings,
    }
}

/// A closed pipe is a failure too, because records are lost.
fn unwritten(error: &io::Error) -> Failed {
    let why = Failure::writing("write records", error, "redirect it to another disk");
    Failed::new(Exit::Io, format!("standard output: {why}"))
}

fn unlogged(error: &io::Error) -> Failed {
    let why = Failure::writing("write messages", error, "redirect it to another disk");
    Failed::new(Exit::Io, format!("standard error: {why}"))
}

/// Refuses formats that cannot be split at lines: Hadoop shows the header of a file to one task, and quotes may contain
/// line breaks. Refuses UTF-16, in which the byte LF may be a part of another character.
pub fn check_format(format: &Format, encoding: &'static Encoding, runner: Runner) -> Result<(), Failed> {
    if input::is_utf16(encoding) {
        let encoding = encoding.name();
        let expected = "the mapper reads lines that end at the byte 0A, as Hadoop splits them";
        let remedy =
            format!("pass the files to sentimill, or convert them with iconv -f {encoding} -t UTF-8");
        let why = format!("--encoding {encoding}: {expected}; {remedy}");
        return Err(Failed::new(refused_by(runner, Exit::Usage), why));
    }
    match format.name() {
        format @ (FormatName::Csv | FormatName::Tsv) => {
            let expected = "the mapper reads lines, not tables with a header";
            let why = format!("--format {format}: {expected}; pass the files to sentimill --format {format}");
            Err(Failed::new(refused_by(runner, Exit::Usage), why))
        }
        FormatName::Json | FormatName::PolarityCsv | FormatName::FastText => Ok(()),
    }
}

/// With [`Rules::Punctuation`], a space follows each symbol, and a record must not exceed the limit of its readers.
const LINE_BYTES_OF_SYMBOLS: u64 = RECORD_BYTES_MAX as u64 / 2;

/// Refuses lines whose records could be too long.
pub fn check_line_bytes(line_bytes_max: u64, rules: Rules, runner: Runner) -> Result<(), Failed> {
    if rules == Rules::Letters || line_bytes_max <= LINE_BYTES_OF_SYMBOLS {
        return Ok(());
    }
    let expected = format!("at most {LINE_BYTES_OF_SYMBOLS} bytes with --punctuation");
    let why = format!("--line-bytes-max {line_bytes_max}: expected {expected}; pass a smaller size");
    Err(Failed::new(refused_by(runner, Exit::Usage), why))
}

/// Refuses URLs among the files to read.
pub fn check_inputs(inputs: &[PathBuf]) -> Result<(), Failed> {
    let Some(url) = inputs.iter().find(|input| local_path((*input).clone()).is_err()) else { return Ok(()) };
    let url = url.display().to_string();
    let remedy = match url.starts_with("file:") {
        true => "pass the path after file://",
        false => {
            "pass the URL to sentimill --input, which reads S3 and https, or to Hadoop as -input, which feeds the mapper"
        }
    };
    let why = format!("{url}: the mapper reads local files and standard input; {remedy}");
    Err(Failed::new(Exit::Usage, why))
}

/// Reads lines, one input after the other. Writes to `output` either a record for each review or the bad lines, and
/// writes counters and notices to `log`.
#[derive(Debug)]
pub struct Mapper<W, L> {
    options: Options,
    output: W,
    log: L,
    reviews: CleanedReviews,
    counts: MapperCounts,
    without_review: WithoutReview,
    /// The lines that are not in the encoding that was named.
    invalid: Invalid,
    /// The beginning of the first line.
    beginning: Vec<u8>,
    /// Output that has not been written yet.
    written: Vec<u8>,
}

impl<W: Write, L: Write> Mapper<W, L> {
    /// Creates a mapper.
    pub fn new(output: W, log: L, options: Options) -> Self {
        Self {
            reviews: CleanedReviews::of(options.format.clone(), options.rules),
            options,
            output,
            log,
            counts: MapperCounts::default(),
            without_review: WithoutReview::default(),
            invalid: Invalid::default(),
            beginning: Vec::new(),
            written: Vec::with_capacity(2 * WRITE_BYTES),
        }
    }

    /// Reads all lines of an input.
    pub fn read(&mut self, input: impl Read, split: &InputSplit) -> Result<(), Failed> {
        let before = self.counts;
        let mut lines = LineReader::new(input, self.options.line_bytes_max);
        let runner = self.options.runner;
        let unreadable = |error| unreadable(&split.file, &error, runner);
        let mut start = match split.split_start {
            None | Some(0) if self.options.format.is_json() => Start::Blank,
            _ => Start::Lines,
        };
        let mut decoder = LineDecoder::of(self.options.encoding, self.options.line_bytes_max);
        // Apart from the other state, because it holds the text that is being written.
        let idle = CleanedReviews::of(self.options.format.clone(), self.options.rules);
        let mut reviews = std::mem::replace(&mut self.reviews, idle);
        let (has_list, mut n_lines) = (self.options.format.has_list(), 0);
        while let Some(line) = lines.next_line().map_err(unreadable)? {
            let line = match &mut decoder {
                None => line,
                Some(decoder) => decoder.decode(line),
            };
            if !matches!(start, Start::Lines) {
                start = self.check_array(start, line.content, split)?;
            }
            if self.counts.lines == 0 {
                self.beginning.extend_from_slice(cause::beginning(line.content));
            }
            n_lines += 1;
            if has_list {
                reviews.each(line, |element, read| self.take(read, element, n_lines, split))?;
            } else {
                self.take(reviews.read(line.content), line, n_lines, split)?;
            }
            if self.written.len() >= WRITE_BYTES {
                self.output.write_all(&self.written).map_err(|error| unwritten(&error))?;
                self.written.clear();
            }
        }
        self.reviews = reviews;
        if matches!(start, Start::Array(_)) {
            return Err(self.array(split));
        }
        decoder.iter().for_each(|decoder| self.invalid.merge(&decoder.invalid));
        let has_lines = self.counts.filled_lines() > before.filled_lines();
        if self.counts.lines == before.lines {
            self.without_review.add_empty(&split.file);
        } else if has_lines && self.counts.reviews == before.reviews {
            self.without_review.add(&split.file);
        }
        Ok(())
    }

    /// Counts a line, or an element of its list, and writes its record.
    #[inline]
    fn take(
        &mut self,
        read: Result<Review<'_>, NoReview>,
        line: Line<'_>,
        number: u64,
        split: &InputSplit,
    ) -> Result<(), Failed> {
        self.counts.lines += 1;
        match read {
            Ok(Review { text, rating, .. }) => {
                self.counts.reviews += 1;
                if self.options.output == Output::Records {
                    write_record(&mut self.written, text, Votes::one(rating.stars()));
                }
                Ok(())
            }
            Err(reason) => self.refuse(reason, line, number, split),
        }
    }

    /// Refuses an array, whose elements are not lines. A first line that is a whole array is one bad line if other lines
    /// follow it.
    fn check_array(&self, start: Start, line: LineContent<'_>, split: &InputSplit) -> Result<Start, Failed> {
        let LineContent::Bytes(bytes) = line else { return Ok(Start::Lines) };
        if line.is_blank() {
            return Ok(start);
        }
        let mut first = match start {
            Start::Array(first) => first,
            _ if is_array(bytes) => FirstLine::default(),
            _ => return Ok(Start::Lines),
        };
        match first.is_of_array(bytes).or_else(|| first.is_of_array(b"\n")) {
            None => Ok(Start::Array(first)),
            Some(false) => Ok(Start::Lines),
            Some(true) => Err(self.array(split)),
        }
    }

    fn array(&self, split: &InputSplit) -> Failed {
        table(&split.file, "a JSON array", self.options.runner)
    }

    /// Writes the remaining output, and accepts or refuses the input.
    pub fn finish(mut self) -> Result<MapperCounts, Failed> {
        let written = self.output.write_all(&self.written).and_then(|()| self.output.flush());
        written.map_err(|error| unwritten(&error))?;
        self.invalid.merge(self.reviews.parser().invalid());
        self.counts.invalid_utf8 = self.invalid.lines;
        match self.options.runner {
            Runner::User => self.judge_all()?,
            Runner::Hadoop => self.judge_task()?,
        }
        Ok(self.counts)
    }

    /// Prints the counts of all lines for a user, and accepts or refuses the input.
    fn judge_all(&mut self) -> Result<(), Failed> {
        let counts = self.counts;
        let unrated = self.reviews.parser().found_values();
        let packed = input::remedy(&self.beginning);
        let judged =
            judge(&counts, &self.seen(&unrated, packed.as_deref()), self.options.limits, || self.cause());
        let (invalid, dropped) = match &judged {
            Ok(()) => (invalid_utf8(&counts, self.options.encoding), unrated.described(&self.options.format)),
            Err(_) => (None, None),
        };
        let notices = self.without_review.notices(&counts).into_iter().chain(invalid);
        let notices =
            notices.chain(dropped).chain(other_labels(self.reviews.parser().other_labels(), &counts));
        for notice in notices.chain([counts.to_string()]) {
            self.say(&notice)?;
        }
        match judged {
            // With `--rejects`, an input without any review is not an error, because the bad lines were
            // requested.
            Err(Refusal::NoReview { .. } | Refusal::FromZero { .. })
                if self.options.output == Output::Rejects =>
            {
                Ok(())
            }
            judged => Ok(judged?),
        }
    }

    /// Reports the counts of a task to Hadoop and its log, and accepts or refuses the input.
    fn judge_task(&mut self) -> Result<(), Failed> {
        let counts = self.counts;
        let reported = report_counters(&mut self.log, MapperCounts::GROUP, &counts.counters());
        reported.map_err(|error| unlogged(&error))?;
        if let Some(notice) = other_labels(self.reviews.parser().other_labels(), &counts) {
            self.say(&notice)?;
        }
        let (unrated, packed) = (self.reviews.parser().found_values(), input::remedy(&self.beginning));
        let seen = self.seen(&unrated, packed.as_deref());
        judge_lines(&counts, &seen, self.options.limits, Part::Task, || self.cause())?;
        let invalid = invalid_utf8(&counts, self.options.encoding);
        // Too few lines to fail, but probably a mistake.
        let mistake = (counts.reviews == 0 && counts.bad() > 0)
            .then(|| format!("no line is a review; {}", seen.cause(&|| self.cause())));
        invalid.into_iter().chain(mistake).try_for_each(|notice| self.say(&notice))
    }

    /// The probable cause of many bad lines, and the remedy.
    fn cause(&self) -> String {
        let classes = self.reviews.parser().found_values();
        let listing = "print them with mapper --rejects";
        let program = cause::Program { listing, of_tables: " to sentimill" };
        cause::likely(&self.counts, &self.beginning, &self.options.format, &classes, program)
    }

    fn seen<'a>(&'a self, values: &'a FoundValues, packed: Option<&'a str>) -> Seen<'a> {
        Seen { values, invalid: &self.invalid, encoding: self.options.encoding, packed }
    }

    fn say(&mut self, notice: &str) -> Result<(), Failed> {
        self.log.write_all(format!("mapper: {notice}\n").as_bytes()).map_err(|error| unlogged(&error))
    }

    #[cold]
    fn refuse(
        &mut self,
        reason: NoReview,
        line: Line<'_>,
        number: u64,
        split: &InputSplit,
    ) -> Result<(), Failed> {
        let so_far = self.counts.count(reason);
        if !reason.is_bad() {
            return Ok(());
        }
        if self.options.output == Output::Rejects {
            let position = Position::Offset { split_start: split.split_start, offset: line.offset };
            write_reject(&mut self.written, reason, &split.file, position, Content::Line(line.content));
        }
        if so_far <= TOLD { self.tell(reason, so_far, (number, line.offset), split) } else { Ok(()) }
    }

    /// Reports the position of one of the first few bad lines. The log does not contain the line itself, because
    /// people without access to reviews may read logs.
    fn tell(
        &mut self,
        reason: NoReview,
        so_far: u64,
        (number, offset): (u64, u64),
        split: &InputSplit,
    ) -> Result<(), Failed> {
        let more = if so_far == TOLD { "; further lines with this reason are only counted" } else { "" };
        // In a Hadoop task, the number of lines that precede its input split is unknown.
        let line = match self.options.runner {
            Runner::User => format!(":{number}"),
            Runner::Hadoop => String::new(),
        };
        self.say(&format!("{}{line}: {} (byte {offset}){more}", split.file, reason.counter()))
    }
}

#[cfg(test)]
mod tests;

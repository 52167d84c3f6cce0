//! Converts raw review lines into records and counts every line.
//!
//! A line that is not a review is counted by the first reason that applies. The first few bad lines of each
//! reason are reported with their position. With `--rejects`, bad lines are written instead of records. A bad
//! line does not stop the mapper. Too many of them make it fail at the end, with the probable cause.

pub mod arguments;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use corpus::cause;
use corpus::classes::UnratedClasses;
use corpus::cleaned::CleanedReviews;
use corpus::encoding::{Encoding, Invalid, LineDecoder, UTF_16BE, UTF_16LE};
use corpus::format::{Format, FormatName};
use corpus::json_array::{FirstLine, is_array};
use corpus::judgement::{Refusal, Seen, TOLD, WithoutReview, invalid_utf8, judge, judge_lines, other_labels};
use corpus::ledger::{Fate, Limits, MapperCounts, Part};
use corpus::lines::{Line, LineContent, LineReader};
use corpus::record::{Votes, write_record};
use corpus::rejects::{Content, Position, write_reject};
use corpus::review::Rating;
use hadoop::{Runner, report_counters};
use input::Fault;
use program::exit::Exit;
use program::place::local_path;
use program::system::Failure;
use thiserror::Error;

/// Approximate size of one write.
const WRITE_BYTES: usize = 256 << 10;
/// Options of a mapper.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format of lines.
    pub format: Format,
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

/// Why a mapper failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The input could not be read.
    #[error("{file}: {}", Failure::reading("read lines", source))]
    Read {
        /// Name of the input.
        file: String,
        /// The error.
        source: io::Error,
    },
    /// The output could not be written. A closed pipe is a failure too, because records are lost.
    #[error("standard output: {}", Failure::writing("write records", .0, "redirect it to another disk"))]
    Write(#[source] io::Error),
    /// Standard error could not be written.
    #[error("standard error: {}", Failure::writing("write messages", .0, "redirect it to another disk"))]
    Log(#[source] io::Error),
    /// A URL was passed where a local file is expected.
    #[error(
        "{url}: the mapper reads local files and standard input; {}",
        match url.starts_with("file:") {
            true => "pass the path after file://",
            false => "pass the URL to sentimill --input, which reads S3 and https, or to Hadoop as -input, which feeds the mapper",
        }
    )]
    NotLocal {
        /// The URL as passed.
        url: String,
    },
    /// Too many lines are bad, or none is a review.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The format is not lines that can be split between tasks.
    #[error(
        "--format {format}: the mapper reads lines, not tables with a header; pass the files to sentimill --format {format}"
    )]
    TableFormat {
        /// The format.
        format: FormatName,
        /// What runs the mapper.
        runner: Runner,
    },
    /// The encoding has lines that cannot be split between tasks.
    #[error(
        "--encoding {encoding}: the mapper reads lines that end at the byte 0A, as Hadoop splits them; pass the files to sentimill, or convert them with iconv -f {encoding} -t UTF-8"
    )]
    WideEncoding {
        /// The encoding.
        encoding: &'static str,
        /// What runs the mapper.
        runner: Runner,
    },
    /// The input is not lines that can be split between tasks.
    #[error("{input}: found {found}, expected lines; pass the whole file to sentimill, which reads it")]
    Table {
        /// Name of the input.
        input: String,
        /// What was found.
        found: &'static str,
        /// What runs the mapper.
        runner: Runner,
    },
}

impl Error {
    /// The error for an input that could not be read.
    pub fn reading(file: &str, source: io::Error, runner: Runner) -> Self {
        let found = match input::fault(&source) {
            Some(Fault::Packed { packed, .. }) if packed.table.is_some() => packed.name,
            _ => return Self::Read { file: file.to_owned(), source },
        };
        Self::Table { input: file.to_owned(), found, runner }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::TableFormat { runner: Runner::Hadoop, .. }
            | Self::WideEncoding { runner: Runner::Hadoop, .. }
            | Self::Table { runner: Runner::Hadoop, .. } => Exit::Settings,
            Self::TableFormat { .. } | Self::WideEncoding { .. } => Exit::Usage,
            Self::Table { .. } => Exit::BadInput,
            Self::Read { source, .. } if input::fault(source).is_some() => Exit::BadInput,
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::Read { .. } | Self::Write(_) | Self::Log(_) => Exit::Io,
            Self::Refused(_) => Exit::BadInput,
            Self::NotLocal { .. } => Exit::Usage,
        }
    }
}

/// Refuses formats that cannot be split at lines: Hadoop shows the header of a file to one task, and quotes may contain
/// line breaks. Refuses UTF-16, in which the byte LF may be a part of another character.
pub fn check_format(format: &Format, encoding: &'static Encoding, runner: Runner) -> Result<(), Error> {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        return Err(Error::WideEncoding { encoding: encoding.name(), runner });
    }
    match format.name() {
        format @ (FormatName::Csv | FormatName::Tsv) => Err(Error::TableFormat { format, runner }),
        FormatName::Json | FormatName::PolarityCsv | FormatName::FastText => Ok(()),
    }
}

/// Refuses URLs among the files to read.
pub fn check_inputs(inputs: &[PathBuf]) -> Result<(), Error> {
    match inputs.iter().find(|input| local_path((*input).clone()).is_err()) {
        None => Ok(()),
        Some(url) => Err(Error::NotLocal { url: url.display().to_string() }),
    }
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
            reviews: CleanedReviews::of(options.format.clone()),
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
    pub fn read(&mut self, input: impl Read, split: &InputSplit) -> Result<(), Error> {
        let before = self.counts;
        let mut lines = LineReader::new(input, self.options.line_bytes_max);
        let unreadable = |source| Error::Read { file: split.file.clone(), source };
        let mut start = match split.split_start {
            None | Some(0) if self.options.format.is_json() => Start::Blank,
            _ => Start::Lines,
        };
        let mut decoder = LineDecoder::of(self.options.encoding, self.options.line_bytes_max);
        // Apart from the other state, because it holds the text that is being written.
        let idle = CleanedReviews::of(self.options.format.clone());
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
                self.output.write_all(&self.written).map_err(Error::Write)?;
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
        read: Result<(&[u8], Rating), Fate>,
        line: Line<'_>,
        number: u64,
        split: &InputSplit,
    ) -> Result<(), Error> {
        self.counts.lines += 1;
        match read {
            Ok((text, rating)) => {
                self.counts.reviews += 1;
                if self.options.output == Output::Records {
                    write_record(&mut self.written, text, Votes::one(rating.stars()));
                }
                Ok(())
            }
            Err(fate) => self.refuse(fate, line, number, split),
        }
    }

    /// Refuses an array, whose elements are not lines. A first line that is a whole array is one bad line if other lines
    /// follow it.
    fn check_array(&self, start: Start, line: LineContent<'_>, split: &InputSplit) -> Result<Start, Error> {
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

    fn array(&self, split: &InputSplit) -> Error {
        Error::Table { input: split.file.clone(), found: "a JSON array", runner: self.options.runner }
    }

    /// Writes the remaining output, and accepts or refuses the input.
    pub fn finish(mut self) -> Result<MapperCounts, Error> {
        self.output.write_all(&self.written).and_then(|()| self.output.flush()).map_err(Error::Write)?;
        self.invalid.merge(self.reviews.invalid());
        self.counts.invalid_utf8 = self.invalid.lines;
        match self.options.runner {
            Runner::User => self.judge_all()?,
            Runner::Hadoop => self.judge_task()?,
        }
        Ok(self.counts)
    }

    /// Prints the counts of all lines for a user, and accepts or refuses the input.
    fn judge_all(&mut self) -> Result<(), Error> {
        let counts = self.counts;
        let unrated = self.reviews.unrated_classes();
        let packed = input::remedy(&self.beginning);
        let judged =
            judge(&counts, &self.seen(&unrated, packed.as_deref()), self.options.limits, || self.cause());
        let dropped = if judged.is_ok() { unrated.described(&self.options.format) } else { None };
        let invalid = invalid_utf8(&counts, self.options.encoding);
        let notices = self.without_review.notices(&counts).into_iter().chain(invalid);
        let notices = notices.chain(dropped).chain(other_labels(self.reviews.other_labels(), &counts));
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
    fn judge_task(&mut self) -> Result<(), Error> {
        let counts = self.counts;
        report_counters(&mut self.log, MapperCounts::GROUP, &counts.counters()).map_err(Error::Log)?;
        let other_labels = other_labels(self.reviews.other_labels(), &counts);
        for notice in invalid_utf8(&counts, self.options.encoding).into_iter().chain(other_labels) {
            self.say(&notice)?;
        }
        let (unrated, packed) = (self.reviews.unrated_classes(), input::remedy(&self.beginning));
        let seen = self.seen(&unrated, packed.as_deref());
        judge_lines(&counts, &seen, self.options.limits, Part::Task, || self.cause())?;
        // Too few lines to fail, but probably a mistake.
        if counts.reviews == 0 && counts.bad() > 0 {
            let notice = format!("no line is a review; {}", seen.cause(&|| self.cause()));
            self.say(&notice)?;
        }
        Ok(())
    }

    /// The probable cause of many bad lines, and the remedy.
    fn cause(&self) -> String {
        let classes = self.reviews.unrated_classes();
        let listing = "print them with mapper --rejects";
        let program = cause::Program { listing, of_tables: " to sentimill" };
        cause::likely(&self.counts, &self.beginning, &self.options.format, &classes, program)
    }

    fn seen<'a>(&'a self, values: &'a UnratedClasses, packed: Option<&'a str>) -> Seen<'a> {
        Seen { values, invalid: &self.invalid, encoding: self.options.encoding, packed }
    }

    fn say(&mut self, notice: &str) -> Result<(), Error> {
        self.log.write_all(format!("mapper: {notice}\n").as_bytes()).map_err(Error::Log)
    }

    #[cold]
    fn refuse(&mut self, fate: Fate, line: Line<'_>, number: u64, split: &InputSplit) -> Result<(), Error> {
        let so_far = self.counts.count(fate);
        if !fate.is_bad() {
            return Ok(());
        }
        if self.options.output == Output::Rejects {
            let position = Position::Offset { split_start: split.split_start, offset: line.offset };
            write_reject(&mut self.written, fate, &split.file, position, Content::Line(line.content));
        }
        if so_far <= TOLD { self.tell(fate, so_far, (number, line.offset), split) } else { Ok(()) }
    }

    /// Reports the position of one of the first few bad lines. The log does not contain the line itself, because
    /// people without access to reviews may read logs.
    fn tell(
        &mut self,
        fate: Fate,
        so_far: u64,
        (number, offset): (u64, u64),
        split: &InputSplit,
    ) -> Result<(), Error> {
        let more = if so_far == TOLD { "; further lines with this reason are only counted" } else { "" };
        // In a Hadoop task, the number of lines that precede its input split is unknown.
        let line = match self.options.runner {
            Runner::User => format!(":{number}"),
            Runner::Hadoop => String::new(),
        };
        self.say(&format!("{}{line}: {} (byte {offset}){more}", split.file, fate.counter()))
    }
}

#[cfg(test)]
mod tests {
    use corpus::encoding::UTF_8;
    use corpus::format::Asked;

    use super::*;

    fn options() -> Options {
        Options {
            format: Format::default(),
            line_bytes_max: 4 << 20,
            encoding: UTF_8,
            limits: Limits::default(),
            output: Output::Records,
            runner: Runner::User,
        }
    }

    fn mapped(input: &str) -> (Result<MapperCounts, Error>, String, String) {
        mapped_by(options(), input.as_bytes())
    }

    fn mapped_by(options: Options, input: &[u8]) -> (Result<MapperCounts, Error>, String, String) {
        let (mut output, mut log) = (Vec::new(), Vec::new());
        let mut mapper = Mapper::new(&mut output, &mut log, options);
        let split = InputSplit { file: "-".to_owned(), split_start: None };
        let counts = mapper.read(input, &split).and_then(|()| mapper.finish());
        (counts, String::from_utf8(output).unwrap(), String::from_utf8(log).unwrap())
    }

    #[test]
    fn every_line_is_counted_once_and_reviews_become_records() {
        let input = concat!(
            "{\"reviewText\": \"Great <b>fit</b> &amp; feel!\", \"overall\": 5.0}\n",
            "\n \t\n",
            "{\"overall\": 5.0}\n",
            "{\"reviewText\": \"ok\", \"overall\": 6}\n",
            "{\"reviewText\": \"5/5 :)\", \"overall\": 5}\n",
            "not json\r\n",
            "{'reviewText': \"it's OLD\", 'overall': 2.0}\n",
        );
        let (counts, output, log) = mapped(input);
        let expected = MapperCounts {
            lines: 8,
            blank: 2,
            line_too_long: 0,
            bad_line: 1,
            no_text: 1,
            bad_rating: 1,
            unrated: 0,
            empty_text: 1,
            reviews: 2,
            invalid_utf8: 0,
            table_lines: 0,
        };
        assert_eq!(counts.unwrap(), expected);
        assert_eq!(output, "great fit feel\t0,0,0,0,1\nit's old\t0,1,0,0,0\n");
        assert!(log.contains("mapper: -:4: no_text (byte 67)\n"), "{log}");
        let ledger =
            "mapper: 8 lines = 2 blank + 1 bad_line + 1 no_text + 1 bad_rating + 1 empty_text + 2 reviews\n";
        assert!(log.ends_with(ledger), "{log}");
        assert!(!log.contains("reporter:"), "{log}");
        assert!(!log.contains("not json"), "{log}");
    }

    #[test]
    fn three_bad_lines_per_reason_are_reported() {
        let (_, _, log) = mapped(&"x\n".repeat(10));
        assert_eq!(log.matches(": bad_line (byte").count(), 3);
        assert!(
            log.contains("mapper: -:3: bad_line (byte 4); further lines with this reason are only counted\n"),
            "{log}"
        );
    }

    #[test]
    fn too_many_bad_lines_fail_with_a_probable_cause() {
        let (few, _, _) = mapped(&format!("{}{}", GOOD.repeat(951), "{\"overall\": 4}\n".repeat(50)));
        assert_eq!(few.unwrap().no_text, 50);
        let (many, output, _) = mapped(&format!("{}{}", GOOD.repeat(949), "{\"overall\": 4}\n".repeat(51)));
        let error = many.unwrap_err();
        assert_eq!(error.exit(), Exit::BadInput);
        let message = error.to_string();
        assert!(
            message.starts_with("51 of 1000 lines are bad (no_text 51), expected at most 0.05"),
            "{message}"
        );
        assert!(
            message.ends_with("; print them with mapper --rejects, or raise --bad-lines-max"),
            "{message}"
        );
        assert_eq!(output.lines().count(), 949);
    }

    const GOOD: &str = "{\"reviewText\": \"ok\", \"overall\": 4}\n";

    #[test]
    fn the_share_of_bad_lines_is_checked_from_20_bad_lines_on() {
        let input = |good, bad| format!("{}{}", GOOD.repeat(good), "x\n".repeat(bad));
        assert_eq!(mapped(&input(1, 19)).0.unwrap().bad(), 19);
        let message = mapped(&input(1, 20)).0.unwrap_err().to_string();
        assert!(message.starts_with("20 of 21 lines are bad (bad_line 20)"), "{message}");
        assert_eq!(mapped(&input(380, 20)).0.unwrap().bad(), 20);
    }

    #[test]
    fn a_limit_of_zero_accepts_no_bad_line() {
        let none = Options {
            limits: Limits { bad_lines_max: "0".parse().unwrap(), ..Limits::default() },
            ..options()
        };
        for runner in [Runner::User, Runner::Hadoop] {
            let strict = Options { runner, ..none.clone() };
            let input = format!("{}x\n", GOOD.repeat(20));
            let message = mapped_by(strict.clone(), input.as_bytes()).0.unwrap_err().to_string();
            assert!(
                message.starts_with("1 of 21 lines are bad (bad_line 1), expected at most 0 of them; "),
                "{message}"
            );
            assert_eq!(mapped_by(strict, GOOD.as_bytes()).0.unwrap().reviews, 1);
        }
    }

    #[test]
    fn a_higher_limit_is_advised_only_where_few_lines_are_bad() {
        let message = |good, bad| {
            mapped(&format!("{}{}", GOOD.repeat(good), "x\n".repeat(bad))).0.unwrap_err().to_string()
        };
        let advice = ", or raise --bad-lines-max";
        assert!(message(920, 80).ends_with(advice));
        for (good, bad) in [(800, 200), (400, 600), (0, 1000)] {
            assert!(!message(good, bad).contains("raise"), "{}", message(good, bad));
        }
        assert!(!message(800, 200).contains("most lines"));
    }

    #[test]
    fn a_first_line_that_is_an_array_is_one_bad_line_if_other_lines_follow() {
        for before in ["[{\"a\": 1}]\n", "\n\u{FEFF} [{\"a\": \"]\"}, {}] \r\n \t\n"] {
            let counts = mapped(&format!("{before}{GOOD}[{{}}]\n")).0.unwrap();
            assert_eq!((counts.bad_line, counts.reviews), (2, 1), "{before:?}");
        }
        for array in ["[{}]", "[{}]\n \n", "[{}]\n[{}]\n", "[{}] {}\n{}\n", "[{},\n{}]\n{}\n"] {
            assert!(matches!(mapped(array).0, Err(Error::Table { .. })), "{array:?}");
        }
    }

    #[test]
    fn input_without_a_review_is_refused() {
        for (input, expected) in [
            (
                "",
                "found no review and no line, expected at least one; check that the program that writes it succeeded",
            ),
            (
                "\n{\"reviewText\": \"5/5\", \"overall\": 4}\n",
                "found no review (2 lines = 1 blank + 1 empty_text + 0 reviews), expected at least one; check that it \
                 is the right input",
            ),
            (
                "x\n",
                "found no review (1 lines = 1 bad_line + 0 reviews), expected at least one; most lines are not \
                 JSON objects; write one object per line, or pass --format polarity-csv for lines of class,text, or \
                 --format csv to sentimill for a table with a header",
            ),
        ] {
            let error = mapped(input).0.unwrap_err();
            assert_eq!((error.to_string().as_str(), error.exit()), (expected, Exit::BadInput));
        }
        let rejects = mapped_by(Options { output: Output::Rejects, ..options() }, b"x\n");
        assert_eq!(rejects.0.unwrap().bad_line, 1);
    }

    #[test]
    fn each_element_of_a_list_is_counted_as_a_line_and_unrated_ones_apart() {
        let asked = Asked {
            text_field: "reviews[].text".parse().ok(),
            rating_field: "reviews[].stars".parse().ok(),
            unrated: "null,0".parse().ok(),
            ..Asked::default()
        };
        let list = Options { format: asked.format().unwrap(), ..options() };
        let input = b"{\"reviews\": [{\"text\": \"a\", \"stars\": 5}, {\"text\": \"b\"}, {\"text\": \"c\", \"stars\": 0}, 7]}\n\
            {\"reviews\": []}\n\n{'reviews': [{'text': 'd', 'stars': 6}]}\n";
        let (counts, output, log) = mapped_by(list.clone(), input);
        assert_eq!(output, "a\t0,0,0,0,1\n");
        let ledger = "7 lines = 1 blank + 2 no_text + 1 bad_rating + 2 unrated + 1 reviews";
        assert_eq!(counts.unwrap().to_string(), ledger);
        assert!(log.contains("mapper: -:1: no_text (byte 82)\nmapper: -:2: no_text (byte 86)\n"), "{log}");
        let (_, rejects, _) = mapped_by(Options { output: Output::Rejects, ..list.clone() }, input);
        let expected = [
            r#"{"reason":"no_text","file":"-","offset":82,"line":"7"}"#,
            r#"{"reason":"no_text","file":"-","offset":86,"line":"{\"reviews\": []}"}"#,
            r#"{"reason":"bad_rating","file":"-","offset":116,"line":"{'text': 'd', 'stars': 6}"}"#,
        ];
        assert_eq!(rejects.lines().collect::<Vec<_>>(), expected);
        let (_, _, log) = mapped_by(Options { runner: Runner::Hadoop, ..list }, input);
        assert!(log.contains("reporter:counter:mapper,unrated,2\n"), "{log}");
    }

    #[test]
    fn a_hadoop_task_checks_the_share_only_with_many_lines_and_reports_counters() {
        let task = |input: &str| mapped_by(Options { runner: Runner::Hadoop, ..options() }, input.as_bytes());
        let (counts, _, log) = task(&"x\n".repeat(999));
        assert_eq!(counts.unwrap().bad_line, 999);
        assert!(log.contains("reporter:counter:mapper,bad_line,999\n"), "{log}");
        assert!(log.ends_with("mapper: no line is a review; most lines are not JSON objects; write one object per line, or pass --format polarity-csv for lines of class,text, or --format csv to sentimill for a table with a header\n"), "{log}");
        assert!(task(&"x\n".repeat(1000)).0.is_err());
        assert_eq!(task("").0.unwrap(), MapperCounts::default());
    }

    #[test]
    fn lines_that_are_not_utf8_are_counted_and_reported_once() {
        let input = b"{\"reviewText\": \"a\xff\xfe\", \"overall\": 4}\n\xff\n{\"reviewText\": \"b\", \"overall\": 4}\n";
        let (counts, _, log) = mapped_by(options(), input);
        assert_eq!(counts.unwrap().invalid_utf8, 2);
        let notice = "mapper: invalid_utf8 in 2 of 3 lines, read as spaces; pass the encoding of the input with --encoding\n";
        assert_eq!(log.matches("invalid_utf8").count(), 1, "{log}");
        assert!(log.contains(notice), "{log}");
        let (_, _, log) = mapped_by(Options { runner: Runner::Hadoop, ..options() }, input);
        assert!(log.contains("reporter:counter:mapper,invalid_utf8,2\n") && log.contains(notice), "{log}");
    }

    #[test]
    fn files_without_a_review_are_reported_by_name() {
        let (mut output, mut log) = (Vec::new(), Vec::new());
        let mut mapper = Mapper::new(&mut output, &mut log, options());
        for (file, lines) in
            [("a", "x\n"), ("b", GOOD), ("c", "\n"), ("d", "x\n"), ("e", "x\n"), ("f", "x\n"), ("g", "")]
        {
            mapper.read(lines.as_bytes(), &InputSplit { file: file.to_owned(), split_start: None }).unwrap();
        }
        mapper.finish().unwrap();
        let log = String::from_utf8(log).unwrap();
        let warned: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("mapper: warning: ")).collect();
        let one = |file: &str| format!("{file}: no line is a review; check its format");
        let empty = "g: the file is empty; check that it was written completely".to_owned();
        let expected = [
            one("a"),
            one("d"),
            one("e"),
            "1 more files: no line is a review; check its format".to_owned(),
            empty,
        ];
        assert_eq!(warned, expected);
    }

    #[test]
    fn rejects_contain_exactly_the_bad_lines() {
        let input = b"{\"reviewText\": \"ok\", \"overall\": 4}\n\n\xEF\xBB\xBFno \"json\"\r\na\xFF\n{\"overall\": 4}\n\
            {\"reviewText\": \"ok\"}\n{\"reviewText\": \"5\", \"overall\": 4}\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        let (counts, output, _) =
            mapped_by(Options { output: Output::Rejects, line_bytes_max: 39, ..options() }, input);
        let expected = [
            r#"{"reason":"bad_line","file":"-","offset":36,"line":"no \"json\""}"#,
            r#"{"reason":"bad_line","file":"-","offset":50,"line_base64":"Yf8="}"#,
            r#"{"reason":"no_text","file":"-","offset":53,"line":"{\"overall\": 4}"}"#,
            r#"{"reason":"bad_rating","file":"-","offset":68,"line":"{\"reviewText\": \"ok\"}"}"#,
            r#"{"reason":"line_too_long","file":"-","offset":123,"line_bytes":40}"#,
        ];
        assert_eq!(output.lines().collect::<Vec<_>>(), expected);
        let counts = counts.unwrap();
        assert_eq!((counts.reviews, counts.blank, counts.empty_text, counts.bad()), (1, 1, 1, 5));
        assert_eq!(counts.check(), Ok(()));
    }

    #[test]
    fn inputs_are_read_in_order_each_with_its_own_offsets() {
        let (mut output, mut log) = (Vec::new(), Vec::new());
        let mut mapper = Mapper::new(&mut output, &mut log, options());
        for file in ["a", "b"] {
            let lines = &b"{\"reviewText\": \"ok\", \"overall\": 4}\nx"[..];
            mapper.read(lines, &InputSplit { file: file.to_owned(), split_start: None }).unwrap();
        }
        let counts = mapper.finish().unwrap();
        assert_eq!((counts.lines, counts.bad_line, counts.reviews), (4, 2, 2));
        let log = String::from_utf8(log).unwrap();
        assert!(
            log.starts_with("mapper: a:2: bad_line (byte 35)\nmapper: b:2: bad_line (byte 35)\n"),
            "{log}"
        );
    }
}

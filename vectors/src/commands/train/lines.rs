//! Lines, and rows of a dataset, to cleaned lines, each a sentence.

use std::borrow::Cow;
use std::collections::HashSet;

use corpus::clean::Cleaner;
use corpus::encoding::{Invalid, UTF_8};
use corpus::format::{Format, FormatName, FormatOptions};
use corpus::json_array::is_array;
use corpus::judgement::TOLD;
use corpus::ledger::Share;
use corpus::lines::LINE_BYTES_MAX;
use corpus::review::ReviewParser;
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::FIRST_WORD;
use program::exit::{Exit, Failed};
use program::location::Location;
use reading::{OtherExtension, format_of, of_extension};
use report::whole;
use serde_json::{Map, Value};
use store::S3Options;
use training::arguments::LineFormat;
use training::places;
use training::tell::tell;
use training::texts::TextsError;
use training::{Error, Result};

use crate::arguments::Train;

/// Maximum number of files that are reported.
const FILES_MAX: usize = 1000;
/// The beginning of a label in fastText's format.
const LABEL: &[u8] = b"__label__";
/// The remedy for a JSON array.
const OF_ARRAY: &str =
    "write one object per line with jq -c '.[]' FILE > NEW.json, and pass NEW.json with --format json";

/// Whether this is the name of a table, whose separators and other columns would be trained on as words.
fn is_table(place: &str) -> bool {
    of_extension(place).is_some_and(FormatName::is_delimited)
}

/// The flags with the format of the extensions of --input and --held-out, unless --format was passed.
pub(super) fn with_format(arguments: &Train) -> Result<Train> {
    let by_extension = || {
        let places = arguments.input.iter().chain(&arguments.held_out);
        let lines: Vec<_> = places.filter(|place| !places::is_dataset(place)).cloned().collect();
        if lines.iter().any(|place| is_table(place)) {
            // Tables are refused as text.
            return Ok(LineFormat::Text);
        }
        let found = format_of(&lines, &arguments.storage.options(), OtherExtension::Text);
        let found = found.map_err(TextsError::from)?;
        Ok::<_, Error>(match found {
            Some(FormatName::Json) => LineFormat::Review(FormatName::Json),
            _ => LineFormat::Text,
        })
    };
    let format = arguments.format.map_or_else(by_extension, Ok)?;
    Ok(Train { format: Some(format), ..arguments.clone() })
}

/// The format of lines; `None` if each line is a sentence.
pub(super) fn format(arguments: &Train) -> Result<Option<Format>> {
    let Train { preset, text_field, with_title, .. } = arguments.clone();
    let asked = FormatOptions { preset, text_field, with_title, ..FormatOptions::default() };
    match arguments.format {
        Some(LineFormat::Review(name)) => Ok(Some(FormatOptions { name: Some(name), ..asked }.format()?)),
        Some(LineFormat::Text) | None => {
            asked.nothing_for("text")?;
            Ok(None)
        }
    }
}

/// Cleans lines, and counts them.
pub(super) struct Lines {
    parser: Option<ReviewParser>,
    cleaner: Cleaner,
    /// The input, for messages.
    input: String,
    /// Number of lines that are not blank.
    pub n_lines: u64,
    /// Number of those without a text in the format.
    pub n_bad: u64,
    /// Sentences that are not UTF-8.
    invalid: Invalid,
    /// Whether the first line is the beginning of a JSON array.
    begins_array: bool,
    /// Number of lines that were skipped because they are too long.
    n_long: u64,
    /// What was found in files that were skipped or replaced.
    files: HashSet<String>,
    /// What is still to be reported of them.
    unreported: Vec<String>,
}

impl Lines {
    pub(super) fn of(arguments: &Train) -> Result<Self> {
        let parser = format(arguments)?.map(ReviewParser::new);
        let input = arguments.input.join(" ");
        if parser.is_none()
            && let Some(table) = arguments.input.iter().find(|place| is_table(place))
        {
            return Err(Error::useless_texts(
                table,
                "found the name of a table, expected sentences",
                "make a dataset of it with sentimill, and pass the dataset",
            ));
        }
        Ok(Self {
            parser,
            cleaner: Cleaner::default(),
            input,
            n_lines: 0,
            n_bad: 0,
            invalid: Invalid::default(),
            begins_array: false,
            n_long: 0,
            files: HashSet::new(),
            unreported: Vec::new(),
        })
    }

    /// Replaces the content of `cleaned` with cleaned lines, without those that are then empty. Fails if the first line
    /// is to be a sentence and is of another format.
    pub(super) fn clean(&mut self, lines: &[u8], cleaned: &mut Vec<u8>) -> Result<()> {
        cleaned.clear();
        for line in lines.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if self.n_lines == 0 {
                match self.parser {
                    None => self.check_sentence(line)?,
                    Some(_) => self.begins_array = is_array(line),
                }
            }
            let Self { parser, cleaner, n_lines, n_bad, invalid, .. } = self;
            let mut clean = |text: &str| {
                if cleaner.clean(text, cleaned) {
                    cleaned.push(b'\n');
                }
            };
            match parser {
                // Bytes that are not UTF-8 separate words.
                None => {
                    *n_lines += 1;
                    let text = String::from_utf8_lossy(line);
                    if matches!(text, Cow::Owned(_)) {
                        invalid.add(line);
                    }
                    clean(&text);
                }
                Some(parser) => parser.each(line, &mut |_, entry| {
                    *n_lines += 1;
                    match entry {
                        Ok(entry) => clean(entry.text),
                        Err(_) => *n_bad += 1,
                    }
                }),
            }
        }
        Ok(())
    }

    /// Refuses a line of JSON or of fastText's format, whose syntax would be trained on as words.
    fn check_sentence(&self, line: &[u8]) -> Result<()> {
        let (format, remedy) = if line.trim_ascii_start().starts_with(LABEL) {
            ("fastText's format", "pass --format fasttext")
        } else if is_array(line) {
            ("a JSON array", OF_ARRAY)
        } else if serde_json::from_slice::<Map<String, Value>>(line).is_ok() {
            ("JSON", "pass --format json, and --text-field for another field than reviewText")
        } else {
            return Ok(());
        };
        let found = format!("the first line is of {format}, expected a sentence");
        Err(Error::useless_texts(&self.input, found, remedy))
    }

    /// Counts what was skipped. The first lines are reported, and what was found in a file is reported once.
    pub(super) fn skip(&mut self, skipped: &reading::Error) {
        if matches!(skipped, reading::Error::LongLine { .. }) {
            self.n_long += 1;
            if self.n_long <= TOLD {
                self.unreported.push(skipped.to_string());
            }
        } else if self.files.len() < FILES_MAX && self.files.insert(skipped.to_string()) {
            self.unreported.push(skipped.to_string());
        }
    }

    /// Reports what was skipped since the last report.
    pub(super) fn report_skipped(&mut self) {
        self.unreported.drain(..).for_each(|skipped| tell(&skipped));
    }

    /// Reports lines that were skipped, and those without a text. Fails if no line has one: the format is probably another one.
    pub(super) fn check(&mut self, arguments: &Train) -> Result<()> {
        self.report_skipped();
        if self.n_long > 0 {
            let (long, most) = (whole(self.n_long), whole(LINE_BYTES_MAX as u64));
            tell(&format!("lines of more than {most} bytes, which were skipped: {long}; check --format"));
        }
        if !self.files.is_empty() {
            tell(&format!(
                "files that could not be read to their end, or were replaced: {}",
                whole(self.files.len() as u64)
            ));
        }
        let invalid = self.parser.as_ref().map_or(&self.invalid, ReviewParser::invalid);
        if invalid.lines > 0 {
            let (n, all) = (whole(invalid.lines), whole(self.n_lines));
            let found = format!("{n} of {all} lines of {} have bytes that are not text", self.input);
            tell(&if Share::OF_INVALID_UTF8.allows(invalid.lines, self.n_lines) {
                format!("{found}, read as spaces")
            } else {
                format!("warning: {found}; {}", invalid.cause(arguments.encoding.unwrap_or(UTF_8)))
            });
        }
        if self.n_bad == 0 {
            return Ok(());
        }
        let name = match arguments.format {
            Some(LineFormat::Review(name)) => name.to_string(),
            Some(LineFormat::Text) | None => "text".to_owned(),
        };
        if self.n_bad < self.n_lines {
            let (bad, all) = (whole(self.n_bad), whole(self.n_lines));
            tell(&format!("{bad} of {all} lines of {} have no text in the format {name}", self.input));
            return Ok(());
        }
        let cause = self.parser.as_ref().and_then(ReviewParser::without_text);
        let (found, remedy) = match &cause {
            _ if self.begins_array => (": the input is a JSON array", OF_ARRAY),
            Some(cause) => ("", cause.as_str()),
            None => ("", "check --format"),
        };
        let message = format!("{}: no line is of the format {name}{found}; {remedy}", self.input);
        Err(Failed::new(Exit::BadInput, message).into())
    }
}

/// Bytes of rows that are passed on at once.
const ROWS_BYTES: usize = 1 << 20;

/// Passes the words of a dataset's rows to `add`, as lines. Words that are not in its vocabulary are left out. Returns the
/// number of rows.
pub(super) fn each_row(place: &str, s3: &S3Options, mut add: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let location = Location::of_file(place.into()).map_err(|error| Error::internal(&error))?;
    let dataset = DatasetReader::open(&places::dataset(&location, s3)?)?;
    let words = &dataset.vocabulary().words;
    let (mut lines, mut failed) = (Vec::new(), None);
    let mut flush = |lines: &mut Vec<u8>| {
        if let (None, Err(error)) = (&failed, add(lines)) {
            failed = Some(error);
        }
        lines.clear();
    };
    dataset.verify(|row| {
        let known = row.tokens.iter().filter_map(|id| id.checked_sub(FIRST_WORD));
        for word in known.map(|at| words.get(at as usize)) {
            lines.extend_from_slice(word);
            lines.push(b' ');
        }
        lines.push(b'\n');
        if lines.len() >= ROWS_BYTES {
            flush(&mut lines);
        }
        Ok(())
    })?;
    flush(&mut lines);
    failed.map_or(Ok(dataset.n_rows()), Err)
}

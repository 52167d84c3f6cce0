//! Raw review lines to records, every line accounted for.
//!
//! A line that is no review is counted by the first reason that fits it, and the first few of each reason are told
//! with their place. None of them stops the work; too many of them fail it at its end, with a guess at the cause.

mod cause;

use std::io::{self, Read, Write};

use corpus::clean::Cleaner;
use corpus::exit::Exit;
use corpus::ledger::{Fate, MapperCounts, Share, TooManyBad, report_counters};
use corpus::lines::{Content, LineReader, is_blank};
use corpus::record::{Votes, write_record};
use corpus::review::{Fields, Rating, ReviewParser};
use thiserror::Error;

/// Output goes out in pieces of about this size.
const WRITE_BYTES: usize = 256 << 10;
/// So many bad lines of each reason are told.
const TOLD: u64 = 3;

/// What a mapper is to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of the fields to read.
    pub fields: Fields,
    /// The longest line that is read.
    pub line_bytes_max: usize,
    /// The share of lines, blank ones aside, that may be bad.
    pub bad_lines_max: Share,
    /// What the input is called in messages.
    pub file: String,
}

/// Why a mapper failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The input could not be read.
    #[error("cannot read lines")]
    Read(#[source] io::Error),
    /// The output could not be written; a reader that went away is lost output.
    #[error("cannot write records")]
    Write(#[source] io::Error),
    /// Standard error could not be written.
    #[error("cannot write to standard error")]
    Log(#[source] io::Error),
    /// Too many bad lines.
    #[error("{found}; {cause}, or raise --bad-lines-max")]
    BadLines {
        /// How many there are.
        found: TooManyBad,
        /// What may be the matter, and what to do.
        cause: String,
    },
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Read(_) | Self::Write(_) | Self::Log(_) => Exit::Io,
            Self::BadLines { .. } => Exit::BadInput,
        }
    }
}

/// Reads all lines of `input`, writes a record for each review to `output`, and counters and notices to `log`.
pub fn run(
    input: impl Read,
    mut output: impl Write,
    mut log: impl Write,
    options: &Options,
) -> Result<MapperCounts, Error> {
    let mut lines = LineReader::new(input, options.line_bytes_max);
    let mut reviews = Reviews::of(options);
    let mut counts = MapperCounts::default();
    let mut beginning = Vec::new();
    let mut records = Vec::with_capacity(2 * WRITE_BYTES);
    while let Some(line) = lines.next_line().map_err(Error::Read)? {
        counts.lines += 1;
        if counts.lines == 1 {
            beginning.extend_from_slice(cause::beginning(line.content));
        }
        match reviews.read(line.content) {
            Ok((text, rating)) => {
                counts.reviews += 1;
                write_record(&mut records, text, Votes::one(rating.stars()));
            }
            Err(fate) => {
                let so_far = counts.count(fate);
                if fate.is_bad() && so_far <= TOLD {
                    tell(fate, so_far, line.offset, options, &mut log)?;
                }
            }
        }
        if records.len() >= WRITE_BYTES {
            output.write_all(&records).map_err(Error::Write)?;
            records.clear();
        }
    }
    output.write_all(&records).and_then(|()| output.flush()).map_err(Error::Write)?;
    report_counters(&mut log, MapperCounts::GROUP, &counts.counters()).map_err(Error::Log)?;
    counts.judge(options.bad_lines_max).map_err(|found| Error::BadLines {
        found,
        cause: cause::likely(&counts, &beginning, &options.fields),
    })?;
    // Too few lines to fail for, and yet hardly what anybody wanted.
    if counts.reviews == 0 && counts.bad() > 0 {
        let cause = cause::likely(&counts, &beginning, &options.fields);
        log.write_all(format!("mapper: no line is a review; {cause}\n").as_bytes()).map_err(Error::Log)?;
    }
    Ok(counts)
}

/// Lines to cleaned texts, through buffers that are used again.
struct Reviews {
    parser: ReviewParser,
    cleaner: Cleaner,
    text: Vec<u8>,
}

impl Reviews {
    fn of(options: &Options) -> Self {
        Self {
            parser: ReviewParser::new(options.fields.clone()),
            cleaner: Cleaner::default(),
            text: Vec::new(),
        }
    }

    /// The cleaned text and the rating of a line, or what else becomes of it.
    fn read(&mut self, line: Content<'_>) -> Result<(&[u8], Rating), Fate> {
        let bytes = match line {
            Content::TooLong { blank: true, .. } => return Err(Fate::Blank),
            Content::TooLong { .. } => return Err(Fate::TooLong),
            Content::Bytes(bytes) if is_blank(bytes) => return Err(Fate::Blank),
            Content::Bytes(bytes) => bytes,
        };
        let review = self.parser.parse(bytes).map_err(Fate::Rejected)?;
        self.text.clear();
        if self.cleaner.clean(review.text, &mut self.text) {
            Ok((&self.text, review.rating))
        } else {
            Err(Fate::EmptyText)
        }
    }
}

/// Tells the place of one of the first few bad lines. The line itself stays out of the log: logs are kept by others
/// than those who may read reviews.
fn tell(fate: Fate, so_far: u64, offset: u64, options: &Options, log: &mut impl Write) -> Result<(), Error> {
    let more = if so_far == TOLD { " (further ones are counted only)" } else { "" };
    let notice = format!("mapper: {} at byte {offset} of {}{more}\n", fate.counter(), options.file);
    log.write_all(notice.as_bytes()).map_err(Error::Log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            fields: Fields::default(),
            line_bytes_max: 4 << 20,
            bad_lines_max: Share::OF_BAD_LINES,
            file: "-".to_owned(),
        }
    }

    fn mapped(input: &str) -> (Result<MapperCounts, Error>, String, String) {
        let (mut output, mut log) = (Vec::new(), Vec::new());
        let counts = run(input.as_bytes(), &mut output, &mut log, &options());
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
            empty_text: 1,
            reviews: 2,
        };
        assert_eq!(counts.unwrap(), expected);
        assert_eq!(output, "great fit feel\t0,0,0,0,1\nit's old\t0,1,0,0,0\n");
        assert!(log.contains("mapper: no_text at byte 67 of -\n"), "{log}");
        assert!(log.contains("reporter:counter:mapper,reviews,2\n"), "{log}");
        assert!(!log.contains("not json"), "{log}");
    }

    #[test]
    fn three_bad_lines_of_a_reason_are_told() {
        let (_, _, log) = mapped(&"x\n".repeat(10));
        assert_eq!(log.matches("bad_line at byte").count(), 3);
        assert!(log.contains("at byte 4 of - (further ones are counted only)\n"), "{log}");
    }

    #[test]
    fn too_many_bad_lines_fail_with_a_likely_cause() {
        let good = "{\"reviewText\": \"ok\", \"overall\": 4}\n";
        let (few, _, _) = mapped(&format!("{}{}", good.repeat(951), "{\"overall\": 4}\n".repeat(50)));
        assert_eq!(few.unwrap().no_text, 50);
        let (many, output, _) = mapped(&format!("{}{}", good.repeat(949), "{\"overall\": 4}\n".repeat(51)));
        let error = many.unwrap_err();
        assert_eq!(error.exit(), Exit::BadInput);
        let message = error.to_string();
        assert!(
            message.starts_with("51 of 1000 lines are bad (no_text 51), expected at most 0.05"),
            "{message}"
        );
        assert!(message.contains("--text-field"), "{message}");
        assert_eq!(output.lines().count(), 949);
    }

    #[test]
    fn few_lines_are_not_judged_but_told_when_none_is_a_review() {
        let (counts, _, log) = mapped(&"x\n".repeat(999));
        assert_eq!(counts.unwrap().bad_line, 999);
        assert!(log.contains("mapper: no line is a review; most lines are not in the format json"), "{log}");
        assert!(mapped(&"x\n".repeat(1000)).0.is_err());
    }
}

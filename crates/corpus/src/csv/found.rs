//! Finds the dialect of a table in its first bytes. RFC 4180 with the delimiter of the format is assumed unless another
//! dialect is more consistent: more lines have the columns of the header, and a rating.

use std::cmp::Ordering;
use std::iter;

use super::Columns;
use super::dialect::{AskedDialect, Dialect, Quote};
use super::hidden::HiddenRecords;
use super::records::{CsvReader, named_delimiter};
use super::splitter::Splitter;
use crate::entry::{Rating, Reject};
use crate::fields::{FieldPath, Fields};
use crate::lines::{Line, LineContent, is_blank, without_mark};
use crate::rating_rule::RatingRule;

/// Number of bytes that are examined.
pub const HEAD_BYTES: usize = 1 << 20;

/// Maximum number of bytes of a text that the end of the head divides.
const DIVIDED_BYTES_MAX: usize = 64 << 10;

/// The beginning of a table.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    bytes: &'a [u8],
    is_whole: bool,
    asked: AskedDialect,
    fields: &'a Fields,
}

/// Dialects of which none is more consistent than another, in their order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialects(Vec<Dialect>);

impl Dialects {
    /// This dialect.
    pub fn only(dialect: Dialect) -> Self {
        Self(vec![dialect])
    }

    /// The preferred one.
    pub fn first(&self) -> Option<Dialect> {
        self.0.first().copied()
    }

    /// The dialects in both.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().copied().filter(|dialect| other.0.contains(dialect)).collect())
    }
}

/// How well a dialect describes the lines of a head.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    header: HeaderScore,
    /// Number of lines in records with the columns of the header and, if these columns are read, with a rating.
    fitting: u64,
    /// Number of lines that are not blank.
    lines: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum HeaderScore {
    /// It has one column, or cannot be read.
    #[default]
    Bad,
    /// It has several columns.
    Columns,
    /// It has the columns that are read.
    OfFields,
}

impl<'a> Head<'a> {
    /// The beginning of a table, of at most [`HEAD_BYTES`]. A shorter one is the whole table.
    pub fn of(bytes: &'a [u8], asked: AskedDialect, fields: &'a Fields) -> Self {
        let is_whole = bytes.len() < HEAD_BYTES;
        let end = if is_whole { None } else { memchr::memrchr2(b'\n', b'\r', bytes) };
        Self { bytes: &bytes[..end.unwrap_or(bytes.len())], is_whole, asked, fields }
    }

    /// The dialect if it is the default one, and no other one can be more consistent.
    pub fn has_default(&self) -> Option<Dialect> {
        let dialect = self.requested().default_dialect();
        let is_consistent = || {
            let (score, _) = self.score(self.bytes, dialect, ConsistentRecords::All);
            score.header == HeaderScore::OfFields && score.fitting == score.lines
        };
        (!self.requested().is_open() || is_consistent()).then_some(dialect)
    }

    /// The most consistent dialects.
    pub fn dialects(&self) -> Dialects {
        let (mut best, mut dialects) = (Score::default(), Vec::new());
        let (mut delimiter, mut bytes) = (None, self.bytes);
        for dialect in self.requested().all() {
            let is_next = delimiter.replace(dialect.delimiter) != Some(dialect.delimiter);
            if is_next {
                bytes = self.bytes;
            }
            let (score, end) = self.score(bytes, dialect, ConsistentRecords::Rated);
            // All dialects of a delimiter are compared by the same lines.
            if is_next {
                bytes = &bytes[..end];
            }
            match score.cmp(&best) {
                Ordering::Less => continue,
                Ordering::Equal => {}
                Ordering::Greater => dialects.clear(),
            }
            best = score;
            dialects.push(dialect);
        }
        Dialects(dialects)
    }

    /// The rating or label of the first record, and the number of columns, if this record is no header: the column was
    /// selected by its number, and the value is a rating, or the label of another record, too.
    pub fn record_in_place_of_header(&self, dialect: Dialect) -> Option<(String, usize)> {
        let mut records = CsvReader::new(self.bytes, dialect, self.bytes.len());
        let header = records.header().ok()???;
        let (columns, n_columns) = (header.selected(self.fields)?, header.names().len());
        let value = &header.names()[columns.rating];
        let mut rule = RatingRule::of(self.fields);
        // The columns of a header may be named by their numbers.
        let is_named = |(field, column): (&FieldPath, usize)| header.names()[column] == field.literal();
        let texts = self.fields.text.iter().zip(columns.text.iter().copied());
        let are_named = texts.chain([(&self.fields.rating, columns.rating)]).all(is_named);
        let is_record = if value.is_empty() || are_named {
            false
        } else if Rating::from_text(value).is_some() {
            true
        } else if rule.of_text(value) == Err(Reject::BadRating) {
            false
        } else if let Some(label) = rule.label().map(<[u8]>::to_vec) {
            let mut splitter = Splitter::new(dialect);
            iter::from_fn(|| match records.next_record().ok()??.content {
                LineContent::Bytes(record) => Some(
                    !columns.is_header(record)
                        && splitter.split(record, n_columns) == Some(n_columns)
                        && rule.of_text(splitter.column(columns.rating)).is_ok()
                        && rule.label() == Some(&label),
                ),
                LineContent::TooLong { .. } => Some(false),
            })
            .any(|has_label| has_label)
        } else {
            true
        };
        is_record.then(|| (value.clone(), n_columns))
    }

    /// The line `sep=;` of Excel sets the delimiter.
    fn requested(&self) -> AskedDialect {
        let bytes = without_mark(self.bytes);
        let line = memchr::memchr2(b'\n', b'\r', bytes).map_or(bytes, |end| &bytes[..end]);
        AskedDialect { delimiter: self.asked.delimiter.or(named_delimiter(line)), ..self.asked }
    }

    /// The score of a dialect, and the number of bytes before a text that the end of the head divides.
    fn score(&self, bytes: &[u8], dialect: Dialect, counted: ConsistentRecords) -> (Score, usize) {
        let (mut score, mut end) = (Score::default(), bytes.len());
        let mut records = CsvReader::new(bytes, dialect, bytes.len());
        let Ok(Some(Some(header))) = records.header() else { return (score, end) };
        let n_columns = header.names().len();
        let columns = header.selected(self.fields);
        score.header = match columns {
            Some(_) => HeaderScore::OfFields,
            None if n_columns > 1 && dialect.quote == self.asked.default_dialect().quote => {
                HeaderScore::Columns
            }
            None => return (score, end),
        };
        if let Some(columns) = columns.as_ref().filter(|_| self.asked.quote.is_none()) {
            records.expect(columns, self.fields);
        }
        let mut ratings = RatingRule::of(self.fields);
        let (mut splitter, mut n_enclosed) = (Splitter::new(dialect), 0);
        loop {
            let n_lines = records.n_lines();
            let Ok(Some(Line { offset, content: LineContent::Bytes(record) })) = records.next_record() else {
                break;
            };
            let (tail, n_bytes) = (&bytes[offset as usize..], record.len());
            let record = &without_mark(tail)[..n_bytes];
            if is_blank(record) || columns.as_ref().is_some_and(|columns| columns.is_header(record)) {
                continue;
            }
            let is_fitting = match (&columns, counted, records.n_columns()) {
                (Some(_), ConsistentRecords::All, Some(found)) => found == n_columns,
                (Some(columns), ConsistentRecords::Rated, _) => {
                    splitter.split(record, n_columns) == Some(n_columns)
                        && ratings.of_text(splitter.column(columns.rating)).is_ok()
                }
                _ => splitter.split(record, n_columns) == Some(n_columns),
            };
            if dialect.quote == Quote::None && counted == ConsistentRecords::Rated && is_fitting {
                n_enclosed += u64::from((0..n_columns).any(|at| is_enclosed(splitter.column(at))));
            }
            if !self.is_whole && records.open_at() == Some(offset) && self.is_divided(tail, columns.as_ref())
            {
                end = offset as usize;
                break;
            }
            let n_lines = records.n_lines() - n_lines;
            score.lines += n_lines;
            score.fitting += if is_fitting { n_lines } else { 0 };
        }
        // Quotes around most texts are quotes.
        if dialect.quote == Quote::None && 2 * n_enclosed > score.lines {
            score.fitting = 0;
        }
        (score, end)
    }

    /// Whether the end of the head divides the text whose quote is not closed in `tail`, which hides no records then.
    fn is_divided(&self, tail: &[u8], columns: Option<&Columns>) -> bool {
        let hidden = |columns| HiddenRecords::of(columns, RatingRule::of(self.fields));
        let hides = columns.is_some_and(|columns| hidden(columns).are_behind_first_line(tail));
        tail.len() <= DIVIDED_BYTES_MAX && !hides
    }
}

/// Which records are consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConsistentRecords {
    /// Those with a rating.
    Rated,
    /// All with the columns of the header.
    All,
}

/// Whether a column has quotes around it, as characters.
fn is_enclosed(column: &str) -> bool {
    column.len() > 1 && column.starts_with('"') && column.ends_with('"')
}

impl Score {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |fitting: u64, lines: u64| u128::from(fitting) * u128::from(lines.max(1));
        let shares = product(self.fitting, other.lines).cmp(&product(other.fitting, self.lines));
        self.header.cmp(&other.header).then(shares)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::csv::Delimiter::{self, Bar, Comma, Semicolon, Tab};
    use crate::csv::Quote::{Backslash, Double, None as NoQuotes};

    fn found(head: &str, default: Delimiter) -> Dialect {
        let (asked, fields) = (AskedDialect::of(default), Fields::named("text", "stars"));
        let head = Head::of(head.as_bytes(), asked, &fields);
        let best = head.dialects().first().unwrap();
        if let Some(at_once) = head.has_default() {
            assert_eq!(at_once, best);
        }
        best
    }

    #[test]
    fn the_most_consistent_dialect_is_found() {
        let semicolons: String = (0..9).map(|n| format!("\"one; {n}, \"\"so\"\"\";4;{n}\n")).collect();
        for (head, default, delimiter, quote) in [
            ("text,stars\n\"one, two\",5\nthree,1\n", Comma, Comma, Double),
            ("text\tstars\n\"great\t5\nfine\t4\nbad\"\t1\nlast\t2", Tab, Tab, NoQuotes),
            ("text\tstars\n\"great\t5\nfine\t4\nbad\"\t1\nlast\t2", Comma, Tab, NoQuotes),
            ("text;stars\n\"one; two\";5\nthree;1\n", Comma, Semicolon, Double),
            ("text|stars\r\none, two|5\r\n", Tab, Bar, Double),
            ("text,stars\n\"a \\\"b\\\", c\",5\n\"d\",1\n", Comma, Comma, Backslash),
            ("text;stars\n\"a \\\"b\\\"; c\";5\n\"d\";1\n", Comma, Semicolon, Backslash),
            ("\u{FEFF}sep=;\r\ntext;stars\r\none, two;5\r\n", Comma, Semicolon, Double),
            ("sep=,\ntext,stars\none,5\n", Comma, Comma, Double),
            // Columns of other names, and only a header.
            ("body;stars\n", Comma, Semicolon, Double),
            (&format!("body;stars;x\n{semicolons}"), Comma, Semicolon, Double),
        ] {
            assert_eq!(found(head, default), Dialect { delimiter, quote }, "{head:?}");
        }
    }

    #[test]
    fn rfc_4180_is_kept_where_no_dialect_is_more_consistent() {
        for head in [
            "",
            "\n",
            "text,stars\n",
            "one\n",
            "text,stars\nplain,5\n",
            "text,stars\n\"two\nlines\",5\n\"open,3\n",
            "text,stars\n\"one; two\",5\n\"say \"\"so\"\"\",1\nso;so,3\nso|so;,3\n",
            "text,stars\n\"C:\\\\ is full\",5\n\"\\n, no\",1\n",
            // No rating is known.
            "text,stars\n\"good,yes\nbad\",no\n",
            // One open quote among quoted texts.
            "text,stars\n\"good\",5\n\"fine\",4\n\"open,3\n\"bad\",1\n",
        ] {
            assert_eq!(found(head, Comma), Dialect::rfc4180(Comma), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn every_table_of_rfc_4180_without_ratings_in_its_texts_has_the_default(
            texts in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec![",", "\n", "\r\n", "\"\"", "a", " ", ";", "\t", "|", "\\"]), 0..12),
                1..8,
            ),
        ) {
            let records = texts.iter().map(|text| format!("\"{}\",4\r\n", text.concat()));
            let head = "text,stars\r\n".to_owned() + &records.collect::<String>();
            let fields = Fields::named("text", "stars");
            let head = Head::of(head.as_bytes(), AskedDialect::of(Comma), &fields);
            prop_assert_eq!(head.has_default(), Some(Dialect::rfc4180(Comma)));
            prop_assert_eq!(head.dialects().first(), head.has_default());
        }
    }

    #[test]
    fn a_text_that_the_end_of_the_head_divides_is_no_evidence() {
        for (text, expected) in [("one, two\nthree\n", Double), ("good,5\n", NoQuotes)] {
            let mut head = "stars,text\n".to_owned() + &"5,plain\n".repeat(1000);
            while head.len() < HEAD_BYTES - 20_000 {
                head += "4,\"plain\"\n5,fine\n3,ok\n";
            }
            head += "1,\"so\n";
            let text = text.replace("good,5", "5,good");
            head += &text.repeat(HEAD_BYTES / text.len());
            head.truncate(HEAD_BYTES);
            assert_eq!(found(&head, Comma).quote, expected, "{text:?}");
        }
    }

    #[test]
    fn what_was_set_is_not_searched() {
        let fields = Fields::named("text", "stars");
        let dialect = |delimiter, quote| {
            let asked = AskedDialect { default: Comma, delimiter, quote };
            let head = Head::of(b"text\tstars\n\"great\t5\nfine\t4\nbad\"\t1\n", asked, &fields);
            head.has_default().or(head.dialects().first()).unwrap()
        };
        assert_eq!(dialect(None, Some(Double)), Dialect::rfc4180(Tab));
        assert_eq!(dialect(Some(Comma), None), Dialect::rfc4180(Comma));
        assert_eq!(dialect(Some(Bar), Some(NoQuotes)), Dialect { delimiter: Bar, quote: NoQuotes });
    }

    #[test]
    fn files_agree_on_the_dialects_that_both_may_have() {
        let fields = Fields::named("text", "stars");
        let of = |head: &str| Head::of(head.as_bytes(), AskedDialect::of(Tab), &fields).dialects();
        let plain = of("text\tstars\nplain\t5\n");
        let characters = of("text\tstars\n\"great\t5\nbad\"\t1\n");
        let quoted = of("text\tstars\n\"one\ttwo\"\t5\n");
        assert_eq!(plain.and(&characters), characters);
        assert_eq!(plain.and(&quoted).first(), Some(Dialect::rfc4180(Tab)));
        assert_eq!(characters.and(&quoted).first(), None);
    }
}

//! Parses the records of CSV and TSV with a header: `text,stars` and then `"Fits well, ""wow""",5`.
//!
//! Columns are selected by name or by number. A record with another number of columns than the header, and one with a
//! quote that is not closed, is a bad line. The library `csv-core` parses columns and quotes.

mod records;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::classes::RatingRule;
use crate::review::{Entry, Reject};

pub use records::RecordReader;

/// The character between two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// CSV.
    Comma,
    /// TSV.
    Tab,
}

impl Delimiter {
    /// The character.
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comma => "commas",
            Self::Tab => "tabs",
        }
    }
}

/// The names of the columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    names: Vec<String>,
    record: Vec<u8>,
}

/// The columns of a file that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Number of columns of a record.
    n_columns: usize,
    /// Positions of the columns of the text.
    text: Vec<usize>,
    /// Position of the column of the rating.
    rating: usize,
    /// The record of the header, which concatenated files repeat.
    header: Vec<u8>,
}

impl Header {
    /// Parses the first record of a file; `None` if a quote is not closed.
    pub fn parse(record: &[u8], delimiter: Delimiter) -> Option<Self> {
        let text = String::from_utf8_lossy(record);
        let mut splitter = Splitter::new(delimiter);
        let n_columns = splitter.split(&text, text.len() + 1)?;
        let names = (0..n_columns).map(|column| splitter.column(column).to_owned()).collect();
        Some(Self { names, record: record.to_owned() })
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The positions of the columns with this name; otherwise of the column with this number, from 1.
    pub fn positions(&self, column: &str) -> Vec<usize> {
        let of_name: Vec<_> =
            (0..).zip(&self.names).filter(|(_, name)| *name == column).map(|(at, _)| at).collect();
        match column.parse::<usize>() {
            Ok(number) if of_name.is_empty() && (1..=self.names.len()).contains(&number) => vec![number - 1],
            _ => of_name,
        }
    }

    /// The probable delimiter of a header that has no columns by the given delimiter.
    pub fn other_delimiter(&self) -> Option<char> {
        let [name] = &self.names[..] else { return None };
        [';', '\t', '|', ','].into_iter().find(|&delimiter| name.contains(delimiter))
    }

    /// The columns of records that are read, by their positions.
    pub fn columns(&self, text: Vec<usize>, rating: usize) -> Columns {
        Columns { n_columns: self.names.len(), text, rating, header: self.record.clone() }
    }
}

impl Columns {
    /// Whether a record repeats the header, as in concatenated files.
    pub fn is_header(&self, record: &[u8]) -> bool {
        record == self.header
    }
}

/// Parses records and reuses its memory.
#[derive(Debug)]
pub(crate) struct CsvParser {
    splitter: Splitter,
    pub ratings: RatingRule,
    text: String,
}

impl CsvParser {
    pub fn new(delimiter: Delimiter, ratings: RatingRule) -> Self {
        Self { splitter: Splitter::new(delimiter), ratings, text: String::new() }
    }

    /// Parses one record, passed without its line end.
    pub fn parse<'a>(&'a mut self, record: &str, columns: &Columns) -> Result<Entry<'a>, Reject> {
        let n_columns = self.splitter.split(record, columns.n_columns).ok_or(Reject::BadLine)?;
        if n_columns != columns.n_columns {
            return Err(Reject::BadLine);
        }
        let rating = self.ratings.of_text(self.splitter.column(columns.rating));
        let text = match columns.text[..] {
            [column] => self.splitter.column(column),
            ref several => {
                self.text.clear();
                for &column in several {
                    if !self.text.is_empty() {
                        self.text.push(' ');
                    }
                    self.text.push_str(self.splitter.column(column));
                }
                &self.text
            }
        };
        Ok(Entry { text, rating })
    }
}

/// Splits a record into columns.
#[derive(Debug)]
struct Splitter {
    reader: Box<Reader>,
    /// The contents of all columns, without quotes.
    content: Vec<u8>,
    /// The end of each column in `content`.
    ends: Vec<usize>,
}

impl Splitter {
    fn new(delimiter: Delimiter) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter.byte()).build();
        Self { reader: Box::new(reader), content: Vec::new(), ends: Vec::new() }
    }

    /// Returns the number of columns; `None` if there are more than `most`, or if a quote is not closed.
    fn split(&mut self, record: &str, most: usize) -> Option<usize> {
        if self.content.len() <= record.len() {
            self.content.resize(record.len() + 1, 0);
        }
        if self.ends.len() <= most {
            self.ends.resize(most + 1, 0);
        }
        self.reader.reset();
        let (mut written, mut n_columns) = (0, 0);
        // A line end ends the record, unless it is inside quotes. The reader ignores a record that is empty.
        for mut part in [record.as_bytes(), b"\n"] {
            while !part.is_empty() {
                let (result, read, more, ended) =
                    self.reader.read_record(part, &mut self.content[written..], &mut self.ends[n_columns..]);
                part = &part[read..];
                (written, n_columns) = (written + more, n_columns + ended);
                match result {
                    ReadRecordResult::Record => return (n_columns <= most).then_some(n_columns),
                    ReadRecordResult::InputEmpty => {}
                    ReadRecordResult::OutputFull
                    | ReadRecordResult::OutputEndsFull
                    | ReadRecordResult::End => {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// A column of the last record.
    fn column(&self, number: usize) -> &str {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        // Quotes and delimiters are ASCII, so that the rest is UTF-8, as the record was.
        simdutf8::basic::from_utf8(&self.content[start..self.ends[number]]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(record: &str) -> Header {
        Header::parse(record.as_bytes(), Delimiter::Comma).unwrap()
    }

    #[test]
    fn a_column_is_found_by_name_before_number() {
        let header = header("text,\"3\",stars,text");
        assert_eq!(header.names(), ["text", "3", "stars", "text"]);
        for (column, expected) in [
            ("stars", &[2][..]),
            ("3", &[1]),
            ("text", &[0, 3]),
            ("1", &[0]),
            ("4", &[3]),
            ("0", &[]),
            ("5", &[]),
            ("", &[]),
        ] {
            assert_eq!(header.positions(column), expected, "{column}");
        }
        assert_eq!(header.other_delimiter(), None);
        assert_eq!(Header::parse(b"a,\"b", Delimiter::Comma), None);
    }

    #[test]
    fn records_are_parsed_by_the_columns_of_their_header() {
        let mut parser = CsvParser::new(Delimiter::Comma, RatingRule::default());
        let columns = header("id,stars,text").columns(vec![2], 1);
        let mut read = |record| {
            let entry = parser.parse(record, &columns)?;
            Ok((entry.text.to_owned(), entry.rating.map(|rating| rating.stars())))
        };
        let good = |text: &str, stars| Ok((text.to_owned(), stars));
        assert_eq!(read("1,5,fine"), good("fine", Some(5)));
        assert_eq!(read("1,\"4.0\",\"so, \"\"so\"\"\r\nok\""), good("so, \"so\"\r\nok", Some(4)));
        assert_eq!(read("1, 3 ,\"a\"b\""), good("ab\"", Some(3)));
        assert_eq!(read(",,"), good("", None));
        assert_eq!(read("1,6,\0"), good("\0", None));
        for record in ["1,5", "1,5,a,b", "1,5,\"open", "1,5,\"open\"\"", "\"1,5,a"] {
            assert_eq!(read(record), Err(Reject::BadLine), "{record}");
        }
    }

    #[test]
    fn a_text_is_joined_from_several_columns() {
        let mut parser = CsvParser::new(Delimiter::Tab, RatingRule::default());
        let header = Header::parse(b"title\tstars\ttext", Delimiter::Tab).unwrap();
        let columns = header.columns(vec![0, 2], 1);
        assert_eq!(parser.parse("Oh, no\t1\t\"It \tbroke\"", &columns).unwrap().text, "Oh, no It \tbroke");
        assert_eq!(parser.parse("\t1\tbroke", &columns).unwrap().text, "broke");
        assert!(columns.is_header(b"title\tstars\ttext"));
    }
}

//! Parses the records of CSV and TSV with a header: `text,stars` and then `"Fits well, ""wow""",5`.
//!
//! Columns are selected by name or by number. A record with another number of columns than the header, and one with a
//! quote that is not closed, is a bad line.

pub(crate) mod dialect;
mod found;
mod hidden;
mod records;
mod scan;
mod splitter;

use crate::encoding::LineDecoder;
use crate::entry::{Entry, RatingValue, Reject};
use crate::fields::{FieldPath, Fields};
use crate::lines::{Line, LineContent};
use crate::rating_rule::RatingRule;

pub use dialect::{AskedDialect, Delimiter, Dialect, NoDelimiter, NoQuote, Quote};
pub use found::{Dialects, HEAD_BYTES, Head};
pub use records::CsvReader;

use splitter::Splitter;

/// The names of the columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    dialect: Dialect,
    names: Vec<String>,
    record: Vec<u8>,
}

/// The columns of a file that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// How records are written.
    dialect: Dialect,
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
    pub fn parse(record: &[u8], dialect: Dialect) -> Option<Self> {
        let text = String::from_utf8_lossy(record);
        let mut splitter = Splitter::new(dialect);
        let n_columns = splitter.split(text.as_bytes(), text.len() + 1)?;
        let names = (0..n_columns).map(|column| splitter.column(column).to_owned()).collect();
        Some(Self { dialect, names, record: record.to_owned() })
    }

    /// The header of decoded records, from that of records in another encoding; `None` if it is too long.
    pub fn decoded(&self, decoder: &mut LineDecoder, dialect: Dialect) -> Option<Self> {
        let line = Line { offset: 0, content: LineContent::Bytes(&self.record) };
        match decoder.decode(line).content {
            LineContent::Bytes(record) => Self::parse(record, dialect),
            LineContent::TooLong { .. } => None,
        }
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

    /// The position of the only column that a field selects.
    fn position(&self, field: &FieldPath) -> Option<usize> {
        match self.positions(&field.literal())[..] {
            [position] => Some(position),
            _ => None,
        }
    }

    /// The columns of these fields, if each field selects one.
    pub fn selected(&self, fields: &Fields) -> Option<Columns> {
        let text = fields.text.iter().map(|field| self.position(field)).collect::<Option<_>>()?;
        Some(self.columns(text, self.position(&fields.rating)?))
    }

    /// The probable delimiter of a header that has no columns by the given delimiter.
    pub fn other_delimiter(&self) -> Option<Delimiter> {
        let [name] = &self.names[..] else { return None };
        let mut others = [Delimiter::Semicolon, Delimiter::Tab, Delimiter::Bar, Delimiter::Comma].into_iter();
        others.find(|delimiter| name.contains(char::from(delimiter.byte())))
    }

    /// The columns of records that are read, by their positions.
    pub fn columns(&self, text: Vec<usize>, rating: usize) -> Columns {
        Columns {
            dialect: self.dialect,
            n_columns: self.names.len(),
            text,
            rating,
            header: self.record.clone(),
        }
    }
}

impl Columns {
    /// The columns of content without a header, which has no records.
    pub fn none(dialect: Dialect) -> Self {
        Self { dialect, n_columns: 0, text: Vec::new(), rating: 0, header: Vec::new() }
    }

    /// The names of all columns of a record.
    pub fn names(&self) -> Vec<String> {
        Header::parse(&self.header, self.dialect).map(|header| header.names).unwrap_or_default()
    }

    /// Whether the content has no header.
    pub fn is_none(&self) -> bool {
        self.n_columns == 0
    }

    /// Whether a record repeats the header, as in concatenated files.
    pub fn is_header(&self, record: &[u8]) -> bool {
        record == self.header
    }
}

/// Splits records into the values of all their columns, and reuses its memory.
#[derive(Debug, Default)]
pub struct RecordValues(Option<Splitter>);

impl RecordValues {
    /// The values of a record, with `None` for null; `None` if it has not these columns.
    pub fn of<'a>(
        &'a mut self,
        record: &str,
        columns: &Columns,
    ) -> Option<impl Iterator<Item = Option<&'a str>> + use<'a>> {
        let splitter = self.0.get_or_insert_with(|| Splitter::new(columns.dialect));
        splitter.set_dialect(columns.dialect);
        let n_columns = splitter.split(record.as_bytes(), columns.n_columns)?;
        (n_columns == columns.n_columns).then(|| (0..n_columns).map(|column| splitter.value(column)))
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
    pub fn new(dialect: Dialect, ratings: RatingRule) -> Self {
        Self { splitter: Splitter::new(dialect), ratings, text: String::new() }
    }

    /// Parses one record, passed without its line end.
    pub fn parse<'a>(&'a mut self, record: &str, columns: &Columns) -> Result<Entry<'a>, Reject> {
        self.splitter.set_dialect(columns.dialect);
        let n_columns = self.splitter.split(record.as_bytes(), columns.n_columns).ok_or(Reject::BadLine)?;
        if n_columns != columns.n_columns {
            return Err(Reject::BadLine);
        }
        let text = match columns.text[..] {
            [column] => self.splitter.value(column).ok_or(Reject::NoText)?,
            ref several => {
                let mut present = several.iter().filter_map(|&column| self.splitter.value(column)).peekable();
                present.peek().ok_or(Reject::NoText)?;
                self.text.clear();
                for column in present {
                    if !self.text.is_empty() {
                        self.text.push(' ');
                    }
                    self.text.push_str(column);
                }
                &self.text
            }
        };
        let rating = match self.splitter.value(columns.rating) {
            Some(rating) => self.ratings.of_text(rating),
            None => self.ratings.of_value(RatingValue::Missing),
        };
        Ok(Entry { text, rating, label: self.ratings.label() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAS: Dialect = Dialect { delimiter: Delimiter::Comma, quote: Quote::Double };

    fn header(record: &str) -> Header {
        Header::parse(record.as_bytes(), COMMAS).unwrap()
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
        assert_eq!(Header::parse(b"a,\"b", COMMAS), None);
    }

    #[test]
    fn records_are_parsed_by_the_columns_of_their_header() {
        let mut parser = CsvParser::new(COMMAS, RatingRule::default());
        let columns = header("id,stars,text").columns(vec![2], 1);
        let mut read = |record| {
            let entry = parser.parse(record, &columns)?;
            Ok((entry.text.to_owned(), entry.rating.ok().map(|rating| rating.stars())))
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
    fn a_null_column_has_no_text_and_no_rating() {
        let mut parser = CsvParser::new(COMMAS, RatingRule::default());
        let backslashes = Dialect { delimiter: Delimiter::Comma, quote: Quote::Backslash };
        let header = Header::parse(b"title,text,stars", backslashes).unwrap();
        let (one, both) = (header.columns(vec![1], 2), header.columns(vec![0, 1], 2));
        let mut read = |record: &str, columns| {
            let entry = parser.parse(record, columns)?;
            Ok((entry.text.to_owned(), entry.rating.map(|rating| rating.stars())))
        };
        assert_eq!(read(r"Fine,\N,3", &one), Err(Reject::NoText));
        assert_eq!(read(r"Fine,\N,3", &both), Ok(("Fine".to_owned(), Ok(3))));
        assert_eq!(read(r"\N,\N,3", &both), Err(Reject::NoText));
        assert_eq!(read(r"\N,good,\N", &one), Ok(("good".to_owned(), Err(Reject::BadRating))));
        assert_eq!(read(r#"a,"\N",3"#, &one), Ok(("N".to_owned(), Ok(3))));
    }

    #[test]
    fn a_text_is_joined_from_several_columns() {
        // The dialect of a record is that of its columns.
        let mut parser = CsvParser::new(COMMAS, RatingRule::default());
        let tabs = Dialect::rfc4180(Delimiter::Tab);
        let header = Header::parse(b"title\tstars\ttext", tabs).unwrap();
        let columns = header.columns(vec![0, 2], 1);
        assert_eq!(parser.parse("Oh, no\t1\t\"It \tbroke\"", &columns).unwrap().text, "Oh, no It \tbroke");
        assert_eq!(parser.parse("\t1\tbroke", &columns).unwrap().text, "broke");
        assert!(columns.is_header(b"title\tstars\ttext"));
    }
}

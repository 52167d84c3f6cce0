//! Splits the decompressed content of a source into entries: lines, records of CSV, or elements of a JSON array.

use std::io::{self, Chain, Cursor, Read};
use std::sync::Arc;

use corpus::csv::{AskedDialect, Columns, Dialect, RecordReader};
use corpus::format::{FieldPath, Fields, Format};
use corpus::json_array::{ArrayError, ElementReader, FirstLine, is_array, is_space};
use corpus::lines::{Line, LineReader};
use corpus::review::Rating;

use super::columns::shown;
use super::{Error, Source};

/// Maximum amount of white space before a JSON array.
const SPACE_BYTES_MAX: usize = 64 << 10;

/// Number of bytes read at once behind the beginning of an array.
const LOOKED_AT_ONCE: u64 = 64 << 10;

/// Content whose first bytes have been read for detection.
type Begun<R> = Chain<Cursor<Vec<u8>>, R>;

/// Reads the entries of a source one by one.
#[derive(Debug)]
pub(super) enum Entries<R> {
    Lines(LineReader<Begun<R>>),
    Elements(ElementReader<Begun<R>>),
    Records(RecordReader<Begun<R>>, Arc<Columns>),
}

impl<R: Read> Entries<R> {
    /// Detects an array. Tables are read by [`Entries::of_table`].
    pub fn of(
        mut content: R,
        source: &Source,
        format: &Format,
        entry_bytes_max: usize,
    ) -> Result<Self, Error> {
        let unreadable = |error| source.unreadable("read it", error);
        let mut begun = match format {
            Format::Json(_) => beginning(&mut content).map_err(unreadable)?,
            _ => Vec::new(),
        };
        let has_array =
            is_array(&begun) && is_of_array(&mut begun, &mut content, entry_bytes_max).map_err(unreadable)?;
        let content = Cursor::new(begun).chain(content);
        Ok(if has_array {
            Self::Elements(ElementReader::new(content, entry_bytes_max))
        } else {
            Self::Lines(LineReader::new(content, entry_bytes_max))
        })
    }

    /// Reads the header of a table, whose first bytes were read, and finds the columns.
    pub fn of_table(
        head: Vec<u8>,
        content: R,
        source: &Source,
        table: &Table<'_>,
        entry_bytes_max: usize,
    ) -> Result<Self, Error> {
        let content = Cursor::new(head).chain(content);
        let mut records = RecordReader::new(content, table.dialect, entry_bytes_max);
        let columns = columns(&mut records, source, table)?;
        if table.asked.quote.is_none() {
            records.expect(&columns, table.fields);
        }
        Ok(Self::Records(records, Arc::new(columns)))
    }

    /// The numbers of lines of all records, and of records that hid others.
    pub fn table_lines(&self) -> (u64, u64) {
        match self {
            Self::Records(records, _) => (records.n_lines(), records.n_hiding()),
            Self::Lines(_) | Self::Elements(_) => (0, 0),
        }
    }

    /// The columns of records.
    pub fn columns(&self) -> Option<Arc<Columns>> {
        match self {
            Self::Records(_, columns) => Some(Arc::clone(columns)),
            _ => None,
        }
    }

    /// Whether the content is an array.
    pub fn are_elements(&self) -> bool {
        matches!(self, Self::Elements(_))
    }

    /// Returns the next entry of the source.
    pub fn next(&mut self, source: &Source) -> Result<Option<Line<'_>>, Error> {
        let unreadable = |error| source.unreadable("read it", error);
        match self {
            Self::Lines(lines) => lines.next_line().map_err(unreadable),
            Self::Records(records, _) => records.next_record().map_err(unreadable),
            Self::Elements(elements) => elements.next_element().map_err(|error| match error {
                ArrayError::Read(error) => unreadable(error),
                error => Error::Array { input: source.name.clone(), error },
            }),
        }
    }
}

/// How a table is read.
pub(super) struct Table<'a> {
    /// How its records are written.
    pub dialect: Dialect,
    /// What was known of that.
    pub asked: AskedDialect,
    /// Its columns.
    pub fields: &'a Fields,
}

/// Whether content that begins with these bytes may be an array, which is not split at lines.
pub(super) fn may_be_array(beginning: &[u8]) -> bool {
    is_array(beginning) || (!beginning.is_empty() && beginning.iter().all(|&byte| is_space(byte)))
}

/// Reads the first bytes, up to one that is neither white space nor the start of an array.
pub(super) fn beginning(content: &mut impl Read) -> io::Result<Vec<u8>> {
    const MARK_BYTES: usize = 3;
    input::beginning_while(content, SPACE_BYTES_MAX, |bytes| {
        bytes.len() <= MARK_BYTES || bytes[MARK_BYTES..].iter().all(|&byte| is_space(byte) || byte == b'[')
    })
}

/// Whether content that begins like an array is one. Reads on, at most an entry of maximum length, until this is known.
fn is_of_array(begun: &mut Vec<u8>, content: &mut impl Read, entry_bytes_max: usize) -> io::Result<bool> {
    let mut first = FirstLine::default();
    let mut n_examined = 0;
    loop {
        if let Some(is_array) = first.is_of_array(&begun[n_examined..]) {
            return Ok(is_array);
        }
        n_examined = begun.len();
        if n_examined > entry_bytes_max || content.by_ref().take(LOOKED_AT_ONCE).read_to_end(begun)? == 0 {
            return Ok(true);
        }
    }
}

/// Reads the header. Content without any record has no columns.
fn columns(
    records: &mut RecordReader<impl Read>,
    source: &Source,
    &Table { dialect, fields, .. }: &Table<'_>,
) -> Result<Columns, Error> {
    let input = || source.name.clone();
    let header = match records.header().map_err(|error| source.unreadable("read it", error))? {
        None => return Ok(Columns::none(dialect)),
        Some(header) => header.ok_or_else(|| Error::NoHeader { input: input() })?,
    };
    let position =
        |path: &FieldPath, option| match (&header.positions(&path.literal())[..], header.other_delimiter()) {
            (&[position], _) => Ok(position),
            ([], Some(found)) => {
                Err(Error::OtherDelimiter { input: input(), found, expected: dialect.delimiter })
            }
            ([], None) => {
                let found = shown(header.names().iter().map(String::as_str));
                Err(Error::NoColumn { input: input(), column: path.quoted(), found, option })
            }
            (positions, _) => {
                let numbers =
                    positions.iter().map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(" or ");
                Err(Error::EqualColumns { input: input(), column: path.quoted(), numbers, option })
            }
        };
    let text = fields.text.iter().map(|path| position(path, "--text-field")).collect::<Result<_, _>>()?;
    let rating = position(&fields.rating, "--rating-field")?;
    let name = &header.names()[rating];
    let is_class = fields.classes.as_ref().is_some_and(|classes| classes.rating(name).is_some());
    // A column that is selected by its number, in a file without a header.
    if *name != fields.rating.literal() && (is_class || Rating::from_text(name).is_some()) {
        return Err(Error::HeaderIsRecord { input: input(), found: name.clone() });
    }
    Ok(header.columns(text, rating))
}

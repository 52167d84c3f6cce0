//! Splits the decompressed content of a source into entries: lines, records of CSV, or elements of a JSON array.

use std::io::{self, Chain, Cursor, Read};
use std::sync::Arc;

use corpus::csv::{AskedDialect, Columns, CsvReader, Dialect, Header};
use corpus::encoding::{LineDecoder, UTF_8, hides};
use corpus::entry::Rating;
use corpus::format::{FieldPath, Fields, Format};
use corpus::json_array::{ArrayError, ElementReader, FirstLine, is_array, is_space};
use corpus::lines::{Line, LineReader};
use corpus::shell::word;
use input::{Input, Transcoded};
use program::exit::Exit;

use crate::columns::no_column;
use crate::error::Error;
use crate::options::ReadingOptions;
use crate::source::Source;

/// Maximum amount of white space before a JSON array.
const SPACE_BYTES_MAX: usize = 64 << 10;

/// Number of bytes read at once behind the beginning of an array.
const LOOKED_AT_ONCE: u64 = 64 << 10;

/// Content whose first bytes have been read for detection, decoded if it must be decoded before it is split.
type DecodedContent<R> = Transcoded<Chain<Cursor<Vec<u8>>, Input<R>>>;

/// Reads the entries of a source one by one.
#[derive(Debug)]
pub(crate) struct Entries<R: Read> {
    reader: EntryReader<R>,
    decoder: Option<LineDecoder>,
}

#[derive(Debug)]
enum EntryReader<R: Read> {
    Lines(LineReader<Chain<Cursor<Vec<u8>>, DecodedContent<R>>>),
    Elements(ElementReader<Chain<Cursor<Vec<u8>>, DecodedContent<R>>>),
    Records(Box<CsvReader<DecodedContent<R>>>, Arc<Columns>),
}

impl<R: Read> Entries<R> {
    /// Detects an array. Tables are read by [`Entries::of_table`].
    pub fn of(content: Input<R>, source: &Source, options: &ReadingOptions) -> Result<Self, Error> {
        let ReadingOptions { format, line_bytes_max: bytes_max, .. } = options;
        let unreadable = |error| source.failed(error);
        let (mut content, decoder) = decoded_if_needed(content, options).map_err(unreadable)?;
        let mut begun = match format {
            Format::Json(_) => beginning(&mut content).map_err(unreadable)?,
            _ => Vec::new(),
        };
        let has_array =
            is_array(&begun) && is_of_array(&mut begun, &mut content, *bytes_max).map_err(unreadable)?;
        let content = Cursor::new(begun).chain(content);
        let reader = if has_array {
            EntryReader::Elements(ElementReader::new(content, *bytes_max))
        } else {
            EntryReader::Lines(LineReader::new(content, *bytes_max))
        };
        Ok(Self { reader, decoder })
    }

    /// The decoder of entries, which has counted those that are not in their encoding.
    pub fn decoder(&self) -> Option<&LineDecoder> {
        self.decoder.as_ref()
    }

    /// Reads the header of a table, whose first bytes were read, and finds the columns.
    pub fn of_table(
        head: Vec<u8>,
        content: Input<R>,
        source: &Source,
        table: &Table<'_>,
        options: &ReadingOptions,
    ) -> Result<Self, Error> {
        let (content, mut decoder) = decoded_if_hidden(head, content, &table.dialect.syntax(), options);
        let mut records = CsvReader::new(content, table.dialect, options.line_bytes_max);
        let columns = columns(&mut records, &mut decoder, source, table)?;
        if table.asked.quote.is_none() {
            records.expect(&columns, table.fields);
        }
        Ok(Self { reader: EntryReader::Records(Box::new(records), Arc::new(columns)), decoder })
    }

    /// The numbers of lines of all records, and of records that hid others.
    pub fn table_lines(&self) -> (u64, u64) {
        match &self.reader {
            EntryReader::Records(records, _) => (records.n_lines(), records.n_hiding()),
            EntryReader::Lines(_) | EntryReader::Elements(_) => (0, 0),
        }
    }

    /// The columns of records.
    pub fn columns(&self) -> Option<Arc<Columns>> {
        match &self.reader {
            EntryReader::Records(_, columns) => Some(Arc::clone(columns)),
            _ => None,
        }
    }

    /// Whether the content is an array.
    pub fn are_elements(&self) -> bool {
        matches!(self.reader, EntryReader::Elements(_))
    }

    /// Returns the next entry of the source.
    pub fn next(&mut self, source: &Source) -> Result<Option<Line<'_>>, Error> {
        let unreadable = |error| source.failed(error);
        let entry = match &mut self.reader {
            EntryReader::Lines(lines) => lines.next_line().map_err(unreadable),
            EntryReader::Records(records, _) => records.next_record().map_err(unreadable),
            EntryReader::Elements(elements) => elements.next_element().map_err(|error| match error {
                ArrayError::Read(error) => unreadable(error),
                error => source.refused(Exit::BadInput, error),
            }),
        }?;
        Ok(match &mut self.decoder {
            None => entry,
            Some(decoder) => entry.map(|entry| decoder.decode(entry)),
        })
    }
}

/// How a table is read.
pub(crate) struct Table<'a> {
    /// How its records are written.
    pub dialect: Dialect,
    /// What was known of that.
    pub asked: AskedDialect,
    /// Its columns.
    pub fields: &'a Fields,
}

/// Decodes content of lines or of JSON as a stream if entries cannot be found in its bytes, because they may hide the
/// syntax of an array. Offsets are then those of the decoded content, as in UTF-16. The decoder is for its entries.
pub(crate) fn decoded_if_needed<R: Read>(
    mut content: Input<R>,
    options: &ReadingOptions,
) -> io::Result<(DecodedContent<R>, Option<LineDecoder>)> {
    let is_json = matches!(options.format, Format::Json(_));
    let begun = match is_json && content.still_in(options.encoding) != UTF_8 {
        true => beginning(&mut content)?,
        false => Vec::new(),
    };
    let syntax: &[u8] = if is_array(&begun) { b"[]{}\\" } else { b"" };
    Ok(decoded_if_hidden(begun, content, syntax, options))
}

/// Decodes content behind its first bytes as a stream if bytes of this syntax may be a part of another character.
pub(crate) fn decoded_if_hidden<R: Read>(
    begun: Vec<u8>,
    content: Input<R>,
    syntax: &[u8],
    &ReadingOptions { encoding, line_bytes_max, .. }: &ReadingOptions,
) -> (DecodedContent<R>, Option<LineDecoder>) {
    let still_in = content.still_in(encoding);
    let is_hidden = !syntax.is_empty() && hides(still_in, syntax);
    let decoder = match still_in == encoding && !is_hidden {
        true => LineDecoder::of(encoding, line_bytes_max),
        false => Some(LineDecoder::of_decoded()),
    };
    let content = Cursor::new(begun).chain(content);
    (Transcoded::of(content, if is_hidden { encoding } else { UTF_8 }), decoder)
}

/// Whether content that begins with these bytes may be an array, which is not split at lines.
pub(crate) fn may_be_array(beginning: &[u8]) -> bool {
    is_array(beginning) || (!beginning.is_empty() && beginning.iter().all(|&byte| is_space(byte)))
}

/// Reads the first bytes, up to one that is neither white space nor the start of an array.
pub(crate) fn beginning(content: &mut impl Read) -> io::Result<Vec<u8>> {
    const MARK_BYTES: usize = 3;
    input::beginning_while(content, SPACE_BYTES_MAX, |bytes| {
        bytes.len() <= MARK_BYTES || bytes[MARK_BYTES..].iter().all(|&byte| is_space(byte) || byte == b'[')
    })
}

/// Whether content that begins like an array is one. Reads on, at most an entry of maximum length, until this is known.
pub(crate) fn is_of_array(
    begun: &mut Vec<u8>,
    content: &mut impl Read,
    entry_bytes_max: usize,
) -> io::Result<bool> {
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
    records: &mut CsvReader<impl Read>,
    decoder: &mut Option<LineDecoder>,
    source: &Source,
    &Table { dialect, fields, .. }: &Table<'_>,
) -> Result<Columns, Error> {
    let refused = |why: String| source.refused(Exit::BadInput, why);
    let header = match records.header().map_err(|error| source.failed(error))? {
        None => return Ok(Columns::none(dialect)),
        Some(header) => match decoder {
            None => header,
            Some(decoder) => header.and_then(|header| header.decoded(decoder, dialect)),
        }
        .ok_or_else(|| {
            let found = "found a first line with an open quote or of more than 4 MiB";
            refused(format!("{found}, expected a header with names of columns; write one"))
        })?,
    };
    if let Some(found) = rating_in_place_of_name(&header, fields) {
        return Err(header_is_record(source, ("rating", found), header.names().len(), dialect));
    }
    let position =
        |path: &FieldPath, option| match (&header.positions(&path.literal())[..], header.other_delimiter()) {
            (&[position], _) => Ok(position),
            ([], Some(found)) => {
                let expected = format!("expected {}; pass {}", dialect.delimiter.name(), found.flag());
                let found = format!("found a header whose columns are separated by {}", found.name());
                Err(refused(format!("{found}, {expected}")))
            }
            ([], None) if header.names().first().is_some_and(|name| name.starts_with(['{', '['])) => {
                let expected = "expected a header with names of columns; pass --format json";
                Err(refused(format!("found JSON in the first line, {expected}")))
            }
            ([], None) => Err(no_column(source, path, header.names().iter().map(String::as_str), option)),
            (positions, _) => {
                let numbers =
                    positions.iter().map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(" or ");
                let remedy = format!("select it by its number with {option}: {numbers}");
                Err(refused(format!("found several columns {}, expected one; {remedy}", path.quoted())))
            }
        };
    let text = fields.text.iter().map(|path| position(path, "--text-field")).collect::<Result<_, _>>()?;
    let rating = position(&fields.rating, fields.rating_flag())?;
    Ok(header.columns(text, rating))
}

/// The error of a table whose first record has this rating or label and is no header.
pub(crate) fn header_is_record(
    source: &Source,
    (what, found): (&str, &str),
    n_columns: usize,
    dialect: Dialect,
) -> Error {
    // As `paste` reads it.
    let delimiter = char::from(dialect.delimiter.byte()).escape_default().to_string();
    let classes = match what {
        "rating" => ", or pass --format polarity-csv if each line is a class and a text",
        _ => "",
    };
    let why = format!(
        "found a first record with the {what} {found:?}, expected a header with names of columns; write one with the \
         numbers of the columns, as in (seq {n_columns} | paste -s -d {}; cat FILE) > NEW{classes}",
        word(&delimiter)
    );
    source.refused(Exit::BadInput, why)
}

/// The rating in a first record that has none of the required columns, and is therefore probably no header. Numbers alone are
/// one.
fn rating_in_place_of_name<'a>(header: &'a Header, fields: &Fields) -> Option<&'a str> {
    let mut required = fields.text.iter().chain([&fields.rating]);
    let names = header.names();
    let is_other = |name: &String| name.parse::<f64>().is_err();
    if fields.has_labels
        || required.any(|path| !header.positions(&path.literal()).is_empty())
        || !names.iter().any(is_other)
    {
        return None;
    }
    names.iter().find(|name| Rating::from_text(name).is_some()).map(String::as_str)
}

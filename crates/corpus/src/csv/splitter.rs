//! Splits a record into columns. The library `csv-core` does it, except where backslashes are escapes.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::dialect::{Delimiter, Dialect, Quote};

/// Splits records into columns and reuses its memory.
#[derive(Debug)]
pub(super) struct Splitter {
    dialect: Dialect,
    reader: Box<Reader>,
    /// The contents of all columns, without quotes.
    content: Vec<u8>,
    /// The end of each column in `content`.
    ends: Vec<usize>,
    /// The numbers of the columns that are null.
    nulls: Vec<usize>,
}

/// Null where backslashes are escapes, if it is a whole column without quotes.
const NULL: &[u8] = b"\\N";

impl Splitter {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            reader: Box::new(reader(dialect)),
            content: Vec::new(),
            ends: Vec::new(),
            nulls: Vec::new(),
        }
    }

    /// Splits records of this dialect from now on.
    #[inline]
    pub fn set_dialect(&mut self, dialect: Dialect) {
        if self.dialect != dialect {
            (self.dialect, *self.reader) = (dialect, reader(dialect));
        }
    }

    /// Returns the number of columns; `None` if there are more than `most`, or if a quote is not closed.
    pub fn split(&mut self, record: &[u8], most: usize) -> Option<usize> {
        if self.content.len() <= record.len() {
            self.content.resize(record.len() + 1, 0);
        }
        if self.ends.len() <= most {
            self.ends.resize(most + 1, 0);
        }
        self.nulls.clear();
        if self.dialect.quote == Quote::Backslash {
            return self.split_escaped(record, most);
        }
        self.reader.reset();
        let (mut written, mut n_columns) = (0, 0);
        // A line end ends the record, unless it is inside quotes. The reader ignores a record that is empty.
        for mut part in [record, b"\n"] {
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

    /// As [`Self::split`], with escapes as MySQL, PostgreSQL and Python write them.
    fn split_escaped(&mut self, record: &[u8], most: usize) -> Option<usize> {
        #[derive(PartialEq)]
        enum Within {
            Start,
            Unquoted,
            Quoted,
            /// Behind a quote that closes a column, or that is the first of two.
            Closed,
        }
        let delimiter = self.dialect.delimiter.byte();
        let (mut within, mut written, mut n_columns) = (Within::Start, 0, 0);
        let (mut bytes, mut column) = (record.iter(), record);
        while let Some(&byte) = bytes.next() {
            let mut content = byte;
            match within {
                Within::Start if byte == b'"' => {
                    within = Within::Quoted;
                    continue;
                }
                Within::Quoted if byte == b'"' => {
                    within = Within::Closed;
                    continue;
                }
                Within::Closed if byte == b'"' => within = Within::Quoted,
                _ if byte == b'\\' => {
                    content = match *bytes.next()? {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        escaped => escaped,
                    };
                    if within != Within::Quoted {
                        within = Within::Unquoted;
                    }
                }
                Within::Start | Within::Unquoted | Within::Closed if byte == delimiter => {
                    let (rest, column_bytes) = (bytes.as_slice(), column.len() - bytes.len() - 1);
                    self.end_column(&column[..column_bytes], n_columns, written)?;
                    n_columns += 1;
                    (within, column) = (Within::Start, rest);
                    continue;
                }
                Within::Start | Within::Closed => within = Within::Unquoted,
                Within::Unquoted | Within::Quoted => {}
            }
            self.content[written] = content;
            written += 1;
        }
        self.end_column(column, n_columns, written)?;
        n_columns += 1;
        (within != Within::Quoted && n_columns <= most).then_some(n_columns)
    }

    fn end_column(&mut self, column: &[u8], number: usize, end: usize) -> Option<()> {
        *self.ends.get_mut(number)? = end;
        if column == NULL {
            self.nulls.push(number);
        }
        Some(())
    }

    /// A column of the last record; `None` if it is null.
    #[inline]
    pub fn value(&self, number: usize) -> Option<&str> {
        let is_null = !self.nulls.is_empty() && self.nulls.contains(&number);
        (!is_null).then(|| self.column(number))
    }

    /// A column of the last record, whether or not it is null.
    pub fn column(&self, number: usize) -> &str {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        // Quotes, delimiters and backslashes are ASCII, so that the rest is UTF-8, as the record was.
        simdutf8::basic::from_utf8(&self.content[start..self.ends[number]]).unwrap_or_default()
    }
}

fn reader(Dialect { delimiter, quote }: Dialect) -> Reader {
    ReaderBuilder::new().delimiter(Delimiter::byte(delimiter)).quoting(quote != Quote::None).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_columns(quote: Quote, record: &str, expected: Option<&[&str]>) {
        let mut splitter = Splitter::new(Dialect { delimiter: Delimiter::Comma, quote });
        let found = splitter.split(record.as_bytes(), 3);
        let found = found.map(|n| (0..n).map(|column| splitter.column(column)).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{record}");
    }

    #[test]
    fn quotes_are_characters_if_there_is_no_quoting() {
        assert_columns(Quote::None, "\"a,b\",c", Some(&["\"a", "b\"", "c"]));
        assert_columns(Quote::None, "\"", Some(&["\""]));
        assert_columns(Quote::None, "a,\"\",", Some(&["a", "\"\"", ""]));
        assert_columns(Quote::None, "a,b,c,d", None);
    }

    #[test]
    fn a_backslash_escapes_inside_and_outside_of_quotes() {
        for (record, expected) in [
            (r#""he said \"so\", yes",5"#, Some(&["he said \"so\", yes", "5"][..])),
            (r#""he said ""so"", yes",5"#, Some(&["he said \"so\", yes", "5"])),
            (r"one\, two,5", Some(&["one, two", "5"])),
            (r#"\"one,5"#, Some(&["\"one", "5"])),
            (r#""C:\\new",1"#, Some(&[r"C:\new", "1"])),
            (r#""one\ntwo\té",1"#, Some(&["one\ntwo\té", "1"])),
            (r#""a"b,"","""#, Some(&["ab", "", ""])),
            (r#""a\\",2"#, Some(&[r"a\", "2"])),
            ("a\\\nb,3", Some(&["a\nb", "3"])),
            ("", Some(&[""])),
            (r#""open\",5"#, None),
            (r"cut\", None),
            ("a,b,c,d", None),
            ("a,b,c,d,e,f", None),
        ] {
            assert_columns(Quote::Backslash, record, expected);
        }
    }

    #[test]
    fn a_whole_column_without_quotes_is_null() {
        let mut splitter = Splitter::new(Dialect { delimiter: Delimiter::Comma, quote: Quote::Backslash });
        for (record, expected) in [
            (r"\N,3,\N", [None, Some("3"), None]),
            (r#""\N",\\N,\n"#, [Some("N"), Some(r"\N"), Some("\n")]),
            (r"a\N,\N ,\NN", [Some("aN"), Some("N "), Some("NN")]),
            (r"a,b,c", [Some("a"), Some("b"), Some("c")]),
        ] {
            assert_eq!(splitter.split(record.as_bytes(), 3), Some(3), "{record}");
            assert_eq!([0, 1, 2].map(|at| splitter.value(at)), expected, "{record}");
        }
    }
}

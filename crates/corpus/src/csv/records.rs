//! Splits CSV or TSV into records. A record ends at LF, CR or CRLF outside of quotes.
//!
//! A quote starts a quoted column only at the start of the column, and `""` inside quotes is a quote, as in RFC 4180. In
//! other dialects, a backslash escapes the next byte, or each line is a record.
//! A text that starts with a quote by chance would hide all lines up to the next quote. Therefore a quoted column with
//! a line break must end properly: its closing quote precedes a delimiter or a line end. Otherwise its quote is not
//! closed for this reader, and the record ends with the line in which it began. So it does if it hides records
//! ([`CsvReader::expect`]). The parser refuses that line. The lines inside the part that was searched in vain are
//! records, too, so that no byte is searched more than twice.

use std::io::{self, Read};

use super::dialect::Dialect;
use super::hidden::HiddenRecords;
use super::scan::{RecordScan, line_end};
use super::{Columns, Delimiter, Header};
use crate::fields::Fields;
use crate::lines::{Line, LineContent, is_blank};
use crate::rating_rule::RatingRule;
use crate::window::{Piece, Window};

/// Splits a stream of bytes into records.
#[derive(Debug)]
pub struct CsvReader<R> {
    window: Window<R>,
    dialect: Dialect,
    // The last record ended in a CR. An LF that follows belongs to it.
    after_cr: bool,
    // The offset up to which the end of a record was searched in vain.
    searched: u64,
    /// What hidden records are like, if they are searched.
    hidden: Option<HiddenRecords>,
    n_lines: u64,
    n_hiding: u64,
    open_at: Option<u64>,
    n_columns: Option<usize>,
}

impl<R: Read> CsvReader<R> {
    /// Reads from `source`. The limit applies to a record without its line end.
    pub fn new(source: R, dialect: Dialect, record_bytes_max: usize) -> Self {
        Self::within(Window::new(source, record_bytes_max), dialect)
    }

    fn within(window: Window<R>, dialect: Dialect) -> Self {
        let (after_cr, searched, hidden, open_at) = (false, 0, None, None);
        Self {
            window,
            dialect,
            after_cr,
            searched,
            hidden,
            n_lines: 0,
            n_hiding: 0,
            open_at,
            n_columns: None,
        }
    }

    /// Reads the header: the first record that is not blank, behind the line `sep=;` of Excel. Returns `None` if there is
    /// none, and `Some(None)` if it has an open quote or is too long.
    pub fn header(&mut self) -> io::Result<Option<Option<Header>>> {
        let (dialect, mut is_first) = (self.dialect, true);
        let header = loop {
            match self.next_record()?.map(|record| record.content) {
                None => break None,
                Some(LineContent::TooLong { .. }) => break Some(None),
                Some(LineContent::Bytes(record)) if is_blank(record) => {}
                Some(LineContent::Bytes(record)) if is_first && named_delimiter(record).is_some() => {
                    is_first = false;
                }
                Some(LineContent::Bytes(record)) => break Some(Header::parse(record, dialect)),
            }
        };
        self.n_lines = 0;
        Ok(header)
    }

    /// From now on, a record that hides records with these columns and fields ends with its first line.
    pub fn expect(&mut self, columns: &Columns, fields: &Fields) {
        self.hidden = Some(HiddenRecords::of(columns, RatingRule::of(fields)));
    }

    /// Number of lines of the records behind the header. A record has several if they end in quotes.
    pub fn n_lines(&self) -> u64 {
        self.n_lines
    }

    /// Number of records that hid others.
    pub fn n_hiding(&self) -> u64 {
        self.n_hiding
    }

    /// Number of columns of the last record, if its search has shown it.
    pub(super) fn n_columns(&self) -> Option<usize> {
        self.n_columns
    }

    /// The offset of the first record with a quote that was not closed before the end, if such a record was read.
    pub(super) fn open_at(&self) -> Option<u64> {
        self.open_at
    }

    /// Returns the next record, without its line end and without a byte-order mark; an empty line is an empty record.
    /// Returns `None` at the end.
    pub fn next_record(&mut self) -> io::Result<Option<Line<'_>>> {
        if std::mem::take(&mut self.after_cr) && self.window.unread()?.first() == Some(&b'\n') {
            self.window.take(1);
        }
        let offset = self.window.offset();
        if self.window.unread()?.is_empty() {
            return Ok(None);
        }
        self.window.skip_mark()?;
        self.n_lines += 1;
        self.n_columns = None;
        let (bytes, is_ended) = match self.line_in_searched() {
            Some(bytes) => (bytes, true),
            None => {
                let mut scan = RecordScan::new(self.dialect);
                let (searched, found) = match self.window.piece(|bytes| scan.end(bytes))? {
                    Piece::Held { bytes, is_ended } if !self.must_be_cut(&scan, bytes, is_ended, offset) => {
                        self.n_columns = scan.n_whole_columns();
                        (0, Some((bytes, is_ended)))
                    }
                    Piece::Held { bytes, .. } => (bytes, None),
                    Piece::TooLong => (self.window.bytes_max(), None),
                };
                self.searched = self.searched.max(self.window.offset() + searched as u64);
                match found.or_else(|| Some((line_end(self.window.held())?, true))) {
                    Some((bytes, is_ended)) if bytes <= self.window.bytes_max() => (bytes, is_ended),
                    _ => return self.too_long(offset).map(Some),
                }
            }
        };
        let content = self.window.take(bytes + usize::from(is_ended));
        self.after_cr = is_ended && content[bytes] == b'\r';
        Ok(Some(Line { offset, content: LineContent::Bytes(&content[..bytes]) }))
    }

    /// Whether a record ends with its first line. Otherwise its lines are counted.
    #[inline]
    fn must_be_cut(&mut self, scan: &RecordScan, bytes: usize, is_ended: bool, offset: u64) -> bool {
        scan.is_broken || (scan.is_multiline && self.several_must_be_cut(scan, bytes, is_ended, offset))
    }

    fn several_must_be_cut(&mut self, scan: &RecordScan, bytes: usize, is_ended: bool, offset: u64) -> bool {
        if !is_ended && scan.is_open() {
            self.open_at.get_or_insert(offset);
            return true;
        }
        let record = &self.window.held()[..bytes];
        if self.hidden.as_mut().is_some_and(|hidden| hidden.are_in(record, scan.n_columns)) {
            self.n_hiding += 1;
            return true;
        }
        self.n_lines += n_line_ends(record);
        false
    }

    /// The length of the next line, if it ends before the offset up to which the end of a record was searched in vain.
    fn line_in_searched(&self) -> Option<usize> {
        let searched = usize::try_from(self.searched.checked_sub(self.window.offset())?).ok()?;
        let held = self.window.held();
        line_end(&held[..searched.min(held.len())])
    }

    /// Skips a line.
    fn too_long(&mut self, offset: u64) -> io::Result<Line<'_>> {
        let (bytes, is_ended) = self.window.read_past(line_end)?;
        if is_ended {
            self.after_cr = self.window.take(1) == b"\r";
        }
        Ok(Line { offset, content: LineContent::TooLong { bytes, blank: false } })
    }
}

/// The delimiter in the first line that Excel reads and other programs show: `sep=;`, also in quotes.
pub(super) fn named_delimiter(record: &[u8]) -> Option<Delimiter> {
    let record = record.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(record);
    let (name, delimiter) = record.split_at_checked(b"sep=".len())?;
    let [delimiter] = delimiter else { return None };
    if name.eq_ignore_ascii_case(b"sep=") { Delimiter::of(char::from(*delimiter)) } else { None }
}

fn n_line_ends(bytes: &[u8]) -> u64 {
    if memchr::memchr(b'\r', bytes).is_none() {
        // The library counts one byte much faster than two.
        return memchr::memchr_iter(b'\n', bytes).count() as u64;
    }
    let ends = memchr::memchr2_iter(b'\n', b'\r', bytes);
    // A CRLF is one line end.
    ends.filter(|&at| bytes[at] == b'\r' || at == 0 || bytes[at - 1] != b'\r').count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::csv::Quote;

    type Owned = (u64, Result<Vec<u8>, u64>);

    const COMMAS: Dialect = Dialect { delimiter: Delimiter::Comma, quote: Quote::Double };

    fn records(source: impl Read, bytes_max: usize, buffer_bytes: usize) -> Vec<Owned> {
        let window = Window::with_buffer_bytes(source, bytes_max, buffer_bytes);
        let mut reader = CsvReader::within(window, COMMAS);
        let mut all = Vec::new();
        while let Some(line) = reader.next_record().unwrap() {
            let content = match line.content {
                LineContent::Bytes(bytes) => Ok(bytes.to_vec()),
                LineContent::TooLong { bytes, .. } => Err(bytes),
            };
            all.push((line.offset, content));
        }
        all
    }

    fn texts(text: &str) -> Vec<String> {
        let all = records(text.as_bytes(), 1000, 2);
        all.into_iter().map(|(_, record)| String::from_utf8(record.unwrap()).unwrap()).collect()
    }

    #[test]
    fn line_ends_in_quotes_do_not_end_a_record() {
        let text = "\u{FEFF}a,b\r\n\"x\ny\r\n\",1\r\"\"\"\n\"\",\",2\n\n \na\"b\"\n\"c\"d,\"e\"\n";
        let expected = ["a,b", "\"x\ny\r\n\",1", "\"\"\"\n\"\",\",2", "", " ", "a\"b\"", "\"c\"d,\"e\""];
        assert_eq!(texts(text), expected);
        let offsets: Vec<u64> = records(text.as_bytes(), 1000, 64).into_iter().map(|(at, _)| at).collect();
        assert_eq!(offsets, [0, 8, 18, 29, 30, 32, 37]);
        for end in ["", "\n", "\r", "\r\n"] {
            assert_eq!(texts(&format!("a,b{end}")), ["a,b"], "{end:?}");
        }
        assert_eq!(texts(""), [""; 0]);
    }

    #[test]
    fn a_quote_that_is_never_closed_hides_no_record() {
        for (text, expected) in [
            // Up to the end of the file.
            ("1,\"open\n2,b\n3,c\n", &["1,\"open", "2,b", "3,c"][..]),
            // Up to a quote in another record.
            ("1,\"open\n2,say \"b\"\n3,c\n", &["1,\"open", "2,say \"b\"", "3,c"]),
            ("1,\"open\n2,\"b\"\n3,c\n", &["1,\"open", "2,\"b\"", "3,c"]),
            ("1,\"open\n2,\"good\nmore\"\n3,c\n", &["1,\"open", "2,\"good\nmore\"", "3,c"]),
            ("1,\"open", &["1,\"open"]),
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
        // Up to the limit.
        let lines = format!("1,\"open\n{}", "2,b\n".repeat(500));
        assert_eq!(texts(&lines).len(), 501);
    }

    /// The records behind the header `text,stars`, and the numbers of lines and of records that hid others.
    fn behind_header(text: &str, quote: Quote) -> (Vec<String>, u64, u64) {
        for buffer_bytes in [1, 64] {
            let window = Window::with_buffer_bytes(text.as_bytes(), 1000, buffer_bytes);
            let mut reader = CsvReader::within(window, Dialect { delimiter: Delimiter::Comma, quote });
            let fields = Fields::named("text", "stars");
            let columns = reader.header().unwrap().unwrap().unwrap().selected(&fields).unwrap();
            reader.expect(&columns, &fields);
            let mut all = Vec::new();
            while let Some(Line { content: LineContent::Bytes(record), .. }) = reader.next_record().unwrap() {
                all.push(str::from_utf8(record).unwrap().to_owned());
            }
            if buffer_bytes > 1 {
                return (all, reader.n_lines(), reader.n_hiding());
            }
        }
        unreachable!("the last size returns")
    }

    #[test]
    fn records_that_a_quote_hides_are_records() {
        let hidden = ["\"good,5", "fine,4", "bad\",1", "\"so,\nso\",3"];
        let text = format!("\nsep=,\ntext,stars\n{}\n", hidden.join("\n"));
        let owned = hidden.map(str::to_owned).to_vec();
        assert_eq!(behind_header(&text, Quote::Double), (owned.clone(), 5, 1));
        assert_eq!(behind_header(&text, Quote::Backslash), (owned, 5, 1));
        let (lines, n_lines, n_hiding) = behind_header(&text, Quote::None);
        assert_eq!(
            (lines.len(), &lines[3..], n_lines, n_hiding),
            (5, &["\"so,", "so\",3"].map(str::to_owned)[..], 5, 0)
        );
    }

    #[test]
    fn lines_inside_records_are_counted() {
        let (records, n_lines, _) =
            behind_header("text,stars\r\n\"a\r\nb\n\rc\",5\r\n\r\nd,1", Quote::Double);
        assert_eq!((records.len(), n_lines), (3, 6));
    }

    #[test]
    fn a_backslash_escapes_quotes_and_line_ends() {
        let text = "text,stars\n\"a \\\"b\\\",\nc\\\\\",5\nd\\\ne,4\n\\\"f,3\n\"g\\\"h,2\ni,1\n";
        let expected = ["\"a \\\"b\\\",\nc\\\\\",5", "d\\\ne,4", "\\\"f,3", "\"g\\\"h,2", "i,1"];
        let (records, n_lines, _) = behind_header(text, Quote::Backslash);
        assert_eq!((records, n_lines), (expected.map(str::to_owned).to_vec(), 7));
    }

    #[test]
    fn the_first_line_of_excel_names_a_delimiter() {
        for (line, expected) in [
            ("sep=;", Some(Delimiter::Semicolon)),
            ("\"SEP=\t\"", Some(Delimiter::Tab)),
            ("sep=:", None),
            ("sep=", None),
            ("sep=,,", None),
            ("text", None),
        ] {
            assert_eq!(named_delimiter(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn quotes_that_are_never_closed_properly_take_linear_time() {
        let bytes_max = 1 << 20;
        let n_lines = 400_000;
        let time_of = |line: &str| {
            let text = line.repeat(n_lines);
            let started = std::time::Instant::now();
            let mut reader = CsvReader::new(text.as_bytes(), COMMAS, bytes_max);
            let mut n_records = 0;
            while let Some(record) = reader.next_record().unwrap() {
                n_records += 1;
                assert!(matches!(record.content, LineContent::Bytes(_)));
            }
            assert!(n_records >= n_lines, "{line:?}: {n_records}");
            started.elapsed()
        };
        // A search of up to 1 MiB per line would take minutes. The machine may be slow, or stop for some seconds.
        let limit = 20 * time_of("1,\"a\"\n") + std::time::Duration::from_secs(20);
        for line in ["b\",\"c\n", "1,\"a\n"] {
            let took = time_of(line);
            assert!(took < limit, "{line:?}: {took:?}, expected at most {limit:?}");
        }
    }

    #[test]
    fn a_record_beyond_the_limit_is_skipped_without_being_stored() {
        let long = 50_000_000;
        let source = b"1,".chain(io::repeat(b'x').take(long)).chain(&b"\r\n2,b"[..]);
        let found = records(source, 1000, 64);
        assert_eq!(found, [(0, Err(long + 2)), (long + 4, Ok(b"2,b".to_vec()))]);
        let quoted = format!("\"{}\",1\n2,b", "x".repeat(2000));
        for buffer_bytes in [64, 64 << 10] {
            let found = records(quoted.as_bytes(), 1000, buffer_bytes);
            assert_eq!(found, [(0, Err(2004)), (2005, Ok(b"2,b".to_vec()))]);
        }
    }

    /// The records of csv-core, which ignores empty lines.
    fn of_csv_core(text: &str) -> Vec<Vec<String>> {
        let mut reader = csv_core::Reader::new();
        let (mut rest, mut all) = (text.as_bytes(), Vec::new());
        let (mut output, mut ends) = (vec![0; 1000], vec![0; 100]);
        loop {
            let (mut n_output, mut n_ends) = (0, 0);
            loop {
                let (result, read, written, ended) =
                    reader.read_record(rest, &mut output[n_output..], &mut ends[n_ends..]);
                rest = &rest[read..];
                (n_output, n_ends) = (n_output + written, n_ends + ended);
                match result {
                    csv_core::ReadRecordResult::Record => break,
                    csv_core::ReadRecordResult::End => return all,
                    csv_core::ReadRecordResult::InputEmpty => {}
                    other => panic!("{other:?}"),
                }
            }
            let from = |at: usize| if at == 0 { 0 } else { ends[at - 1] };
            let field = |at: usize| String::from_utf8(output[from(at)..ends[at]].to_vec()).unwrap();
            all.push((0..n_ends).map(field).collect());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn records_equal_those_of_csv_core_for_every_block_size(
            pieces in prop::collection::vec(
                prop::sample::select(vec![",", "\n", "\r\n", "\r", "\"\"", "a", " ", "\u{E9}", "\"b\",", "\"c\nd\",", "\"e\"\"\r\n\"\n"]), 0..20),
            buffer_bytes in 1..9usize,
        ) {
            let text = pieces.concat();
            let found = records(text.as_bytes(), 1000, buffer_bytes);
            let split: Vec<Vec<String>> = found
                .iter()
                .map(|(_, record)| record.as_ref().unwrap())
                // A quote that the reader does not regard as closed is refused by the parser.
                .filter(|record| !record.is_empty())
                .flat_map(|record| of_csv_core(str::from_utf8(record).unwrap()))
                .collect();
            let mut whole = of_csv_core(&text);
            let is_cut = found.iter().any(|(_, record)| {
                let record = record.as_ref().unwrap();
                let mut scan = RecordScan::new(COMMAS);
                scan.end(record);
                scan.is_in_quotes()
            });
            if !is_cut {
                whole.retain(|fields| fields != &[""]);
                let split: Vec<_> = split.into_iter().filter(|fields| fields != &[""]).collect();
                prop_assert_eq!(split, whole);
            }
            // Nothing is lost, whatever the quotes.
            let bytes: usize = found.iter().map(|(_, record)| record.as_ref().unwrap().len()).sum();
            prop_assert!(bytes <= text.len());
            let letters = |text: &[u8]| text.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
            let kept: usize = found.iter().map(|(_, record)| letters(record.as_ref().unwrap())).sum();
            prop_assert_eq!(kept, letters(text.as_bytes()));
        }
    }
}

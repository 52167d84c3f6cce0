//! Finds the original reviews of the most wrong rows: the tables of `sentimill --origins` name their files and lines,
//! records, elements or rows. The texts are read there, except those of rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use corpus::clean::{Cleaner, Rules};
use corpus::csv::{Columns, CsvReader, Dialect};
use corpus::digest::text_hash;
use corpus::encoding::{Encoding, UTF_8, parse_encoding};
use corpus::format::{Fields, Format};
use corpus::json_array::{ArrayError, ElementReader};
use corpus::lines::{LINE_BYTES_MAX, LineContent, LineReader};
use corpus::review::ReviewParser;
use report::{OriginUnit, ReviewOrigin, RowOrigins, Run};
use tables::origins::{ELEMENTS, ENCODING, FILE, HASH, LINE, ROWS, names, of_dialect, schema};
use tables::{RowGroup, TableReader};

use crate::error::{Error, Result};

/// Maximum number of reviews per row that are shown.
const SHOWN_MAX: usize = 3;
/// Maximum number of characters of a text that are shown.
const TEXT_CHARS_MAX: usize = 4000;

/// Adds to each training the origins of its most wrong rows. Returns the number of rows that have one, and of all.
pub fn find(origins: &[PathBuf], runs: &mut [Run]) -> Result<(usize, usize)> {
    let hashes = |run: &Run| -> Vec<String> { run.wrong_hashes().into_iter().flatten().cloned().collect() };
    let mut wanted: Vec<u64> =
        runs.iter().flat_map(hashes).filter_map(|hash| u64::from_str_radix(&hash, 16).ok()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut found: HashMap<u64, RowOrigins> = HashMap::new();
    for path in origins {
        let read = |error: tables::Error| unreadable(path, error);
        let table = TableReader::open(path, schema()).map_err(read)?;
        let mut of_table: HashMap<u64, RowOrigins> = HashMap::new();
        let format = Format::with_texts(|name| table.metadata(name));
        let units = Units::of(&table, format.as_ref());
        table
            .each_group_with(HASH, &wanted, |rows| add(rows, &wanted, &units, &mut of_table))
            .map_err(read)?;
        if let Some(format) = format {
            let encoding = table.metadata(ENCODING).and_then(|name| parse_encoding(name).ok());
            read_texts(&mut of_table, &units, &format, encoding.unwrap_or(UTF_8));
        }
        for (hash, of_row) in of_table {
            let so_far = found.entry(hash).or_default();
            so_far.n_reviews += of_row.n_reviews;
            so_far.first.extend(of_row.first);
            so_far.first.truncate(SHOWN_MAX);
        }
    }
    let (mut n_found, mut n_rows) = (0, 0);
    for run in runs {
        n_rows += run.wrong_hashes().len();
        for hash in hashes(run) {
            let origins = u64::from_str_radix(&hash, 16).ok().and_then(|hash| found.get(&hash));
            if let Some(origins) = origins {
                n_found += 1;
                run.origins.insert(hash, origins.clone());
            }
        }
    }
    Ok((n_found, n_rows))
}

fn unreadable(path: &Path, error: tables::Error) -> Error {
    match error {
        tables::Error::Io { source, .. } => Error::io(path, source),
        tables::Error::Differs(found) => {
            Error::unexpected(path.display(), found, "a table of `sentimill --origins`")
        }
    }
}

/// What the numbers of a table count in each file.
struct Units {
    elements: HashSet<String>,
    rows: HashSet<String>,
    others: OriginUnit,
    dialects: HashMap<String, Dialect>,
}

impl Units {
    fn of(table: &TableReader, format: Option<&Format>) -> Self {
        let files = |key: &str| -> HashSet<String> {
            table.metadata(key).map_or_else(HashSet::new, |list| names(list).collect())
        };
        let (mut others, mut dialects) = (OriginUnit::Line, HashMap::new());
        if let Some(Format::Delimited { dialect: asked, .. }) = format {
            others = OriginUnit::Record;
            for dialect in asked.all() {
                let key = of_dialect(&dialect.delimiter.to_string(), &dialect.quote.to_string());
                dialects.extend(files(&key).into_iter().map(|file| (file, dialect)));
            }
        }
        Self { elements: files(ELEMENTS), rows: files(ROWS), others, dialects }
    }

    fn unit(&self, file: &str) -> OriginUnit {
        match file {
            _ if self.rows.contains(file) => OriginUnit::Row,
            _ if self.elements.contains(file) => OriginUnit::Element,
            _ => self.others,
        }
    }
}

/// Adds the reviews of the wanted rows.
fn add(rows: &RowGroup, wanted: &[u64], units: &Units, found: &mut HashMap<u64, RowOrigins>) {
    for row in 0..rows.n_rows() {
        let hash = rows.number(HASH, row);
        if wanted.binary_search(&hash).is_err() {
            continue;
        }
        let of_row = found.entry(hash).or_default();
        of_row.n_reviews += 1;
        if of_row.first.len() < SHOWN_MAX {
            let file = String::from_utf8_lossy(rows.text(FILE, row)).into_owned();
            let unit = units.unit(&file);
            of_row.first.push(ReviewOrigin { file, number: rows.number(LINE, row), unit, text: None });
        }
    }
}

/// The wanted entries of a file: by number, the hash of each review and its position among those of its row.
type WantedEntries = BTreeMap<u64, Vec<(u64, usize)>>;

/// Reads the texts of all reviews, each file once, up to its last wanted entry.
fn read_texts(
    found: &mut HashMap<u64, RowOrigins>,
    units: &Units,
    format: &Format,
    encoding: &'static Encoding,
) {
    let mut by_file: BTreeMap<String, (OriginUnit, WantedEntries)> = BTreeMap::new();
    for (&hash, of_row) in &*found {
        for (at, ReviewOrigin { file, number, unit, .. }) in of_row.first.iter().enumerate() {
            let (_, wanted) = by_file.entry(file.clone()).or_insert_with(|| (*unit, BTreeMap::new()));
            wanted.entry(*number).or_default().push((hash, at));
        }
    }
    for (file, (unit, wanted)) in by_file {
        // A pipe or a device would block, or never end.
        if fs::metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            // What cannot be read stays without a text, which the page states.
            let dialect = units.dialects.get(&file).copied();
            let content = input::open_as(Path::new(&file), encoding).map(|content| content.in_utf8(encoding));
            let _ = content.and_then(|content| read_file(content, (unit, dialect), &wanted, format, found));
        }
    }
}

fn read_file(
    content: impl Read,
    (unit, dialect): (OriginUnit, Option<Dialect>),
    wanted: &WantedEntries,
    format: &Format,
    found: &mut HashMap<u64, RowOrigins>,
) -> io::Result<()> {
    if unit == OriginUnit::Row {
        return Ok(());
    }
    // The table does not name the rules of its texts.
    let mut cleaners = Rules::ALL.map(Cleaner::new);
    let (mut parser, mut cleaned) = (ReviewParser::new(format.clone()), Vec::new());
    let Some(mut entries) = Entries::of(content, unit, dialect, format)? else { return Ok(()) };
    let last = wanted.keys().next_back().copied().unwrap_or_default();
    for number in 1..=last {
        let Some((entry, columns)) = entries.next()? else { break };
        let (Some(of_entry), LineContent::Bytes(entry)) = (wanted.get(&number), entry) else { continue };
        let mut compare = |text: &str| {
            for cleaner in &mut cleaners {
                cleaned.clear();
                cleaner.clean(text, &mut cleaned);
                let hash = text_hash(&cleaned);
                for &(_, review) in of_entry.iter().filter(|(wanted, _)| *wanted == hash) {
                    // Otherwise the file has changed.
                    if let Some(of_row) = found.get_mut(&hash) {
                        of_row.first[review].text = Some(shortened(text));
                    }
                }
            }
        };
        match columns {
            None => parser
                .each(entry, &mut |_, element| element.into_iter().for_each(|entry| compare(entry.text))),
            Some(columns) => {
                parser.parse_record(entry, columns).into_iter().for_each(|entry| compare(entry.text));
            }
        }
    }
    Ok(())
}

/// The entries of a file, as `sentimill` counts them.
enum Entries<R> {
    Lines(LineReader<R>),
    Elements(ElementReader<R>),
    Records(Box<CsvReader<R>>, Columns),
}

impl<R: Read> Entries<R> {
    /// `None` if the file has no such entries.
    fn of(
        content: R,
        unit: OriginUnit,
        dialect: Option<Dialect>,
        format: &Format,
    ) -> io::Result<Option<Self>> {
        Ok(match (unit, format) {
            (OriginUnit::Line, _) => Some(Self::Lines(LineReader::new(content, LINE_BYTES_MAX))),
            (OriginUnit::Element, _) => Some(Self::Elements(ElementReader::new(content, LINE_BYTES_MAX))),
            (OriginUnit::Record, Format::Delimited { dialect: asked, fields }) => {
                let dialect = dialect.unwrap_or(asked.default_dialect());
                let mut records = CsvReader::new(content, dialect, LINE_BYTES_MAX);
                let Some(Some(header)) = records.header()? else { return Ok(None) };
                if let Some(columns) = header.selected(fields) {
                    if asked.quote.is_none() {
                        records.expect(&columns, fields);
                    }
                    return Ok(Some(Self::Records(Box::new(records), columns)));
                }
                // A table of an older version does not name the column of the rating, which is not needed here.
                let rating = fields.text.first().cloned().unwrap_or_else(|| fields.rating.clone());
                let of_texts = Fields { rating, ..fields.clone() };
                header.selected(&of_texts).map(|columns| Self::Records(Box::new(records), columns))
            }
            _ => None,
        })
    }

    /// The next entry, and the columns of a record.
    fn next(&mut self) -> io::Result<Option<(LineContent<'_>, Option<&Columns>)>> {
        let (entry, columns) = match self {
            Self::Lines(lines) => (lines.next_line()?, None),
            Self::Elements(elements) => {
                let entry = elements.next_element().map_err(|error| match error {
                    ArrayError::Read(error) => error,
                    error => io::Error::other(error.to_string()),
                });
                (entry?, None)
            }
            Self::Records(records, columns) => (records.next_record()?, Some(&*columns)),
        };
        Ok(entry.map(|entry| (entry.content, columns)))
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::num::NonZeroUsize;

    use tables::{TableWriter, Value};

    use super::*;

    #[test]
    fn texts_are_read_where_the_table_says_unless_the_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reviews.json.gz");
        let lines = "{\"reviewText\": \"So <b>GOOD</b>!\", \"overall\": 5}\n\n{\"reviewText\": \"so good\", \"overall\": 1}\n";
        let packed = ::tests::compressed::gzip(lines.as_bytes());
        fs::File::create(&file).unwrap().write_all(&packed).unwrap();
        let file = file.to_str().unwrap();
        let hash = text_hash(b"so good");
        let table = folder.path().join("origins.parquet");
        let metadata = [("format", "json"), ("text-field", "reviewText")];
        let mut writer = TableWriter::create(&table, &schema(), &metadata, NonZeroUsize::MIN).unwrap();
        let mut rows = RowGroup::of(&schema());
        for (name, line) in [(file, 1), (file, 2), ("/no/such", 7), (file, 3)] {
            rows.push(&[Value::Number(hash), Value::Text(name.as_bytes()), Value::Number(line)]);
        }
        writer.write(rows).unwrap();
        writer.finish().unwrap();

        let reader = TableReader::open(&table, schema()).unwrap();
        let mut found = HashMap::new();
        let format = Format::with_texts(|name| reader.metadata(name)).unwrap();
        let units = Units::of(&reader, Some(&format));
        reader.each_group_with(HASH, &[hash], |rows| add(rows, &[hash], &units, &mut found)).unwrap();
        read_texts(&mut found, &units, &format, UTF_8);
        let origin = |file: &str, number, text: Option<&str>| ReviewOrigin {
            file: file.to_owned(),
            number,
            unit: OriginUnit::Line,
            text: text.map(str::to_owned),
        };
        let expected = RowOrigins {
            first: vec![
                origin(file, 1, Some("So <b>GOOD</b>!")),
                origin(file, 2, None),
                origin("/no/such", 7, None),
            ],
            n_reviews: 4,
        };
        assert_eq!(found[&hash], expected);

        // The same line has another text now.
        fs::write(file, lines.replace("GOOD", "BAD")).unwrap();
        found.get_mut(&hash).unwrap().first[0].text = None;
        read_texts(&mut found, &units, &Format::default(), UTF_8);
        assert_eq!(found[&hash].first[0].text, None);
    }

    /// File, number, unit and text of a review.
    type Expected<'a> = (&'a str, u64, OriginUnit, Option<&'a str>);

    #[test]
    fn records_and_elements_are_read_by_their_numbers_and_rows_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let csv = write("a.csv", "\ntext,stars\n\"fine,\nthanks\",5\n\n\"So \"\"good\"\"\",4\n");
        let tabs = write("a.tsv", "text\tstars\n\"odd\t5\nSo \"good\"\t4\n");
        let hiding = write("hiding.csv", "text,stars\n\"open,5\nfine,4\nSo good,5\nbad\",1\n");
        let array = write("a.json", "[{\"text\": \"fine\"},\n 7, {\"text\": \"So good\"}]");
        let rows = write("a.parquet", "PAR1");
        let lines = write("b.json", "{\"text\": \"so good?\"}\n");
        let hash = text_hash(b"so good");
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [Expected<'a>]);
        let dialect = of_dialect("tab", "none");
        let scaled = write("scaled.csv", "text,stars\n\"open,9/10\nfine,7/10\nSo good,n/a\nbad\",1/10\n");
        let cases: [Case<'_>; 5] = [
            (
                &[("format", "csv"), ("text-field", "text"), ("rating-field", "stars"), (&dialect, &tabs)],
                &[(&tabs, 2, OriginUnit::Record, Some("So \"good\""))],
            ),
            (
                &[("format", "csv"), ("text-field", "text"), ("rating-field", "stars")],
                &[(&hiding, 3, OriginUnit::Record, Some("So good"))],
            ),
            (
                &[
                    ("format", "csv"),
                    ("text-field", "text"),
                    ("rating-field", "stars"),
                    ("rating-scale", "1-10"),
                    ("unrated", "n/a"),
                ],
                &[(&scaled, 3, OriginUnit::Record, Some("So good"))],
            ),
            (
                &[("format", "csv"), ("text-field", "text")],
                &[(&csv, 3, OriginUnit::Record, Some("So \"good\"")), (&csv, 2, OriginUnit::Record, None)],
            ),
            (
                &[("format", "json"), ("text-field", "text"), (ELEMENTS, &array), (ROWS, &rows)],
                &[
                    (&array, 3, OriginUnit::Element, Some("So good")),
                    (&rows, 1, OriginUnit::Row, None),
                    (&lines, 1, OriginUnit::Line, Some("so good?")),
                ],
            ),
        ];
        for (number, (metadata, expected)) in cases.into_iter().enumerate() {
            let table = folder.path().join(format!("{number}.origins"));
            let mut writer = TableWriter::create(&table, &schema(), metadata, NonZeroUsize::MIN).unwrap();
            let mut rows = RowGroup::of(&schema());
            for (file, number, ..) in expected {
                rows.push(&[Value::Number(hash), Value::Text(file.as_bytes()), Value::Number(*number)]);
            }
            writer.write(rows).unwrap();
            writer.finish().unwrap();
            let reader = TableReader::open(&table, schema()).unwrap();
            let format = Format::with_texts(|name| reader.metadata(name)).unwrap();
            let units = Units::of(&reader, Some(&format));
            let mut found = HashMap::new();
            reader.each_group_with(HASH, &[hash], |rows| add(rows, &[hash], &units, &mut found)).unwrap();
            read_texts(&mut found, &units, &format, UTF_8);
            let origin = |&(file, number, unit, text): &Expected<'_>| ReviewOrigin {
                file: file.to_owned(),
                number,
                unit,
                text: text.map(str::to_owned),
            };
            assert_eq!(found[&hash].first, expected.iter().map(origin).collect::<Vec<_>>());
        }
    }
}

//! Finds the original reviews of the most wrong rows: the tables of `sentimill --origins` name their files and lines,
//! and the texts are read there.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use corpus::clean::Cleaner;
use corpus::digest::text_hash;
use corpus::format::Format;
use corpus::lines::{LINE_BYTES_MAX, LineContent, LineReader};
use corpus::review::ReviewParser;
use report::{ReviewOrigin, RowOrigins, Run};
use tables::origins::{FILE, HASH, LINE, schema};
use tables::{Rows, TableReader};

use crate::error::{Error, Result};

/// Maximum number of reviews per row that are shown.
const SHOWN_MAX: usize = 3;
/// Maximum number of characters of a text that are shown.
const TEXT_CHARS_MAX: usize = 4000;

/// Adds to each training the origins of its most wrong rows. Returns the number of rows that have one, and of all.
pub fn find(origins: &[PathBuf], runs: &mut [Run]) -> Result<(usize, usize)> {
    let hashes = |run: &Run| -> Vec<String> {
        let wrong = run.evaluation.iter().flat_map(|record| &record.wrong);
        wrong.filter_map(|row| row.hash.clone()).collect()
    };
    let mut wanted: Vec<u64> =
        runs.iter().flat_map(hashes).filter_map(|hash| u64::from_str_radix(&hash, 16).ok()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut found: HashMap<u64, RowOrigins> = HashMap::new();
    for path in origins {
        let read = |error: tables::Error| unreadable(path, error);
        let table = TableReader::open(path, schema()).map_err(read)?;
        let mut of_table: HashMap<u64, RowOrigins> = HashMap::new();
        table.each_group_with(HASH, &wanted, |rows| add(rows, &wanted, &mut of_table)).map_err(read)?;
        if let Some(format) = Format::with_texts(|name| table.metadata(name)) {
            read_texts(&mut of_table, &format);
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
        n_rows += run.evaluation.iter().map(|record| record.wrong.len()).sum::<usize>();
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
        tables::Error::Differs(found) => Error::Unexpected {
            path: path.to_owned(),
            found,
            expected: "a table of `sentimill --origins`".to_owned(),
        },
    }
}

/// Adds the reviews of the wanted rows.
fn add(rows: &Rows, wanted: &[u64], found: &mut HashMap<u64, RowOrigins>) {
    for row in 0..rows.n_rows() {
        let hash = rows.number(HASH, row);
        if wanted.binary_search(&hash).is_err() {
            continue;
        }
        let of_row = found.entry(hash).or_default();
        of_row.n_reviews += 1;
        if of_row.first.len() < SHOWN_MAX {
            let file = String::from_utf8_lossy(rows.text(FILE, row)).into_owned();
            of_row.first.push(ReviewOrigin { file, line: rows.number(LINE, row), text: None });
        }
    }
}

/// Reads the texts of all reviews, each file once, up to its last wanted line.
fn read_texts(found: &mut HashMap<u64, RowOrigins>, format: &Format) {
    let mut by_file: BTreeMap<String, BTreeMap<u64, Vec<(u64, usize)>>> = BTreeMap::new();
    for (&hash, of_row) in &*found {
        for (number, ReviewOrigin { file, line, .. }) in of_row.first.iter().enumerate() {
            by_file.entry(file.clone()).or_default().entry(*line).or_default().push((hash, number));
        }
    }
    for (file, lines) in by_file {
        // A pipe or a device would block, or never end.
        if fs::metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            // What cannot be read stays without a text, which the page states.
            let _ = read_file(Path::new(&file), &lines, format, found);
        }
    }
}

fn read_file(
    path: &Path,
    wanted: &BTreeMap<u64, Vec<(u64, usize)>>,
    format: &Format,
    found: &mut HashMap<u64, RowOrigins>,
) -> std::io::Result<()> {
    let (mut parser, mut cleaner, mut cleaned) =
        (ReviewParser::new(format.clone()), Cleaner::default(), Vec::new());
    let mut lines = LineReader::new(input::open(path)?, LINE_BYTES_MAX);
    let last = wanted.keys().next_back().copied().unwrap_or_default();
    for number in 1..=last {
        let Some(line) = lines.next_line()? else { break };
        let (Some(of_line), LineContent::Bytes(line)) = (wanted.get(&number), line.content) else { continue };
        let Ok(text) = parser.parse_text(line) else { continue };
        cleaned.clear();
        cleaner.clean(text, &mut cleaned);
        let hash = text_hash(&cleaned);
        for &(_, review) in of_line.iter().filter(|(wanted, _)| *wanted == hash) {
            // Otherwise the file has changed.
            if let Some(of_row) = found.get_mut(&hash) {
                of_row.first[review].text = Some(shortened(text));
            }
        }
    }
    Ok(())
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
        let mut rows = Rows::of(&schema());
        for (name, line) in [(file, 1), (file, 2), ("/no/such", 7), (file, 3)] {
            rows.push(&[Value::Number(hash), Value::Text(name.as_bytes()), Value::Number(line)]);
        }
        writer.write(rows).unwrap();
        writer.finish().unwrap();

        let reader = TableReader::open(&table, schema()).unwrap();
        let mut found = HashMap::new();
        reader.each_group_with(HASH, &[hash], |rows| add(rows, &[hash], &mut found)).unwrap();
        read_texts(&mut found, &Format::with_texts(|name| reader.metadata(name)).unwrap());
        let origin = |file: &str, line, text: Option<&str>| ReviewOrigin {
            file: file.to_owned(),
            line,
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
        read_texts(&mut found, &Format::default());
        assert_eq!(found[&hash].first[0].text, None);
    }
}

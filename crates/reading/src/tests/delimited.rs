//! CSV and TSV.

use corpus::clean::Rules;
use corpus::cleaned::{CleanedReviews, Review};
use corpus::csv::{AskedDialect, Delimiter, Dialect, Quote};
use corpus::format::Fields;
use program::exit::Exit;

use super::*;

fn csv(text: &str, rating: &str, threads: usize) -> ReadingOptions {
    let (text, rating) = (text.parse::<corpus::format::FieldPaths>().unwrap().0, rating.parse().unwrap());
    let fields = Fields { text, rating, ..Fields::default() };
    let format = Format::Delimited { dialect: AskedDialect::of(Delimiter::Comma), fields };
    ReadingOptions { format, ..options(threads) }
}

/// A file, and its records with their offsets.
fn table() -> (String, Vec<Owned>) {
    let mut text = "\u{FEFF}id,text,stars\r\n".to_owned();
    let mut records = Vec::new();
    for number in 0..80_000 {
        let record = match number % 3 {
            0 => format!("{number},plain,5"),
            1 => format!("{number},\"one, \"\"two\"\"\r\nthree\",\"4\""),
            _ => String::new(),
        };
        records.push((0, text.len() as u64, OwnedContent::Line(record.clone().into_bytes())));
        text.push_str(&record);
        // An LF behind a CR would be a part of the same line end.
        text.push_str(if number % 3 == 0 { "\r" } else { ["\r\n", "\n"][number % 2] });
    }
    (text, records)
}

#[test]
fn records_of_plain_and_compressed_files_are_read() {
    let (text, expected) = table();
    assert!(text.len() > 1 << 20, "several batches");
    for by in 0..4 {
        let folder = folder(&[("a.csv", &compressed(by, text.as_bytes()))]);
        for threads in [1, 3] {
            let reading = Reading::start(all_of(&folder), &csv("text", "stars", threads)).unwrap();
            assert!(read(&reading, threads).unwrap() == expected, "{by}");
            assert_eq!(Some(reading.bytes_read()), reading.bytes());
        }
    }
}

#[test]
fn each_file_has_its_own_header() {
    let folder =
        folder(&[("a", b"text,stars\nx,1\n"), ("b", b"\n  \nstars,text\n2,y\n"), ("c", b""), ("d", b"\n")]);
    let reading = Reading::start(all_of(&folder), &csv("text", "stars", 2)).unwrap();
    let mut found = Vec::new();
    reading
        .each(|entry| {
            let columns = entry.columns.unwrap();
            let mut reviews = CleanedReviews::of(csv("text", "stars", 1).format, Rules::Letters);
            let Content::Line(line) = entry.what else { panic!("{entry:?}") };
            let Review { text, rating, .. } = reviews.read_record(line, columns).unwrap();
            found.push((String::from_utf8(text.to_vec()).unwrap(), rating.stars()));
            Ok::<_, Error>(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [("x".to_owned(), 1), ("y".to_owned(), 2)]);
}

#[test]
fn a_missing_column_is_an_error_before_any_record_is_read() {
    let long = format!("text,stars{}\n", ",".repeat(40));
    let huge = format!("{}\n", "x".repeat(2 << 20));
    for (content, text, rating, expected) in [
        (
            "text,stars\nx,1\n",
            "body",
            "stars",
            "/b.csv: found no column \"body\" among text, stars; name the right column with --text-field",
        ),
        (
            "text,stars\n",
            "text",
            "3",
            "found no column \"3\" among text, stars; name the right column with --rating-field",
        ),
        ("text,stars\n", "text,0", "2", "found no column \"0\" among"),
        (
            "Fits well,5\n",
            "1",
            "2",
            "found a first record with the rating \"5\", expected a header with names of columns",
        ),
        (
            "Fits well,5\nToo small,1\n",
            "body",
            "stars",
            "found a first record with the rating \"5\", expected a header with names of columns; write one with the numbers of \
             the columns, as in (seq 2 | paste -s -d ,; cat FILE) > NEW",
        ),
        ("4,5\nx,1\n", "body", "stars", "found no column \"body\" among 4, 5; name the right column"),
        ("body,5\nx,1\n", "body", "stars", "found no column \"stars\" among body, 5; name the right column"),
        ("text;stars\n", "text", "stars", "/b.csv: found columns separated by semicolons, unlike "),
        (
            "text\tstars\n",
            "text",
            "stars",
            "/a.csv (columns separated by commas), expected one dialect; read them by separate commands, or write them with one \
             delimiter",
        ),
        (
            "text,stars,text\n",
            "text",
            "stars",
            "found several columns \"text\", expected one; select it by its number with --text-field: 1 or 3",
        ),
        (&long, "text", "x.y", ", …; name the right column"),
        ("text,\"stars\nx,1\n", "text", "stars", "found a first line with an open quote"),
        (
            &huge,
            "text",
            "stars",
            "found a first line with an open quote or of more than 4 MiB, expected a header",
        ),
    ] {
        let folder = folder(&[("a.csv", b"body,text,stars,3,0,x.y\n"), ("b.csv", content.as_bytes())]);
        let error = Reading::start(all_of(&folder), &csv(text, rating, 1)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
}

#[test]
fn a_table_without_a_header_is_refused_if_its_columns_are_numbers() {
    let of = |file: &str, fields: Fields| {
        let dialect = AskedDialect::of(if file.contains('\t') { Delimiter::Tab } else { Delimiter::Comma });
        let folder = folder(&[("a.csv", file.as_bytes())]);
        let format = Format::Delimited { dialect, fields };
        let options = ReadingOptions { format, ..options(1) };
        let started = Reading::start(all_of(&folder), &options).map(|_| ());
        // Standard input is examined while it is read.
        let mut sources = all_of(&folder);
        sources.iter_mut().for_each(|source| source.kind = Kind::Pipe(folder.path().join("a.csv")));
        let piped = Reading::start(sources, &options).unwrap();
        assert_eq!(read(&piped, 1).is_ok(), started.is_ok());
        started.map_err(|error| error.to_string())
    };
    let numbers = || Fields::named("1", "2");
    let labels = || Fields { has_labels: true, ..numbers() };
    let scaled = || Fields { scale: "0-10".parse().ok(), ..numbers() };
    let classes = || Fields { classes: "true=5,false=1".parse().ok(), ..numbers() };
    let expected =
        "expected a header with names of columns; write one with the numbers of the columns, as in ";
    for (file, fields, found) in [
        ("good,music\nbad,toys\nfine, music\n", labels(), "the label \"music\""),
        ("good,7/10\nbad,1/10\n", scaled(), "the rating \"7/10\""),
        ("good,True\nbad,False\n", classes(), "the rating \"True\""),
        ("good,5\nbad,1\n", numbers(), "the rating \"5\""),
        // The number of its column.
        ("bad,2\ngood,5\n", numbers(), "the rating \"2\""),
        ("good,2\nbad,3\ngood,2\n", labels(), "the label \"2\""),
    ] {
        for (file, columns) in [
            (file.to_owned(), "(seq 2 | paste -s -d ,;"),
            (file.replace(',', "\t"), "(seq 2 | paste -s -d '\\t';"),
        ] {
            let error = of(&file, fields.clone()).unwrap_err();
            assert!(
                error.contains(&format!("found a first record with {found}, {expected}{columns}")),
                "{error}"
            );
        }
    }
    // A header, also one that is repeated, and labels that are not.
    for (file, fields) in [
        ("text,label\ngood,music\nbad,music\ntext,label\ngood,toys\n", labels()),
        ("text,stars\ngood,5\n", numbers()),
        ("text,\ngood,5\n", Fields { unrated: "null".parse().unwrap(), ..numbers() }),
        ("1,2\ngood,2\nbad,3\n", labels()),
        ("good,music\nbad,toys\n", labels()),
    ] {
        assert_eq!(of(file, fields), Ok(()), "{file}");
    }
}

/// The records of all threads, without those that are blank.
fn records(reading: &Reading) -> Vec<String> {
    let all = read(reading, 2).unwrap().into_iter();
    let text = |(_, _, content)| match content {
        OwnedContent::Line(line) => String::from_utf8(line).unwrap(),
        other => panic!("{other:?}"),
    };
    all.map(text).collect()
}

fn dialect(delimiter: Delimiter, quote: Quote) -> Dialect {
    Dialect { delimiter, quote }
}

/// Quotes are characters in the first text and in the last.
const CHARACTERS: &str = "text\tstars\n\"great\t5\nfine\t4\nbad\"\t1\n";

#[test]
fn local_files_have_the_dialect_that_all_of_them_may_have() {
    // The first file, which has no quote in its head, would be RFC 4180 alone.
    let mut plain = "text\tstars\n".to_owned() + &"plain\t5\n".repeat(200_000);
    plain += "\"odd\t5\n";
    for by in [0, 1] {
        let folder = folder(&[
            ("E.tsv", b""),
            ("a.tsv", &compressed(by, plain.as_bytes())),
            ("b.tsv", CHARACTERS.as_bytes()),
            ("c.tsv", b"\n\n"),
        ]);
        let reading = Reading::start(all_of(&folder), &csv("text", "stars", 2)).unwrap();
        let found = records(&reading);
        assert_eq!((found.len(), found[200_000].as_str()), (200_004, "\"odd\t5"));
        let FoundTables { dialects, n_lines, notices } = reading.tables();
        assert_eq!((dialects, n_lines), (vec![(dialect(Delimiter::Tab, Quote::None), 2)], 200_004));
        let name = folder.path().join("a.tsv");
        let expected =
            format!("{} and 1 more file: columns separated by tabs, quotes are characters", name.display());
        assert_eq!(notices, [expected]);
    }
}

#[test]
fn the_dialect_of_a_stream_is_found_in_its_first_bytes() {
    let folder = folder(&[]);
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let read = |content: &[u8], other: &[u8]| {
        let file = folder.path().join("other.csv");
        std::fs::write(&file, other).unwrap();
        let inputs = if other.is_empty() { vec![path.clone()] } else { vec![file, path.clone()] };
        let reading = Reading::start(found(&inputs).unwrap(), &csv("text", "stars", 2)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&path, content).unwrap());
            super::read(&reading, 2).map(|entries| (entries.len(), reading.tables().dialects))
        })
    };
    let characters = dialect(Delimiter::Tab, Quote::None);
    assert_eq!(read(CHARACTERS.as_bytes(), b"").unwrap(), (3, vec![(characters, 1)]));
    let agreeing = gzip(b"text\tstars\nplain\t5\n");
    assert_eq!(read(&agreeing, CHARACTERS.as_bytes()).unwrap(), (4, vec![(characters, 2)]));
    let error = read(b"text;stars\nfine;5\n", CHARACTERS.as_bytes()).unwrap_err().remove(0);
    let error = error.to_string();
    assert!(error.contains("/pipe: found columns separated by semicolons, unlike "), "{error}");
    // A flag cannot set two delimiters.
    let remedy = ", expected one dialect; read them by separate commands, or write them with one delimiter";
    assert!(error.ends_with(remedy), "{error}");
    let quoted = b"text\tstars\n\"a\tb\"\t5\n";
    let error = read(quoted, CHARACTERS.as_bytes()).unwrap_err().remove(0).to_string();
    assert!(error.ends_with("or set the dialect of all with --delimiter tab --quote double"), "{error}");
}

#[test]
fn records_that_a_quote_hides_far_behind_the_head_are_read() {
    let mut text = "text\tstars\n".to_owned() + &"plain\t5\n".repeat(200_000);
    text += "\"odd\t5\n";
    text += &"fine\t4\n".repeat(9);
    text += "bad\"\t1\nlast\t2\n";
    let folder = folder(&[("a.tsv", text.as_bytes())]);
    let reading = Reading::start(all_of(&folder), &csv("text", "stars", 2)).unwrap();
    assert_eq!(records(&reading).len(), 200_012);
    let FoundTables { notices, n_lines, .. } = reading.tables();
    assert_eq!((notices.len(), n_lines), (2, 200_012));
    let expected = "1 record contains what looks like further records, which are read in its place; pass --quote none if \
                    quotes are characters, or --quote double if not";
    assert!(notices[1].ends_with(expected), "{notices:?}");
    // The dialect was set.
    let ReadingOptions { format: Format::Delimited { mut dialect, fields }, .. } = csv("text", "stars", 2)
    else {
        panic!("csv is delimited")
    };
    (dialect.delimiter, dialect.quote) = (Some(Delimiter::Tab), Some(Quote::Double));
    let format = Format::Delimited { dialect, fields };
    let reading = Reading::start(all_of(&folder), &ReadingOptions { format, ..options(2) }).unwrap();
    assert_eq!(records(&reading).len(), 200_002);
    let FoundTables { notices, n_lines, .. } = reading.tables();
    assert_eq!((notices, n_lines), (Vec::new(), 200_012));
}

//! CSV and TSV.

use corpus::csv::Delimiter;
use corpus::format::Fields;
use program::exit::Exit;

use super::*;

fn csv(text: &str, rating: &str, threads: usize) -> ReadingOptions {
    let (text, rating) = (text.parse::<corpus::format::FieldPaths>().unwrap().0, rating.parse().unwrap());
    let format =
        Format::Delimited { delimiter: Delimiter::Comma, fields: Fields { text, rating, classes: None } };
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
            let mut reviews = corpus::cleaned::CleanedReviews::of(csv("text", "stars", 1).format);
            let Content::Line(line) = entry.what else { panic!("{entry:?}") };
            let (text, rating) = reviews.read_record(line, columns).unwrap();
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
            "text;stars\n",
            "text",
            "stars",
            "separated by ';', expected commas; write it with commas, or with tabs",
        ),
        ("text\tstars\n", "text", "stars", "separated by '\\t', expected commas; pass --format tsv"),
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

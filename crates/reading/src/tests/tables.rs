//! Rows of Parquet files.

use std::path::PathBuf;
use std::process::Command;

use ::tests::compressed::gzip;
use corpus::format::ClassRatings;
use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use program::exit::Exit;
use tempfile::TempDir;

use super::*;

/// The texts and the ratings of a row group.
type GroupColumns<'a, R> = (&'a [Option<&'a [u8]>], &'a [Option<R>]);

/// A Parquet file with one row group per slice of rows, and a schema whose first two columns are text and
/// rating.
fn parquet<R: DataType>(schema: &str, groups: &[GroupColumns<'_, R::T>]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_data_page_row_count_limit(100).set_write_batch_size(10);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    for (texts, ratings) in groups {
        let mut group = file.next_row_group().unwrap();
        let levels = |is_some: &dyn Fn(usize) -> bool| -> Vec<i16> {
            (0..texts.len()).map(|row| i16::from(is_some(row))).collect()
        };
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<_> = texts.iter().flatten().map(|text| ByteArray::from(text.to_vec())).collect();
        let text_levels = levels(&|row| texts[row].is_some());
        column.typed::<ByteArrayType>().write_batch(&values, Some(&text_levels), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<_> = ratings.iter().flatten().cloned().collect();
        let rating_levels = levels(&|row| ratings[row].is_some());
        column.typed::<R>().write_batch(&values, Some(&rating_levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.into_inner().unwrap()
}

const NUMBERS: &str = "message m { optional binary reviewText (STRING); optional double overall; }";

fn row(number: u64, text: Option<&str>, stars: Option<u8>) -> Owned {
    (0, number, OwnedContent::Row(text.map(str::to_owned), stars))
}

#[test]
fn rows_of_all_row_groups_are_read_with_their_numbers() {
    let texts: Vec<String> = (0..5000).map(|number| format!("text {number}")).collect();
    let values: Vec<_> = texts.iter().map(|text| Some(text.as_bytes())).collect();
    let ratings: Vec<_> = (0..5000).map(|number| (number % 7 != 0).then(|| f64::from(number % 7))).collect();
    let groups = [(&values[..3000], &ratings[..3000]), (&[], &[]), (&values[3000..], &ratings[3000..])];
    let folder = folder(&[("a", &parquet::<DoubleType>(NUMBERS, &groups))]);
    let expected: Vec<_> = (0..5000)
        .map(|number| {
            let stars = (number % 7) as u8;
            row(number, Some(&texts[number as usize]), (1..=5).contains(&stars).then_some(stars))
        })
        .collect();
    for threads in 1..4 {
        let reading = Reading::start(all_of(&folder), &options(threads)).unwrap();
        assert_eq!(read(&reading, threads).unwrap(), expected);
        assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

#[test]
fn a_row_is_read_as_a_line_with_the_same_content() {
    let long = b"x".repeat(101);
    let texts: [Option<&[u8]>; 6] =
        [None, Some(b""), Some(b"a\xFFb\xC3"), Some(b"ok"), Some(&long), Some(b"ok")];
    let spelled = [Some("4.0"), None, Some(" 5"), Some("4.5"), Some("1"), Some("\u{FFFD}")];
    let spelled = spelled.map(|rating| rating.map(|rating| ByteArray::from(rating.as_bytes().to_vec())));
    let schema = "message m { optional binary text (STRING); optional binary stars (STRING); }";
    let folder = folder(&[("a", &parquet::<ByteArrayType>(schema, &[(&texts, &spelled)]))]);
    let format = Format::Json(corpus::format::Preset::Yelp.fields());
    let options = ReadingOptions { format, line_bytes_max: 100, ..options(2) };
    let reading = Reading::start(all_of(&folder), &options).unwrap();
    let expected = [
        row(0, None, Some(4)),
        row(1, Some(""), None),
        row(2, Some("a\u{FFFD}b\u{FFFD}"), Some(5)),
        row(3, Some("ok"), None),
        (0, 4, OwnedContent::TooLong(101, false)),
        row(5, Some("ok"), None),
    ];
    let mut rows = read(&reading, 2).unwrap();
    rows.sort_unstable_by_key(|row| row.1);
    assert_eq!(rows, expected);
}

#[test]
fn a_table_is_refused_with_an_encoding() {
    let folder = folder(&[("a", &parquet::<DoubleType>(NUMBERS, &[(&[Some(b"ok")], &[Some(4.0)])]))]);
    let encoding = corpus::encoding::parse_encoding("latin1").unwrap();
    let error = Reading::start(all_of(&folder), &ReadingOptions { encoding, ..options(1) }).unwrap_err();
    let expected = "/a: found a Parquet or Arrow file, whose texts are UTF-8, expected text in windows-1252; omit --encoding,";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn integers_are_read_as_ratings() {
    let schema = "message m { optional binary reviewText; optional int64 overall; }";
    let ratings = [Some(1), Some(5), Some(6), Some(-1), Some(257), None];
    let texts = [Some(&b"ok"[..]); 6];
    let folder = folder(&[("a", &parquet::<Int64Type>(schema, &[(&texts, &ratings)]))]);
    let rows = read(&Reading::start(all_of(&folder), &options(1)).unwrap(), 1).unwrap();
    let stars = rows.iter().map(|(_, _, what)| match what {
        OwnedContent::Row(_, stars) => *stars,
        _ => panic!("{what:?}"),
    });
    assert_eq!(stars.collect::<Vec<_>>(), [Some(1), Some(5), None, None, None, None]);
}

#[test]
fn texts_longer_than_a_batch_are_read_few_at_a_time() {
    let long: Vec<_> = (0..300).map(|number| vec![b'a' + number as u8 % 26; 100_000]).collect();
    let texts: Vec<_> = long.iter().map(|text| Some(&text[..])).collect();
    let ratings = vec![Some(4.0); 300];
    let folder = folder(&[("a", &parquet::<DoubleType>(NUMBERS, &[(&texts, &ratings)]))]);
    let rows = read(&Reading::start(all_of(&folder), &options(2)).unwrap(), 2).unwrap();
    for (number, text) in long.iter().enumerate() {
        assert_eq!(rows[number], row(number as u64, Some(str::from_utf8(text).unwrap()), Some(4)));
    }
}

#[test]
fn a_parquet_file_without_the_columns_is_refused_with_a_list_of_its_columns() {
    let file = |schema: &str| parquet::<DoubleType>(schema, &[(&[Some(b"ok")], &[Some(4.0)])]);
    let other = file("message m { optional binary body (STRING); optional double stars; }");
    let empty = |schema: &str| {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap().into_inner().unwrap()
    };
    for (content, expected) in [
        (other, "found no column \"reviewText\" among body, stars; name the right column with --text-field"),
        (
            empty("message m { optional binary reviewText; optional double stars; }"),
            "found no column \"overall\" among reviewText, stars; name the right column with --rating-field",
        ),
        (
            empty("message m { optional double reviewText; optional double overall; }"),
            "found values of the type DOUBLE in the column \"reviewText\", expected texts; name the right column with --text-field",
        ),
        (
            empty("message m { optional binary reviewText; required int96 overall; }"),
            "found values of the type INT96 in the column \"overall\", expected numbers or texts;",
        ),
        (
            empty("message m { repeated binary reviewText; required int32 overall; }"),
            "found a list in the column \"reviewText\", expected one value per row;",
        ),
        (
            empty("message m { required group reviewText { required binary a; } required int32 overall; }"),
            "found a list or a structure in the column \"reviewText\", expected one value per row;",
        ),
        (
            empty("message m { required binary reviewText; required fixed_len_byte_array(2) overall; }"),
            "found values of the type FIXED_LEN_BYTE_ARRAY in the column \"overall\"",
        ),
    ] {
        let folder = folder(&[("a.parquet", &content)]);
        let error = refused(all_of(&folder), &options(1));
        assert!(error.to_string().contains(&format!("/a.parquet: {expected}")), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
}

#[test]
fn parquet_is_refused_as_a_file_of_lines() {
    let folder = folder(&[("a", &parquet::<DoubleType>(NUMBERS, &[(&[Some(b"ok")], &[Some(4.0)])]))]);
    let format = Format::FastText { ratings: ClassRatings::default() };
    let error = refused(all_of(&folder), &ReadingOptions { format, ..options(1) });
    assert!(
        error
            .to_string()
            .ends_with("found a Parquet file, expected lines of the format fasttext; omit --format fasttext"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn a_truncated_parquet_file_is_an_error() {
    let whole = parquet::<DoubleType>(NUMBERS, &[(&[Some(b"ok")], &[Some(4.0)])]);
    for end in MAGIC.len()..whole.len() {
        let folder = folder(&[("a", &whole[..end])]);
        let error = refused(all_of(&folder), &options(1));
        assert!(error.to_string().contains(": the Parquet file is damaged ("), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
}

// A flipped bit may change values: only pages with checksums detect it, and the crate that these tests use
// writes none.
#[test]
fn a_flipped_bit_of_a_parquet_file_never_causes_a_panic() {
    let texts: Vec<_> =
        (0..40).map(|row| (row % 9 != 0).then(|| format!("text {row}").into_bytes())).collect();
    let texts: Vec<_> = texts.iter().map(|text| text.as_deref()).collect();
    let ratings: Vec<_> = (0..40).map(|row| (row % 5 != 0).then(|| f64::from(row % 5))).collect();
    let groups = [(&texts[..25], &ratings[..25]), (&texts[25..], &ratings[25..])];
    let whole = parquet::<DoubleType>(NUMBERS, &groups);
    let folder = folder(&[("a", b"")]);
    for at in (8 * MAGIC.len()..8 * whole.len()).step_by(5) {
        let mut flipped = whole.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        std::fs::write(folder.path().join("a"), &flipped).unwrap();
        let rows = Reading::start(all_of(&folder), &options(1))
            .map_err(|error| vec![error])
            .and_then(|reading| read(&reading, 1));
        if let Err(errors) = rows {
            assert_eq!(errors[0].exit(), Exit::BadInput, "{errors:?}");
        }
    }
}

/// The content of `numbered_rows`, written by the library of most files: each codec, both kinds of pages,
/// checksums, and ratings of each type.
const PYARROW: &str = r#"
import pyarrow as pa, pyarrow.parquet as pq
n = range(3000)
texts = [None if i % 11 == 0 else f"grüße {i} " * (i % 7) for i in n]
stars = [None if i % 13 == 0 else i % 7 for i in n]
types = [pa.int8(), pa.int32(), pa.uint64(), pa.float32(), pa.float64(), pa.string()]
for i, codec in enumerate(["none", "snappy", "gzip", "brotli", "zstd", "lz4"]):
    ratings = pa.array(stars if i < 5 else [star if star is None else f"{star}.0" for star in stars], types[i])
    text = pa.array(texts, [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())][i % 3])
    table = pa.table({"overall": ratings, "other": list(n), "reviewText": text})
    delta = dict(use_dictionary=False, column_encoding={"reviewText": "DELTA_BYTE_ARRAY"}) if i == 4 else {}
    pq.write_table(table, f"{i}", compression=codec, row_group_size=1300, data_page_size=5000,
                   data_page_version="12"[i % 2] + ".0", write_page_checksum=True, **delta)
"#;

pub(super) fn numbered_rows(source: usize) -> Vec<Owned> {
    let rows = (0..3000_usize).map(|row| {
        let text = (row % 11 != 0).then(|| format!("grüße {row} ").repeat(row % 7));
        let stars = Some((row % 7) as u8).filter(|stars| row % 13 != 0 && (1..=5).contains(stars));
        (source, row as u64, OwnedContent::Row(text, stars))
    });
    rows.collect()
}

/// Files written by Python; `None` if it is not installed, which is allowed only on a developer's machine.
pub(super) fn written_by_python(script: &str) -> Option<TempDir> {
    let python = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.deps/test/bin/python");
    if !python.is_file() {
        let skipped = format!("SKIPPED pyarrow: {} is missing; run `make setup`", python.display());
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{skipped}");
        eprintln!("{skipped}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let written = Command::new(python).args(["-c", script]).current_dir(folder.path()).status().unwrap();
    assert!(written.success());
    Some(folder)
}

#[test]
fn rows_written_by_pyarrow_are_read() {
    let Some(folder) = written_by_python(PYARROW) else { return };
    let reading = Reading::start(all_of(&folder), &options(3)).unwrap();
    let expected: Vec<_> = (0..6).flat_map(numbered_rows).collect();
    assert!(read(&reading, 3).unwrap() == expected);
}

/// The content of `numbered_rows` with other types of ratings: decimals of each width, and numbers of 16 bits.
const RATINGS: &str = r#"
import decimal, numpy, pyarrow as pa, pyarrow.parquet as pq
n = range(3000)
texts = [None if i % 11 == 0 else f"grüße {i} " * (i % 7) for i in n]
stars = [None if i % 13 == 0 else i % 7 for i in n]
decimals = [star if star is None else decimal.Decimal(star) for star in stars]
halves = [star if star is None else numpy.float16(star) for star in stars]
for i, (values, of, as_integer) in enumerate([
        (stars, pa.uint8(), False), (stars, pa.int16(), False), (stars, pa.uint32(), False), (halves, pa.float16(), False),
        (decimals, pa.decimal128(5, 2), False), (decimals, pa.decimal128(5, 2), True), (decimals, pa.decimal128(15, 3), True),
        (decimals, pa.decimal128(35, 9), False)]):
    table = pa.table({"overall": pa.array(values, of), "reviewText": pa.array(texts, pa.large_string())})
    pq.write_table(table, f"{i}", store_decimal_as_integer=as_integer)
"#;

#[test]
fn ratings_of_any_type_of_numbers_are_read() {
    let Some(folder) = written_by_python(RATINGS) else { return };
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    let found = read(&reading, 2).unwrap();
    for (source, rows) in found.chunks(3000).enumerate() {
        assert!(rows == numbered_rows(source), "{source}: {:?}", &rows[..3]);
    }
    assert_eq!(found.len(), 8 * 3000);
}

#[test]
fn a_column_whose_name_has_dots_comes_before_one_in_a_structure() {
    let schema =
        "message m { optional binary a.b; optional double overall; optional group a { optional binary b; } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for (number, text) in [(0, "literal"), (1, ""), (2, "nested")] {
        let mut column = group.next_column().unwrap().unwrap();
        let level = [if number == 2 { 2 } else { 1 }];
        if number == 1 {
            column.typed::<DoubleType>().write_batch(&[4.0], Some(&level), None).unwrap();
        } else {
            let text = ByteArray::from(text.as_bytes().to_vec());
            column.typed::<ByteArrayType>().write_batch(&[text], Some(&level), None).unwrap();
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    let folder = folder(&[("a", &file.into_inner().unwrap())]);
    for (path, expected) in [("a.b", "literal"), (r"a\.b", "literal")] {
        let fields =
            corpus::format::Fields { text: vec![path.parse().unwrap()], ..corpus::format::Fields::default() };
        let options = ReadingOptions { format: Format::Json(fields), ..options(1) };
        let reading = Reading::start(all_of(&folder), &options).unwrap();
        assert_eq!(read(&reading, 1).unwrap(), [row(0, Some(expected), Some(4))]);
    }
}

#[test]
fn of_columns_with_the_same_name_the_last_is_read() {
    let schema =
        "message m { optional binary reviewText; optional double overall; optional binary reviewText; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for text in [Some("first"), None, Some("last")] {
        let mut column = group.next_column().unwrap().unwrap();
        match text {
            None => column.typed::<DoubleType>().write_batch(&[4.0], Some(&[1]), None).unwrap(),
            Some(text) => {
                let text = ByteArray::from(text.as_bytes().to_vec());
                column.typed::<ByteArrayType>().write_batch(&[text], Some(&[1]), None).unwrap()
            }
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    let folder = folder(&[("a", &file.into_inner().unwrap())]);
    let found = read(&Reading::start(all_of(&folder), &options(1)).unwrap(), 1).unwrap();
    assert_eq!(found, [row(0, Some("last"), Some(4))]);
}

#[test]
fn a_flipped_bit_is_detected_if_pages_have_checksums() {
    let Some(folder) = written_by_python(PYARROW) else { return };
    let path = folder.path().join("0");
    let whole = std::fs::read(&path).unwrap();
    let text = whole.windows(8).position(|bytes| bytes == b"e 997 gr").unwrap();
    let mut flipped = whole;
    flipped[text + 1] ^= 1;
    std::fs::write(&path, flipped).unwrap();
    let error = refused(found(&[path]).unwrap(), &options(3));
    assert!(error.to_string().contains("checksum mismatch"), "{error}");
}

#[test]
fn parquet_in_a_stream_is_refused() {
    let folder = folder(&[("a.gz", &gzip(b"PAR1\x15\x04\nb"))]);
    let error = refused(all_of(&folder), &options(1));
    assert!(
        error
            .to_string()
            .ends_with("a.gz: found Parquet, which can only be read from a file that is not compressed; write it to a file on this machine")
    );
}

/// A file whose only text takes a page of this many bytes.
fn with_page(bytes: usize) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(NUMBERS).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::ZSTD(Default::default()))
        .set_dictionary_enabled(false);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ByteArray::from(vec![b'a'; bytes]);
    column.typed::<ByteArrayType>().write_batch(&[text], Some(&[1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[5.0], Some(&[1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.into_inner().unwrap()
}

#[test]
fn a_page_that_exceeds_the_memory_is_refused_before_it_is_decompressed() {
    let file = with_page(300 << 20);
    assert!(file.len() < 1 << 20, "{}", file.len());
    let folder = folder(&[("a", &file)]);
    let reading = Reading::start(all_of(&folder), &options(1)).unwrap();
    let error = read(&reading, 1).unwrap_err().remove(0);
    assert_eq!(error.exit(), Exit::BadInput);
    let message = error.to_string();
    let expected = ": found pages of 3145";
    assert!(message.contains(expected), "{message}");
    let remedy =
        "expected at most 268435456; write the file with smaller pages, or raise --memory of sentimill";
    assert!(message.ends_with(remedy), "{message}");
}

/// A file of 1000 texts, whose list of lengths declares 2²⁸ - 1 of them.
fn with_lengths(encoding: Encoding) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(NUMBERS).unwrap());
    let text = ColumnPath::from("reviewText");
    let properties = WriterProperties::builder()
        .set_column_dictionary_enabled(text.clone(), false)
        .set_column_encoding(text, encoding);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let texts: Vec<_> = (0..1000).map(|row| vec![b'a'; if row == 0 { 1 << 13 } else { 1 }].into()).collect();
    column.typed::<ByteArrayType>().write_batch(&texts, Some(&[1; 1000]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[5.0; 1000], Some(&[1; 1000]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let mut file = file.into_inner().unwrap();
    // Blocks of 128 in 4 parts; 1000 lengths, the first 2¹³; and, in as many bytes, 2²⁸ - 1, the first 0.
    let [declared, forged] = [[0xe8, 0x07, 0x80, 0x80, 0x01], [0xff, 0xff, 0xff, 0x7f, 0x00]];
    let whole = [&[0x80, 0x01, 0x04], &declared[..]].concat();
    let at = file.windows(whole.len()).position(|window| window == whole).unwrap();
    file[at + 3..][..5].copy_from_slice(&forged);
    file
}

#[test]
fn more_lengths_than_values_are_refused_before_they_take_memory() {
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        let folder = folder(&[("a", &with_lengths(encoding))]);
        let reading = Reading::start(all_of(&folder), &options(1)).unwrap();
        let error = read(&reading, 1).unwrap_err().remove(0);
        assert_eq!(error.exit(), Exit::BadInput);
        let expected = "found 268435455 lengths in a page of 1000 values";
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_schema_of_deeply_nested_groups_is_refused() {
    let groups = 10_000;
    let elements = groups + 2;
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc, (elements & 0x7f) as u8 | 0x80, (elements >> 7) as u8];
    (0..=groups).for_each(|_| footer.extend([0x35, 0x02, 0x18, 0x01, b'g', 0x15, 0x02, 0x00]));
    footer.extend([0x15, 0x0c, 0x25, 0x00, 0x18, 0x01, b'c', 0x00, 0x00]);
    let mut file = b"PAR1".to_vec();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    let folder = folder(&[("a", &file)]);
    let error = Reading::start(all_of(&folder), &options(1)).unwrap_err();
    assert_eq!(error.exit(), Exit::BadInput);
    let expected =
        ": found a schema of 101 or more nested groups, expected at most 100; write its columns outside ";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn columns_of_parquet_are_kept_if_asked() {
    let schema = "message m { optional binary reviewText (STRING); optional int64 overall; }";
    let groups = [(&[Some(&b"a"[..]), None][..], &[Some(9_007_199_254_740_993), Some(5)][..])];
    let folder = folder(&[("a", &parquet::<Int64Type>(schema, &groups))]);
    let days = "message m { optional binary reviewText (STRING); optional int64 overall (TIMESTAMP(MILLIS, true)); }";
    for (schema, names, values) in [
        (schema, &["reviewText", "overall"][..], "[Text([97]), Whole(9007199254740993)]"),
        (days, &["reviewText"], "[Text([97])]"),
        // Hive, Spark and Impala write texts without a type.
        (
            "message m { optional binary reviewText; optional int64 overall; }",
            &["reviewText", "overall"],
            "[Text([97]), Whole(9007199254740993)]",
        ),
    ] {
        std::fs::write(folder.path().join("a"), parquet::<Int64Type>(schema, &groups)).unwrap();
        let options = ReadingOptions { columns: KeptColumns::All, ..options(1) };
        let reading = Reading::start(all_of(&folder), &options).unwrap();
        let columns = reading.row_columns(0).unwrap();
        assert_eq!(columns.names.iter().map(|name| &**name).collect::<Vec<_>>(), names);
        let mut seen = Vec::new();
        let read = reading.each(|entry| {
            seen.push(format!("{:?}", entry.values));
            Ok::<_, Error>(())
        });
        read.unwrap();
        assert_eq!((seen.len(), seen[0].as_str()), (2, values));
    }
}

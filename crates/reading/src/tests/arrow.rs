//! Rows of Arrow files and streams.

use ::tests::compressed::gzip;
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    StructArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use program::exit::Exit;

use super::tables::{numbered_rows, written_by_python};
use super::*;

/// The content of `numbered_rows`, in each format, with each compression, and with texts and ratings of each type.
const PYARROW: &str = r#"
import decimal, pyarrow as pa
n = range(3000)
texts = [None if i % 11 == 0 else f"grüße {i} " * (i % 7) for i in n]
stars = [None if i % 13 == 0 else i % 7 for i in n]
spelled = [star if star is None else f"{star}.0" for star in stars]
of_text = [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string()), pa.string_view(), pa.binary()]
decimals = [star if star is None else decimal.Decimal(star) for star in stars]
of_rating = [(stars, pa.int8()), (stars, pa.uint16()), (stars, pa.int64()), (stars, pa.uint64()), (stars, pa.float32()),
             (stars, pa.float64()), (decimals, pa.decimal128(9, 2)), (decimals, pa.decimal64(9, 3)), (spelled, pa.string()),
             (spelled, pa.dictionary(pa.int8(), pa.string())), (spelled, pa.string_view()), (stars, pa.float16())]
for i, (values, of) in enumerate(of_rating):
    if of == pa.float16():
        import numpy
        ratings = pa.array([None if v is None else numpy.float16(v) for v in values], of)
    elif pa.types.is_dictionary(of):
        ratings = pa.array(values, pa.string()).dictionary_encode().cast(of)
    else:
        ratings = pa.array(values, of)
    of = of_text[i % len(of_text)]
    text = pa.array(texts, pa.string())
    text = text.dictionary_encode().cast(of) if pa.types.is_dictionary(of) else text.cast(of)
    nested = pa.array([[{"a": j, "b": ["x"] * (j % 3)}] if j % 2 else None for j in n])
    union = pa.UnionArray.from_sparse(pa.array([0] * 3000, pa.int8()), [pa.array(list(n)), pa.nulls(3000, pa.string())])
    table = pa.table({"union": union, "nested": nested, "overall": ratings, "more": text, "none": pa.nulls(3000),
                      "reviewText": text, "last": list(n)})
    options = pa.ipc.IpcWriteOptions(compression=[None, "lz4", "zstd"][i % 3])
    write = pa.ipc.new_file if i % 2 else pa.ipc.new_stream
    with write(f"{i:02}", table.schema, options=options) as out:
        out.write_table(table, max_chunksize=700)
"#;

#[test]
fn rows_written_by_pyarrow_are_read() {
    let Some(folder) = written_by_python(PYARROW) else { return };
    for threads in [1, 3] {
        let reading = Reading::start(all_of(&folder), &options(threads)).unwrap();
        let found = read(&reading, threads).unwrap();
        for source in 0..12 {
            let of_source: Vec<_> = found.iter().filter(|row| row.0 == source).cloned().collect();
            assert!(of_source == numbered_rows(source), "{source}: {:?}", &of_source[..3]);
        }
        assert_eq!(found.len(), 12 * 3000);
        assert_eq!(reading.sources().len(), 12);
    }
}

/// Dictionaries that grow, and that are replaced, in the course of a stream; and the cache of a dataset.
const DICTIONARIES: &str = r#"
import pyarrow as pa, datasets
n = range(3000)
texts = [None if i % 11 == 0 else f"grüße {i} " * (i % 7) for i in n]
stars = [None if i % 13 == 0 else i % 7 for i in n]
schema = pa.schema({"reviewText": pa.dictionary(pa.int32(), pa.string()), "overall": pa.int32()})
for name, deltas in ("0", True), ("1", False):
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
    with pa.ipc.new_stream(name, schema, options=options) as out:
        for end in range(700, 3700, 700):
            known = pa.array(texts[:end] if deltas else texts[end - 700:end]).dictionary_encode().dictionary
            at = {text: key for key, text in enumerate(known.to_pylist())}
            keys = pa.array([at.get(text) for text in texts[end - 700:end]], pa.int32())
            column = pa.DictionaryArray.from_arrays(keys, known)
            out.write_batch(pa.record_batch([column, pa.array(stars[end - 700:end], pa.int32())], schema=schema))
datasets.Dataset.from_dict({"reviewText": texts, "overall": stars}).save_to_disk("cache")
"#;

#[test]
fn changing_dictionaries_and_caches_of_datasets_are_read() {
    let Some(folder) = written_by_python(DICTIONARIES) else { return };
    let cache = folder.path().join("cache/data-00000-of-00001.arrow");
    let places = [folder.path().join("0"), folder.path().join("1"), cache];
    let reading = Reading::start(found(&places).unwrap(), &options(2)).unwrap();
    let expected: Vec<_> = (0..3).flat_map(numbered_rows).collect();
    assert!(read(&reading, 2).unwrap() == expected);
}

fn batch(rows: std::ops::Range<usize>) -> RecordBatch {
    let texts: StringArray =
        rows.clone().map(|row| (!row.is_multiple_of(9)).then(|| format!("text {row}"))).collect();
    let ratings: Float64Array =
        rows.map(|row| (!row.is_multiple_of(5)).then_some((row % 5) as f64)).collect();
    RecordBatch::try_from_iter([
        ("overall", Arc::new(ratings) as ArrayRef),
        ("reviewText", Arc::new(texts) as ArrayRef),
    ])
    .unwrap()
}

fn row(row: usize) -> Owned {
    let text = (!row.is_multiple_of(9)).then(|| format!("text {row}"));
    (0, row as u64, OwnedContent::Row(text, (!row.is_multiple_of(5)).then_some((row % 5) as u8)))
}

fn file(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch(0..1).schema(), options).unwrap();
    [0..25, 25..25, 25..40].into_iter().for_each(|rows| writer.write(&batch(rows)).unwrap());
    writer.into_inner().unwrap()
}

fn stream(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch(0..1).schema(), options).unwrap();
    [0..25, 25..40].into_iter().for_each(|rows| writer.write(&batch(rows)).unwrap());
    writer.into_inner().unwrap()
}

fn all() -> [Vec<u8>; 4] {
    let zstd = Some(CompressionType::ZSTD);
    [file(None), stream(None), file(zstd), stream(zstd)]
}

#[test]
fn rows_have_their_numbers_in_the_file() {
    for content in all() {
        let folder = folder(&[("a", &content)]);
        let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
        assert_eq!(read(&reading, 2).unwrap(), (0..40).map(row).collect::<Vec<_>>());
    }
}

#[test]
fn a_truncated_file_is_an_error() {
    for whole in all() {
        for end in 8..whole.len() {
            let folder = folder(&[("a", &whole[..end])]);
            let error = refused(all_of(&folder), &options(1));
            let is_damaged = error.to_string().contains("/a: the Arrow file is damaged (");
            assert!(is_damaged, "{end} of {}: {error}", whole.len());
            assert_eq!(error.exit(), Exit::BadInput);
        }
    }
    let twice = [stream(None), stream(None)].concat();
    let error = refused(all_of(&folder(&[("a", &twice)])), &options(1));
    assert!(error.to_string().contains("bytes follow the end of its stream"), "{error}");
}

#[test]
fn a_stream_without_the_mark_of_its_end_is_refused_with_both_causes() {
    let whole = stream(None);
    // The mark is the last 8 bytes.
    let error = refused(all_of(&folder(&[("a", &whole[..whole.len() - 8])])), &options(1));
    let expected = format!(
        "/a: the Arrow file is damaged (no end-of-stream mark at its end, byte {}): truncated, or its writer did not close \
         it; write it again",
        whole.len() - 8
    );
    assert!(error.to_string().ends_with(&expected), "{error}");
    assert_eq!(error.exit(), Exit::BadInput);
}

#[test]
fn a_flipped_bit_never_causes_a_crash() {
    let folder = folder(&[("a", b"")]);
    for whole in all() {
        for at in (64..8 * whole.len()).step_by(7) {
            let mut flipped = whole.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            std::fs::write(folder.path().join("a"), &flipped).unwrap();
            let rows = Reading::start(all_of(&folder), &options(1))
                .map_err(|error| vec![error])
                .and_then(|reading| read(&reading, 1));
            if let Err(errors) = rows {
                let code = errors[0].exit();
                assert!([Exit::BadInput, Exit::Usage].contains(&code), "{errors:?}");
            }
        }
    }
}

#[test]
fn a_declared_size_is_checked_before_memory_is_allocated() {
    let whole = stream(Some(CompressionType::ZSTD));
    // The first bytes of a compressed buffer are its size: here that of the offsets of the texts, 26 × 4 bytes.
    let size = 104_i64.to_le_bytes();
    let at =
        whole.windows(12).position(|bytes| bytes[..8] == size && bytes[8..] == *b"\x28\xb5\x2f\xfd").unwrap();
    let mut large = whole;
    large[at..at + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes());
    let error = refused(all_of(&folder(&[("a", &large)])), &options(1));
    let told = error.to_string();
    assert!(
        told.ends_with("expected at most 268435456; write the file with smaller batches, or as Parquet"),
        "{told}"
    );
    let found =
        told.split(|other: char| !other.is_ascii_digit()).filter_map(|number| number.parse::<u64>().ok());
    assert!(found.max() > Some(1 << 40), "{told}");
    assert_eq!(error.exit(), Exit::BadInput);
}

#[test]
fn texts_that_are_not_utf8_are_read_as_in_lines() {
    let mut content = stream(None);
    let at = content.windows(6).position(|bytes| bytes == b"text 1").unwrap();
    content[at..at + 4].copy_from_slice(b"\xff\xe2\x82\0");
    let rows = read(&Reading::start(all_of(&folder(&[("a", &content)])), &options(1)).unwrap(), 1).unwrap();
    assert_eq!(rows[1].2, OwnedContent::Row(Some("\u{FFFD}\u{FFFD}\0 1".to_owned()), Some(1)));
}

#[test]
fn a_column_that_is_missing_or_has_another_type_is_refused_by_name() {
    let folder = folder(&[("a", &file(None))]);
    for (text, rating, expected) in [
        (
            "body",
            "overall",
            "found no column \"body\" among overall, reviewText; name the right column with --text-field",
        ),
        ("overall", "overall", "found values of the type Float64 in the column \"overall\", expected texts;"),
    ] {
        let format = Format::Json(corpus::format::Fields::named(text, rating));
        let error = refused(all_of(&folder), &ReadingOptions { format, ..options(1) });
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
    let format = Format::FastText { ratings: Default::default() };
    let error = refused(all_of(&folder), &ReadingOptions { format, ..options(1) });
    assert!(
        error
            .to_string()
            .ends_with("found an Arrow file, expected lines of the format fasttext; omit --format fasttext")
    );
}

#[test]
fn arrow_in_a_stream_is_refused() {
    for content in [file(None), stream(None)] {
        let error = refused(all_of(&folder(&[("a.gz", &gzip(&content))])), &options(1));
        let expected = "a.gz: found Arrow, which can only be read from a file that is not compressed; write it to a file on this machine";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

/// A structure of these columns, which is null in some rows.
fn structure(columns: Vec<(&str, ArrayRef)>, is_there: Vec<bool>) -> ArrayRef {
    let whole = StructArray::try_from(columns).unwrap();
    let (fields, columns, _) = whole.into_parts();
    Arc::new(StructArray::new(fields, columns, Some(is_there.into())))
}

fn strings(texts: [&str; 4]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

#[test]
fn a_column_in_a_structure_is_read() {
    let numbers = |numbers: [i64; 4]| -> ArrayRef { Arc::new(Int64Array::from(numbers.to_vec())) };
    let titles: DictionaryArray<Int8Type> = [Some("t0"), None, Some("t0"), Some("t3")].into_iter().collect();
    let inner = structure(
        vec![
            ("no", strings(["-"; 4])),
            ("text", strings(["a", "b", "c", "d"])),
            ("stars", numbers([1, 2, 3, 4])),
        ],
        vec![true, true, false, true],
    );
    let data = structure(
        vec![("title", Arc::new(titles)), ("stars", numbers([5, 5, 5, 5])), ("more", inner)],
        vec![true, true, true, false],
    );
    let before = structure(vec![("text", strings(["-"; 4]))], vec![true; 4]);
    let batch = RecordBatch::try_from_iter([
        ("before", before),
        ("data", data),
        ("a.b", strings(["e", "f", "g", "h"])),
        ("a", structure(vec![("b", strings(["-"; 4]))], vec![true; 4])),
    ]);
    let batch = batch.unwrap();
    let row =
        |number, text: Option<&str>, stars| (0, number, OwnedContent::Row(text.map(str::to_owned), stars));
    for compression in [None, Some(CompressionType::ZSTD)] {
        let write = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), write).unwrap();
        writer.write(&batch).unwrap();
        let folder = folder(&[("a", &writer.into_inner().unwrap())]);
        let found = |text: &str, rating: &str| {
            let text = text.split(',').map(|path| path.parse().unwrap()).collect();
            let rating = rating.parse().unwrap();
            let format =
                Format::Json(corpus::format::Fields { text, rating, ..corpus::format::Fields::default() });
            let reading = Reading::start(all_of(&folder), &ReadingOptions { format, ..options(1) })?;
            Ok::<_, Error>(read(&reading, 1).unwrap())
        };
        assert_eq!(
            found("data.title,data.more.text", "data.more.stars").unwrap(),
            [
                row(0, Some("t0 a"), Some(1)),
                row(1, Some("b"), Some(2)),
                row(2, Some("t0"), None),
                row(3, None, None)
            ]
        );
        let text = ["data.title", "data.more.text"].map(|path| path.parse().unwrap()).into();
        let rating = "data.more.stars".parse().unwrap();
        let format =
            Format::Json(corpus::format::Fields { text, rating, ..corpus::format::Fields::default() });
        let options = ReadingOptions { format, columns: KeptColumns::All, ..options(1) };
        let reading = Reading::start(all_of(&folder), &options).unwrap();
        let columns = reading.row_columns(0).unwrap();
        let names: Vec<&str> = columns.names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["data.title", "data.more.text", "data.more.stars", "a.b"]);
        let mut values = Vec::new();
        let read_all = reading.each(|entry| {
            values.push(format!("{:?}", entry.values));
            Ok::<_, Error>(())
        });
        read_all.unwrap();
        assert_eq!(values[0], "[Text([116, 48]), Text([97]), Whole(1), Text([101])]");
        let literal = found("a.b", "data.stars").unwrap();
        assert_eq!(literal[3], row(3, Some("h"), None));
        assert_eq!(literal[0], row(0, Some("e"), Some(5)));
        for (text, expected) in [
            ("data.more", "found a list or a structure in the column \"data.more\", expected texts;"),
            ("data.text", "found no column \"data.text\" among before, data, a.b, a;"),
            ("data.title.text", "found no column \"data.title.text\" among before, data, a.b, a;"),
        ] {
            let error = found(text, "data.stars").unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[test]
fn of_columns_with_the_same_name_the_last_is_read() {
    let batch = RecordBatch::try_from_iter([
        ("reviewText", strings(["a"; 4])),
        ("overall", strings(["1"; 4])),
        ("reviewText", strings(["b"; 4])),
        ("overall", strings(["2"; 4])),
    ]);
    let batch = batch.unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let folder = folder(&[("a", &writer.into_inner().unwrap())]);
    let found = read(&Reading::start(all_of(&folder), &options(1)).unwrap(), 1).unwrap();
    assert_eq!(found[0], (0, 0, OwnedContent::Row(Some("b".to_owned()), Some(2))));
}

#[test]
fn batches_that_exceed_the_memory_together_are_read_one_by_one() {
    let n_rows = 5000;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch(0..1).schema()).unwrap();
    (0..12).for_each(|number| writer.write(&batch(number * n_rows..(number + 1) * n_rows)).unwrap());
    let folder = folder(&[("a", &writer.into_inner().unwrap())]);
    for (batches_bytes, is_shared) in [(1, false), (64 << 20, true)] {
        let reading =
            Reading::start(all_of(&folder), &ReadingOptions { batches_bytes, ..options(3) }).unwrap();
        let (visited, n_visits) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    reading.each(|entry| {
                        visited.lock().unwrap().push(entry.place.offset);
                        // Every thread has begun with a batch before the first of them ends, if it can.
                        if n_visits.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
                            thread::yield_now();
                        }
                        Ok::<_, Error>(())
                    })
                });
            }
        });
        let visited = visited.into_inner().unwrap();
        let in_one_batch = visited.chunks(n_rows).all(|rows| rows.is_sorted());
        assert_eq!(visited.len(), 12 * n_rows);
        assert!(is_shared || in_one_batch, "rows of two batches are mixed");
    }
}

#[test]
fn columns_of_texts_numbers_and_booleans_are_kept_if_asked() {
    let rows = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![Some(9_007_199_254_740_993), None])) as ArrayRef),
        ("reviewText", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
        ("day", Arc::new(Date32Array::from(vec![1, 2])) as ArrayRef),
        ("overall", Arc::new(Float64Array::from(vec![4.5, 5.0])) as ArrayRef),
        ("isGood", Arc::new(BooleanArray::from(vec![true, false])) as ArrayRef),
    ]);
    let rows = rows.unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &rows.schema()).unwrap();
    writer.write(&rows).unwrap();
    let folder = folder(&[("a", &writer.into_inner().unwrap())]);
    let options = ReadingOptions { columns: KeptColumns::All, ..options(1) };
    let reading = Reading::start(all_of(&folder), &options).unwrap();
    let columns = reading.row_columns(0).unwrap();
    assert_eq!(
        columns.names.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["id", "reviewText", "overall", "isGood"]
    );
    assert_eq!(columns.others, ["day"]);
    let mut seen = Vec::new();
    let read = reading.each(|entry| {
        seen.push(format!("{:?}", entry.values));
        Ok::<_, Error>(())
    });
    read.unwrap();
    let expected = [
        "[Whole(9007199254740993), Text([97]), Number(4.5), Bool(true)]",
        "[Null, Text([98]), Number(5.0), Bool(false)]",
    ];
    assert_eq!(seen, expected);
}

use std::mem;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::thread;

use ::tests::compressed::{bgzf, bzip2, gzip, in_members, zstd};
use ::tests::fault_proxy::{Fault, FaultProxy, Request};
use ::tests::s3_server::{S3Server, with_s3};
use corpus::exit::Exit;
use corpus::format::ClassRatings;
use corpus::lines::LineReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use store::{Key, PART_BYTES_MIN, S3Options, Store};
use tempfile::TempDir;

use super::*;

/// Source, offset and content of a line, or of a row.
type Owned = (usize, u64, OwnedWhat);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OwnedWhat {
    Line(Vec<u8>),
    TooLong(u64, bool),
    Row(Option<String>, Option<u8>),
}

impl From<What<'_>> for OwnedWhat {
    fn from(what: What<'_>) -> Self {
        match what {
            What::Line(Content::Bytes(bytes)) => Self::Line(bytes.to_vec()),
            What::Line(Content::TooLong { bytes, blank }) => Self::TooLong(bytes, blank),
            What::Row { text, rating } => Self::Row(text.map(str::to_owned), rating.map(Rating::stars)),
        }
    }
}

fn options(threads: usize) -> ReadingOptions {
    ReadingOptions {
        format: Format::default(),
        line_bytes_max: 1 << 20,
        threads: NonZeroUsize::new(threads).unwrap(),
    }
}

/// What a folder's files are, by their names.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn found(inputs: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let inputs: Vec<_> = inputs.iter().map(|input| input.to_str().unwrap().to_owned()).collect();
    find(&inputs, &S3Options::default())
}

fn all_of(folder: &TempDir) -> Vec<Source> {
    found(&[folder.path().to_owned()]).unwrap()
}

/// What all threads visit, in order; or the errors that they had.
fn read(reading: &Reading, threads: usize) -> Result<Vec<Owned>, Vec<Error>> {
    let (all, errors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                let ended = reading.each(|entry| {
                    own.push((entry.place, entry.what.into()));
                    Ok::<_, Error>(())
                });
                all.lock().unwrap().extend(own);
                errors.lock().unwrap().extend(ended.err());
            });
        }
    });
    let (mut all, errors) = (all.into_inner().unwrap(), errors.into_inner().unwrap());
    if !errors.is_empty() {
        return Err(errors);
    }
    all.sort_unstable();
    Ok(all.into_iter().map(|(place, what)| (place.source, reading.offset(place), what)).collect())
}

/// The one error that one of three threads has.
fn refused(sources: Vec<Source>, options: &ReadingOptions) -> Error {
    let reading = match Reading::start(sources, options) {
        Ok(reading) => reading,
        Err(error) => return error,
    };
    let mut errors = read(&reading, 3).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

/// One reader over the whole of each content.
fn naive(contents: &[&[u8]], line_bytes_max: usize) -> Vec<Owned> {
    let mut all = Vec::new();
    for (source, content) in contents.iter().enumerate() {
        let mut lines = LineReader::new(*content, line_bytes_max);
        while let Some(line) = lines.next_line().unwrap() {
            all.push((source, line.offset, What::Line(line.content).into()));
        }
    }
    all
}

fn compressed(by: usize, content: &[u8]) -> Vec<u8> {
    match by {
        0 => content.to_vec(),
        1 => gzip(content),
        2 => bzip2(content),
        _ => zstd(content),
    }
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec!["\n", "\r", "\r\n", "\u{FEFF}", "a", " \t  ", "bcdefgh", "\u{E9}", "ijklmnopqrst"];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn ranges_give_the_lines_of_one_reader_over_the_whole_file(
        contents in prop::collection::vec(texts(), 1..4),
        range_bytes in 1..40_u64,
        line_bytes_max in 0..12_usize,
        threads in 1..4_usize,
    ) {
        let names = ["a", "b", "c"];
        let files: Vec<_> = names.iter().zip(&contents).map(|(name, content)| (*name, &content[..])).collect();
        let folder = folder(&files);
        let options = ReadingOptions { line_bytes_max, ..options(threads) };
        let reading = Reading::start_with(all_of(&folder), &options, range_bytes).unwrap();
        let contents: Vec<_> = contents.iter().map(|content| &content[..]).collect();
        prop_assert_eq!(read(&reading, threads).unwrap(), naive(&contents, line_bytes_max));
        prop_assert_eq!(reading.bytes(), Some(contents.concat().len() as u64));
        prop_assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn compressed_files_and_plain_ones_give_the_same_lines(
        contents in prop::collection::vec((0..4_usize, texts(), 1..3000_usize), 1..8),
        line_bytes_max in 0..12_usize,
        threads in 1..4_usize,
    ) {
        let contents: Vec<_> = contents.iter().map(|(by, text, times)| (*by, text.repeat(*times))).collect();
        let names: Vec<_> = (0..contents.len()).map(|number| number.to_string()).collect();
        let files: Vec<_> = contents.iter().map(|(by, content)| compressed(*by, content)).collect();
        let named: Vec<_> = names.iter().zip(&files).map(|(name, file)| (name.as_str(), &file[..])).collect();
        let folder = folder(&named);
        let options = ReadingOptions { line_bytes_max, ..options(threads) };
        let reading = Reading::start_with(all_of(&folder), &options, 1000).unwrap();
        let contents: Vec<_> = contents.iter().map(|(_, content)| &content[..]).collect();
        prop_assert!(read(&reading, threads).unwrap() == naive(&contents, line_bytes_max));
        prop_assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

/// What has members whose ends can be told.
fn of_members(by: usize, content: &[u8], bytes: usize) -> Vec<u8> {
    let members = [bgzf, zstd, bzip2][by];
    // One more, so that there is one for no content; and one that is passed over.
    in_members(content, bytes, members).into_iter().chain(members(b"")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn groups_of_members_give_the_lines_of_one_reader_over_the_whole_file(
        contents in prop::collection::vec((0..3_usize, texts(), 1..20_usize), 1..4),
        member_bytes in 1..40_usize,
        group_bytes in 1..400_u64,
        line_bytes_max in 0..12_usize,
        threads in 1..4_usize,
    ) {
        let contents: Vec<_> = contents.iter().map(|(by, text, times)| (*by, text.repeat(*times))).collect();
        let files: Vec<_> =
            contents.iter().map(|(by, content)| of_members(*by, content, member_bytes)).collect();
        let named: Vec<_> = ["a", "b", "c"].into_iter().zip(files.iter().map(Vec::as_slice)).collect();
        let folder = folder(&named);
        let options = ReadingOptions { line_bytes_max, ..options(threads) };
        let reading = Reading::start_with(all_of(&folder), &options, group_bytes).unwrap();
        let contents: Vec<_> = contents.iter().map(|(_, content)| &content[..]).collect();
        prop_assert_eq!(read(&reading, threads).unwrap(), naive(&contents, line_bytes_max));
        prop_assert_eq!(Some(reading.bytes_read()), reading.bytes());
    }
}

#[test]
fn large_members_are_read_in_groups() {
    let lines: Vec<u8> =
        (0..200_000).flat_map(|number| format!("line {} of {number}\n", number % 977).into_bytes()).collect();
    for (by, bytes) in [(0, 60_000), (1, 300_000), (2, 300_000)] {
        let folder = folder(&[("a", &of_members(by, &lines, bytes))]);
        let reading = Reading::start_with(all_of(&folder), &options(3), 40_000).unwrap();
        let expected = naive(&[&lines], 1000);
        assert!(read(&reading, 3).unwrap() == expected);
        assert!(expected.iter().map(|line| line.1).max() > Some(3_000_000));
        let places = Mutex::new(Vec::new());
        let reading = Reading::start_with(all_of(&folder), &options(2), 40_000).unwrap();
        reading
            .each(|entry| {
                places.lock().unwrap().push(entry.place.group);
                Ok::<_, Error>(())
            })
            .unwrap();
        assert!(places.into_inner().unwrap().into_iter().max() > Some(5), "it was cut into few groups");
    }
}

#[test]
fn a_line_over_many_groups_is_read_by_one() {
    let content = [b"a\n".repeat(100), b"x".repeat(100_000), b"\nb\r\n".repeat(100)].concat();
    for by in 0..3 {
        let folder = folder(&[("a", &of_members(by, &content, 500))]);
        for line_bytes_max in [1000, 1_000_000] {
            let options = ReadingOptions { line_bytes_max, ..options(3) };
            let reading = Reading::start_with(all_of(&folder), &options, 64).unwrap();
            assert_eq!(read(&reading, 3).unwrap(), naive(&[&content], line_bytes_max));
        }
    }
}

/// What one reader from the beginning to the end says of a file.
fn refused_in_one(path: &std::path::Path) -> String {
    let read = input::open(path).and_then(|mut input| io::copy(&mut input, &mut io::sink()));
    read.unwrap_err().to_string()
}

#[test]
fn damage_is_told_in_groups_as_it_is_in_one() {
    let content = b"some reviews, and some more reviews\n".repeat(3000);
    for by in 0..3 {
        let whole = of_members(by, &content, 700);
        let folder = folder(&[("a", b"")]);
        let path = folder.path().join("a");
        let mut flipped = whole.clone();
        // Within the data of a member, whatever its format.
        flipped[whole.len() / 2 / 700 * 700 + 40] ^= 0x10;
        let (middle, garbage) = (whole.len() / 2, [&whole[..], b"{\"a\": 1}\n"].concat());
        for damaged in [&whole[..middle], &whole[..whole.len() - 1], &garbage, &flipped] {
            std::fs::write(&path, damaged).unwrap();
            let expected = format!("{}: cannot read it: {}", path.display(), refused_in_one(&path));
            for (threads, group_bytes) in [(1, 1), (3, 1), (3, 3000)] {
                let reading = Reading::start_with(all_of(&folder), &options(threads), group_bytes).unwrap();
                for error in read(&reading, threads).unwrap_err() {
                    assert_eq!(corpus::exit::chain(&error), expected, "{by}, {threads}, {group_bytes}");
                    assert_eq!(error.exit(), Exit::BadInput);
                }
            }
        }
    }
}

#[test]
fn a_member_that_ends_elsewhere_than_it_says_is_an_error() {
    let mut lying = in_members(&b"a review\n".repeat(3000), 9000, bgzf);
    // The size of the first member is that of two.
    let size = |at: usize| usize::from(u16::from_le_bytes([lying[at + 16], lying[at + 17]])) + 1;
    let second = size(0);
    let both = second + size(second) - 1;
    // So long that it reaches into what is said to be another one.
    lying[16..18].copy_from_slice(&u16::try_from(second - 10).unwrap().to_le_bytes());
    let folder = folder(&[("short", &lying)]);
    let errors = read(&Reading::start_with(all_of(&folder), &options(2), 1).unwrap(), 2).unwrap_err();
    assert!(errors.iter().all(|error| error.exit() == Exit::BadInput), "{errors:?}");
    lying[16..18].copy_from_slice(&u16::try_from(both).unwrap().to_le_bytes());
    std::fs::write(folder.path().join("short"), &lying).unwrap();
    let reading = Reading::start_with(all_of(&folder), &options(2), 1).unwrap();
    assert_eq!(read(&reading, 2).unwrap().len(), 3000);
}

#[test]
fn a_line_over_many_ranges_is_read_by_one() {
    let content = [b"a\n".repeat(100), b"x".repeat(100_000), b"\nb\r\n".repeat(100)].concat();
    let folder = folder(&[("a", &content)]);
    for line_bytes_max in [1000, 1_000_000] {
        let options = ReadingOptions { line_bytes_max, ..options(3) };
        let reading = Reading::start_with(all_of(&folder), &options, 64).unwrap();
        assert_eq!(read(&reading, 3).unwrap(), naive(&[&content], line_bytes_max));
        assert_eq!(reading.bytes_read(), content.len() as u64);
    }
}

#[test]
fn ranges_have_work_for_all_threads_and_none_is_tiny() {
    assert_eq!(ranges::range_bytes(1 << 40, 8), 16 << 20);
    assert_eq!(ranges::range_bytes(64 << 20, 8), 1 << 20);
    assert_eq!(ranges::range_bytes(0, 8), 256 << 10);
}

#[test]
fn more_batches_than_the_queue_holds_come_through_it() {
    let line = [b"x".repeat(99), b"\n".to_vec()].concat();
    let (content, blank) = (line.repeat(200_000), b"\n".repeat(1_000_000));
    let folder = folder(&[("a", &gzip(&content)), ("b", &zstd(&blank))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    assert!(read(&reading, 2).unwrap() == naive(&[&content, &blank], 1000));
}

#[test]
fn a_damaged_stream_is_one_error_that_names_it_and_ends_all() {
    let good = gzip(&b"good\n".repeat(1_000_000));
    let folder =
        folder(&[("a.gz", &good), ("b.gz", &good[..good.len() - 9]), ("c.gz", &good), ("d", b"x\n")]);
    let error = refused(all_of(&folder), &options(3));
    assert_eq!(error.exit(), Exit::BadInput);
    let message = corpus::exit::chain(&error);
    assert!(message.contains("b.gz: cannot read it: the gzip member at byte 0 is cut off"), "{message}");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = folder(&[("a", &b"line\n".repeat(200_000))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    File::options().write(true).open(folder.path().join("a")).unwrap().set_len(600_001).unwrap();
    let errors = read(&reading, 2).unwrap_err();
    let message = corpus::exit::chain(&errors[0]);
    assert!(message.ends_with("found 600001 bytes, expected 1000000; leave it alone while it is read"));
    assert_eq!(errors[0].exit(), Exit::Io);
}

#[test]
fn an_error_of_a_visitor_ends_all_and_is_given_back() {
    #[derive(Debug)]
    struct Enough;
    impl From<Error> for Enough {
        fn from(error: Error) -> Self {
            panic!("{error}");
        }
    }
    let folder = folder(&[("a", &b"line\n".repeat(200_000)), ("b", &gzip(&b"line\n".repeat(2_000_000)))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    // Both have a line before either goes on: one alone could read them all before the other begins.
    let both = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut is_first = true;
            reading.each(|_| {
                if mem::take(&mut is_first) {
                    both.wait();
                }
                Ok::<_, Enough>(())
            })
        });
        let ended = reading.each(|_| {
            both.wait();
            Err(Enough)
        });
        assert!(matches!(ended, Err(Enough)));
        other.join().unwrap().unwrap();
    });
    assert_eq!(read(&reading, 2).unwrap(), []);
}

#[test]
fn a_panic_of_a_visitor_ends_all() {
    let folder = folder(&[("b", &gzip(&b"line\n".repeat(2_000_000)))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(|| reading.each(|_| -> Result<(), Error> { panic!("as this test wants") }));
        assert!(one.join().is_err());
    });
    assert_eq!(read(&reading, 1).unwrap(), []);
}

#[test]
fn reading_that_is_stopped_returns_though_a_pipe_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reading = Reading::start(found(&[pipe]).unwrap(), &options(1)).unwrap();
    assert_eq!(reading.bytes(), None);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| reading.each(|_| Ok::<_, Error>(())));
        reading.stop();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn a_pipe_is_read_and_inflated() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reading = Reading::start(found(std::slice::from_ref(&pipe)).unwrap(), &options(2)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&pipe, zstd(b"one\ntwo")).unwrap());
        assert_eq!(read(&reading, 2).unwrap(), naive(&[b"one\ntwo"], 9));
    });
}

#[test]
fn dropped_readers_end() {
    let folder = folder(&[("a", &zstd(&b"line\n".repeat(10_000_000))), ("b", &zstd(b""))]);
    let reading = Reading::start(all_of(&folder), &options(2)).unwrap();
    let state = Arc::clone(&reading.state);
    drop(reading);
    // It is theirs and the test's own until they have ended; this waits for them, and for ever if they do not.
    while Arc::strong_count(&state) > 1 {
        thread::yield_now();
    }
}

#[test]
fn a_folder_is_all_its_files_sorted_but_hidden_ones() {
    let folder = folder(&[
        ("b/part-1.json", b""),
        ("b/part-0.json", b""),
        ("a.json", b"x\n"),
        ("b.json", b""),
        (".hidden", b""),
        ("_SUCCESS", b""),
        ("_temporary/part-2.json", b""),
    ]);
    let names = |sources: Vec<Source>| -> Vec<String> {
        let root = format!("{}/", folder.path().display());
        sources.iter().map(|source| source.name.strip_prefix(&root).unwrap().to_owned()).collect()
    };
    assert_eq!(names(all_of(&folder)), ["a.json", "b/part-0.json", "b/part-1.json", "b.json"]);
    assert_eq!(all_of(&folder)[0].bytes, Some(2));
    assert_eq!(names(found(&[folder.path().join("_SUCCESS")]).unwrap()), ["_SUCCESS"]);
    assert_eq!(names(found(&[folder.path().join("*.json")]).unwrap()), ["a.json", "b.json"]);
    let twice = ["**/part-?.json", "[ab].json"].map(|pattern| folder.path().join(pattern));
    let expected = ["_temporary/part-2.json", "b/part-0.json", "b/part-1.json", "a.json", "b.json"];
    assert_eq!(names(found(&twice).unwrap()), expected);
}

#[test]
fn a_file_whose_name_could_be_a_pattern_is_that_file() {
    let folder = folder(&[("[a].json", b""), ("a.json", b"")]);
    let sources = found(&[folder.path().join("[a].json")]).unwrap();
    assert!(sources.len() == 1 && sources[0].name.ends_with("/[a].json"));
}

#[test]
fn the_same_file_under_two_names_is_an_error() {
    let folder = folder(&[("a", b""), ("b/c", b"")]);
    std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("b/link")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("b/up")).unwrap();
    for names in [&["a", "a"][..], &["a", "b"], &["b/c", "b/../b/c"], &["b/up"], &["*"]] {
        let inputs: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
        let error = found(&inputs).unwrap_err();
        assert!(matches!(error, Error::Twice { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::Usage);
    }
    assert!(matches!(
        find(&["-".to_owned(), "-".to_owned()], &S3Options::default()),
        Err(Error::Twice { .. })
    ));
    assert_eq!(find(&["-".to_owned()], &S3Options::default()).unwrap()[0].bytes, None);
}

#[test]
fn what_is_not_there_is_named() {
    let folder = folder(&[("empty/_SUCCESS", b""), ("file", b"")]);
    for (name, expected, exit) in [
        ("absent", "absent: found no such file or folder; check the name", Exit::MissingInput),
        ("file/absent", "absent: found no such file or folder; check the name", Exit::MissingInput),
        ("*.json", "*.json: found no file that fits the pattern; check it", Exit::MissingInput),
        ("empty", "empty: found no file in the folder, expected at least one", Exit::MissingInput),
        ("a***", "a***: found wildcards are either regular `*` or recursive `**` at character", Exit::Usage),
    ] {
        let error = found(&[folder.path().join(name)]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit(), exit);
    }
    let error = find(&["gs://bucket/reviews".to_owned()], &S3Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("gs://bucket/reviews: found the scheme gs, expected"), "{error}");
}

/// The texts and the ratings of a row group.
type Rows<'a, R> = (&'a [Option<&'a [u8]>], &'a [Option<R>]);

/// A Parquet file of one row group for each slice of rows, by a schema whose first two columns are text and rating.
fn parquet<R: DataType>(schema: &str, groups: &[Rows<'_, R::T>]) -> Vec<u8> {
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
    (0, number, OwnedWhat::Row(text.map(str::to_owned), stars))
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
fn a_row_is_read_as_a_line_with_the_same_content_would_be() {
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
        (0, 4, OwnedWhat::TooLong(101, false)),
        row(5, Some("ok"), None),
    ];
    let mut rows = read(&reading, 2).unwrap();
    rows.sort_unstable_by_key(|row| row.1);
    assert_eq!(rows, expected);
}

#[test]
fn whole_numbers_are_ratings_too() {
    let schema = "message m { optional binary reviewText; optional int64 overall; }";
    let ratings = [Some(1), Some(5), Some(6), Some(-1), Some(257), None];
    let texts = [Some(&b"ok"[..]); 6];
    let folder = folder(&[("a", &parquet::<Int64Type>(schema, &[(&texts, &ratings)]))]);
    let rows = read(&Reading::start(all_of(&folder), &options(1)).unwrap(), 1).unwrap();
    let stars = rows.iter().map(|(_, _, what)| match what {
        OwnedWhat::Row(_, stars) => *stars,
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
fn a_parquet_file_without_the_columns_tells_those_it_has() {
    let file = |schema: &str| parquet::<DoubleType>(schema, &[(&[Some(b"ok")], &[Some(4.0)])]);
    let other = file("message m { optional binary body (STRING); optional double stars; }");
    let empty = |schema: &str| {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap().into_inner().unwrap()
    };
    for (content, expected) in [
        (other, "found no column \"reviewText\" among body, stars; name the right one by --text-field"),
        (
            empty("message m { optional binary reviewText; optional double stars; }"),
            "found no column \"overall\" among reviewText, stars; name the right one by --rating-field",
        ),
        (
            empty("message m { optional double reviewText; optional double overall; }"),
            "found values of the type DOUBLE in the column \"reviewText\", expected texts; name the right one by --text-field",
        ),
        (
            empty("message m { optional binary reviewText; required boolean overall; }"),
            "found values of the type BOOLEAN in the column \"overall\", expected numbers or texts;",
        ),
        (
            empty("message m { repeated binary reviewText; required int32 overall; }"),
            "found a list in the column \"reviewText\", expected one value a row;",
        ),
        (
            empty("message m { required group reviewText { required binary a; } required int32 overall; }"),
            "found a list or a structure in the column \"reviewText\", expected one value a row;",
        ),
        (
            empty("message m { required binary reviewText; required int32 overall (DECIMAL(9, 2)); }"),
            "found decimal numbers in the column \"overall\"",
        ),
    ] {
        let folder = folder(&[("a.parquet", &content)]);
        let error = refused(all_of(&folder), &options(1));
        assert!(error.to_string().contains(&format!("/a.parquet: {expected}")), "{error}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
}

#[test]
fn parquet_is_no_file_of_lines() {
    let folder = folder(&[("a", &parquet::<DoubleType>(NUMBERS, &[(&[Some(b"ok")], &[Some(4.0)])]))]);
    let format = Format::FastText { ratings: ClassRatings::default() };
    let error = refused(all_of(&folder), &ReadingOptions { format, ..options(1) });
    assert!(
        error.to_string().ends_with(
            "found a file of Parquet, expected lines of the format fasttext; leave --format fasttext out"
        ),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn a_parquet_file_that_is_cut_off_is_an_error() {
    let whole = parquet::<DoubleType>(NUMBERS, &[(&[Some(b"ok")], &[Some(4.0)])]);
    for end in rows::MAGIC.len()..whole.len() {
        let folder = folder(&[("a", &whole[..end])]);
        let error = refused(all_of(&folder), &options(1));
        assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::BadInput);
    }
}

// Which bytes a flip gives is known only where pages have checksums, and the crate for these tests writes none.
#[test]
fn a_flipped_bit_of_a_parquet_file_never_breaks_the_reading() {
    let texts: Vec<_> =
        (0..40).map(|row| (row % 9 != 0).then(|| format!("text {row}").into_bytes())).collect();
    let texts: Vec<_> = texts.iter().map(|text| text.as_deref()).collect();
    let ratings: Vec<_> = (0..40).map(|row| (row % 5 != 0).then(|| f64::from(row % 5))).collect();
    let groups = [(&texts[..25], &ratings[..25]), (&texts[25..], &ratings[25..])];
    let whole = parquet::<DoubleType>(NUMBERS, &groups);
    let folder = folder(&[("a", b"")]);
    for at in (8 * rows::MAGIC.len()..8 * whole.len()).step_by(5) {
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

/// What `numbered_rows` has, by the library that most files come from: each codec, both kinds of pages, checksums, and
/// ratings of each type.
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

fn numbered_rows(source: usize) -> Vec<Owned> {
    let rows = (0..3000_usize).map(|row| {
        let text = (row % 11 != 0).then(|| format!("grüße {row} ").repeat(row % 7));
        let stars = Some((row % 7) as u8).filter(|stars| row % 13 != 0 && (1..=5).contains(stars));
        (source, row as u64, OwnedWhat::Row(text, stars))
    });
    rows.collect()
}

/// Files that Python writes; `None` where it is not installed, which only a developer's machine may do.
fn written_by_pyarrow() -> Option<TempDir> {
    let python = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps").join("test/bin/python");
    if !python.is_file() {
        let skipped = format!("SKIPPED pyarrow: {} is missing; run `make setup`", python.display());
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{skipped}");
        eprintln!("{skipped}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let written = Command::new(python).args(["-c", PYARROW]).current_dir(folder.path()).status().unwrap();
    assert!(written.success());
    Some(folder)
}

#[test]
fn rows_that_pyarrow_wrote_are_read() {
    let Some(folder) = written_by_pyarrow() else { return };
    let reading = Reading::start(all_of(&folder), &options(3)).unwrap();
    let expected: Vec<_> = (0..6).flat_map(numbered_rows).collect();
    assert!(read(&reading, 3).unwrap() == expected);
}

#[test]
fn a_flipped_bit_is_noticed_where_pages_have_checksums() {
    let Some(folder) = written_by_pyarrow() else { return };
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
fn parquet_in_a_stream_is_named() {
    let folder = folder(&[("a.gz", &gzip(b"PAR1\x15\x04\nb"))]);
    let error = refused(all_of(&folder), &options(1));
    assert!(
        error
            .to_string()
            .ends_with("a.gz: found Parquet, which can only be read from a file; copy it to this machine")
    );
}

/// Runs one of the ignored tests in a process of its own, whose environment says where S3 is: a process has one.
fn succeeds_in_s3(test: &str, proxy: &FaultProxy) {
    let ended = with_s3(Command::new(std::env::current_exe().unwrap()), &proxy.url())
        .args(["--exact", &format!("reading::tests::{test}"), "--ignored", "--nocapture"])
        .env("READING_IN_S3", "yes")
        .output()
        .unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}

/// Whether a process is one that [`succeeds_in_s3`] started.
fn is_in_s3() -> bool {
    std::env::var_os("READING_IN_S3").is_some()
}

#[test]
fn objects_come_whole_through_a_network_that_cuts_every_answer_once() {
    for server in S3Server::each() {
        let cut = |request: &Request| {
            let is_read = request.method == "GET" && !request.target.contains("list-type=");
            if is_read && request.earlier == 0 { Fault::CutAnswer(100) } else { Fault::None }
        };
        let proxy = FaultProxy::start(server.address(), cut).unwrap();
        succeeds_in_s3("objects_are_read", &proxy);
        assert!(proxy.seen().iter().any(|(_, met)| *met == Fault::CutAnswer(100)));
    }
}

#[test]
#[ignore = "the other side of succeeds_in_s3"]
fn objects_are_read() {
    if !is_in_s3() {
        return;
    }
    let put = |run: &str, name: &str, content: &[u8]| {
        let store = Store::open(&format!("s3://bucket/{run}")).unwrap();
        store.put_if_absent(&Key::new(name).unwrap(), store::Content::Bytes(content)).unwrap();
    };
    let line = [b"x".repeat(999), b"\n".to_vec()].concat();
    let large = line.repeat(2 * PART_BYTES_MIN as usize / 1000 + 7);
    put("reviews", "year_2017/a", &large);
    put("reviews", "year_2017/b.zst", &zstd(b"one\rtwo"));
    put("reviews", "_SUCCESS", b"no review");
    put("reviews-of-others", "a", b"no review");
    put("marks", "_SUCCESS", b"no review");
    let small_parts = S3Options { part_bytes: PART_BYTES_MIN, ..S3Options::default() };
    let find = |inputs: &[&str]| {
        find(&inputs.iter().map(|input| (*input).to_owned()).collect::<Vec<_>>(), &small_parts)
    };

    let sources = find(&["s3://bucket/reviews"]).unwrap();
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["s3://bucket/reviews/year_2017/a", "s3://bucket/reviews/year_2017/b.zst"]);
    let reading = Reading::start(sources, &options(2)).unwrap();
    assert!(read(&reading, 2).unwrap() == naive(&[&large, b"one\rtwo"], 1000));
    assert_eq!(Some(reading.bytes_read()), reading.bytes());

    let one = find(&["s3a://bucket/reviews/year_2017/b.zst"]).unwrap();
    assert_eq!(read(&Reading::start(one, &options(2)).unwrap(), 2).unwrap(), naive(&[b"one\rtwo"], 9));

    for (inputs, exit) in [
        (&["s3://bucket/review"][..], Exit::MissingInput),
        (&["s3://bucket/marks/"], Exit::MissingInput),
        (&["s3://bucket/reviews/year_2017/a", "s3://bucket/reviews"], Exit::Usage),
        (&["s3://b"], Exit::Usage),
    ] {
        let error = find(inputs).unwrap_err();
        assert_eq!(error.exit(), exit, "{error}");
    }
    let sources = find(&["s3://bucket/reviews/year_2017/b.zst"]).unwrap();
    let store = Store::open("s3://bucket/reviews").unwrap();
    let key = Key::new("year_2017/b.zst").unwrap();
    store.delete(&key).unwrap();
    store.put_if_absent(&key, store::Content::Bytes(&zstd(b"other"))).unwrap();
    let error = refused(sources, &options(3));
    assert!(
        error.to_string().contains("b.zst: found another version than when the reading began"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::TryAgain);
}
